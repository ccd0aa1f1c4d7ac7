//! A cache of fetched sources: an unchanged source costs one small request.

use std::{collections::HashMap, sync::Arc};

use orkestra_registry::Digest;

use crate::{Artifact, git::ObjectId, helm::RepositoryIndex, http::Validator};

/// The most sources that are remembered.
const MOST: usize = 1024;
/// The most bytes of their documents.
const MOST_BYTES: usize = 64 << 20;
/// The most indexes of chart repositories.
const MOST_INDEXES: usize = 16;

/// The identity of a source, with its credentials and requirements, as a hash.
pub(crate) type CacheKey = [u8; 32];

/// The validators of conditional requests: a source with equal ones is unchanged.
#[derive(Clone, Debug)]
pub(crate) enum Validators {
    /// Headers of a conditional request.
    HttpClient(Validator),
    /// The digest of an artifact.
    Registry(Digest),
    /// A commit, and where redirects lead.
    Git {
        base: Option<String>,
        commit: ObjectId,
        /// Of the values of a chart.
        marks: String,
    },
    /// The digest or version of a chart.
    Chart(String),
}

/// A source that was fetched.
#[derive(Clone)]
pub(crate) struct CachedSource {
    pub(crate) state: Validators,
    pub(crate) artifact: Arc<Artifact>,
}

/// The index of a chart repository.
#[derive(Clone)]
pub(crate) struct CachedIndex {
    pub(crate) validator: Validator,
    pub(crate) index: Arc<RepositoryIndex>,
    /// The repository, after redirects.
    pub(crate) from: orkestra_egress::Target,
}

#[derive(Default)]
pub(crate) struct Cache {
    sources: HashMap<CacheKey, (u64, CachedSource)>,
    indexes: HashMap<CacheKey, (u64, CachedIndex)>,
    bytes: usize,
    turn: u64,
}

impl Cache {
    pub(crate) fn get(&mut self, key: &CacheKey) -> Option<CachedSource> {
        self.turn += 1;
        let (used, known) = self.sources.get_mut(key)?;
        *used = self.turn;
        Some(known.clone())
    }

    pub(crate) fn put(&mut self, key: CacheKey, known: CachedSource) {
        self.turn += 1;
        self.bytes += size(&known.artifact);
        if let Some((_, old)) = self.sources.insert(key, (self.turn, known)) {
            self.bytes -= size(&old.artifact).min(self.bytes);
        }
        while self.sources.len() > 1 && (self.sources.len() > MOST || self.bytes > MOST_BYTES) {
            let oldest = self.sources.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            if let Some((_, old)) = self.sources.remove(&key) {
                self.bytes -= size(&old.artifact).min(self.bytes);
            }
        }
    }

    pub(crate) fn index(&mut self, key: &CacheKey) -> Option<CachedIndex> {
        self.turn += 1;
        let (used, known) = self.indexes.get_mut(key)?;
        *used = self.turn;
        Some(known.clone())
    }

    pub(crate) fn put_index(&mut self, key: CacheKey, known: CachedIndex) {
        self.turn += 1;
        self.indexes.insert(key, (self.turn, known));
        while self.indexes.len() > MOST_INDEXES {
            let oldest = self.indexes.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.indexes.remove(&key);
        }
    }
}

fn size(artifact: &Artifact) -> usize {
    let documents = artifact.documents.iter();
    documents
        .map(|file| file.text.len() + file.name.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use crate::Fetched;

    use super::*;

    #[test]
    fn the_cache_forgets_what_was_not_used_for_longest() {
        let mut cache = Cache::default();
        let known = |bytes: usize| CachedSource {
            state: Validators::Chart(String::new()),
            artifact: Arc::new(Artifact {
                documents: vec![Fetched {
                    name: String::new(),
                    text: "x".repeat(bytes),
                }],
                ..Artifact::default()
            }),
        };
        for key in 0..3_u8 {
            cache.put([key; 32], known(20 << 20));
        }
        assert!(cache.get(&[0; 32]).is_some());
        cache.put([3; 32], known(20 << 20));
        assert!(cache.get(&[1; 32]).is_none(), "the oldest one is kept");
        assert!(cache.get(&[0; 32]).is_some());
        cache.put([0; 32], known(1));
        assert_eq!(cache.bytes, 2 * (20 << 20) + 1);
    }
}
