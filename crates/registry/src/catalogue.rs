//! The index of a registry's folder, for `ork list` and `ork search`: the artifacts that were pushed there.
//!
//! ```text
//!  push ──► entry-HASH     a separate tag for each push, with only one writer
//!       └─► latest         all entries, merged; rewritten until none is missing
//!  list ◄── latest, and every entry- tag that is not in it yet
//! ```
//!
//! A registry has no conditional write, so concurrent writes to a list under one tag can lose entries. Separate tags cannot
//! be lost: an entry that is missing from `latest` is found by its tag, and the next push merges it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;
use semver::Version;
use serde::{Deserialize, Serialize};

use super::{
    Client, Content, Descriptor, Digest, Error, Manifest, ManifestState, Reference, Repository,
    artifact::Kind,
    empty_config,
    manifest::media,
    referrers::{ATTEMPTS, pause},
};

/// The type of the artifact and of its layer.
pub const INDEX: &str = "application/vnd.orkestra.index.v1+json";
/// The name of the repository, next to the artifacts.
const NAME: &str = "index";
/// The tag of the merged list.
const LATEST: &str = "latest";
/// The prefix of the tags of entries.
const ENTRY: &str = "entry-";
/// The maximum length of a list, in bytes.
const MOST_BYTES: usize = 16 << 20;
/// The maximum number of entries that one read merges.
const MOST_MISSING: usize = 500;

/// The artifacts that were pushed to a folder of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Catalogue {
    /// The time of the last write.
    pub updated_at: Option<Timestamp>,
    /// Artifacts, by name.
    pub patterns: Vec<Pattern>,
    /// The tags of the merged entries.
    pub entries: BTreeSet<String>,
}

/// An artifact of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pattern {
    /// The last part of its repository's path.
    pub name: String,
    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The highest version in semantic versioning; without any, the most recently pushed tag.
    pub latest_version: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// Search terms.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The author.
    #[serde(default)]
    pub author: String,
    /// True if that version is deprecated.
    #[serde(default)]
    pub deprecated: bool,
    /// All tags that were pushed.
    #[serde(default)]
    pub versions: BTreeSet<String>,
    /// The time of the push of that version.
    #[serde(default)]
    pub pushed_at: Option<Timestamp>,
}

impl Pattern {
    /// True if a text is in its name, description, author or tags, in any case.
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let fields = [&self.name, &self.description, &self.author];
        let mut all = fields.into_iter().chain(&self.tags);
        all.any(|field| field.to_lowercase().contains(&text))
    }

    /// Returns the order by which the latest of two is chosen.
    fn rank(&self) -> (Option<Version>, Option<Timestamp>, &str) {
        let version = self.latest_version.trim_start_matches('v');
        (
            Version::parse(version).ok(),
            self.pushed_at,
            &self.latest_version,
        )
    }

    fn merge(&mut self, other: Self) {
        let versions = self.versions.union(&other.versions).cloned().collect();
        if other.rank() > self.rank() {
            *self = other;
        }
        self.versions = versions;
    }
}

impl Catalogue {
    /// Merges another catalogue. The order of merging does not matter.
    pub fn merge(&mut self, other: Self) {
        let mut all: BTreeMap<String, Pattern> = self
            .patterns
            .drain(..)
            .map(|pattern| (pattern.name.clone(), pattern))
            .collect();
        for pattern in other.patterns {
            match all.get_mut(&pattern.name) {
                Some(known) => known.merge(pattern),
                None => {
                    all.insert(pattern.name.clone(), pattern);
                }
            }
        }
        self.patterns = all.into_values().collect();
        self.entries.extend(other.entries);
        self.updated_at = self.updated_at.max(other.updated_at);
    }
}

impl Client {
    /// Returns the artifacts that were pushed to a folder.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the folder has no index.
    pub async fn catalogue(&self, folder: &Repository) -> Result<Catalogue, Error> {
        let index = place(folder)?;
        let (mut catalogue, _) = self.merged(&index).await?;
        self.merge_missing(&index, &mut catalogue).await?;
        Ok(catalogue)
    }

    /// Adds an artifact to the index of its folder.
    ///
    /// # Errors
    /// [`Error::Contended`] if others keep writing; the artifact is listed even then.
    pub async fn list_artifact(
        &self,
        folder: &Repository,
        pattern: Pattern,
        digest: &Digest,
    ) -> Result<(), Error> {
        let index = place(folder)?;
        let tag = entry_tag(&pattern, digest);
        let entry = Catalogue {
            updated_at: pattern.pushed_at,
            patterns: vec![pattern],
            entries: BTreeSet::from([tag.clone()]),
        };
        self.put_catalogue(&index, &tag, &entry).await?;
        for attempt in 0..ATTEMPTS {
            let (mut catalogue, known) = match self.merged(&index).await {
                Ok((catalogue, digest)) => (catalogue, Some(digest)),
                Err(error) if error.is_not_found() => (Catalogue::default(), None),
                Err(error) => return Err(error),
            };
            let is_listed = catalogue.entries.contains(&tag);
            catalogue.merge(entry.clone());
            if !self.merge_missing(&index, &mut catalogue).await? && is_listed {
                return Ok(());
            }
            let latest = tagged(&index, LATEST);
            let is_still = match self.look(&latest, known.as_ref()).await {
                Ok(seen) => seen == ManifestState::Unchanged,
                Err(error) if error.is_not_found() => known.is_none(),
                Err(error) => return Err(error),
            };
            if is_still {
                self.put_catalogue(&index, LATEST, &catalogue).await?;
            }
            pause(attempt).await;
        }
        Err(Error::Contended(format!("{index}:{LATEST}"), ATTEMPTS))
    }

    /// Returns the merged list, and the digest of its manifest.
    async fn merged(&self, index: &Repository) -> Result<(Catalogue, Digest), Error> {
        self.read_catalogue(index, LATEST).await
    }

    /// Merges entries that the list does not have yet; returns false if there are none.
    async fn merge_missing(
        &self,
        index: &Repository,
        catalogue: &mut Catalogue,
    ) -> Result<bool, Error> {
        let tags = self.tags(index).await?;
        let is_missing =
            |tag: &&String| tag.starts_with(ENTRY) && !catalogue.entries.contains(*tag);
        let missing: Vec<String> = tags
            .iter()
            .filter(is_missing)
            .take(MOST_MISSING)
            .cloned()
            .collect();
        let mut is_any = false;
        for tag in &missing {
            let mut entry = match self.read_catalogue(index, tag).await {
                Ok((entry, _)) => entry,
                // Some registries list a tag shortly before it can be read; its writer will merge it.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            is_any = true;
            entry.entries = BTreeSet::from([tag.clone()]);
            catalogue.merge(entry);
        }
        Ok(is_any)
    }

    async fn read_catalogue(
        &self,
        index: &Repository,
        tag: &str,
    ) -> Result<(Catalogue, Digest), Error> {
        let place = tagged(index, tag);
        let fetched = self.fetch(&place).await?;
        let wrong = |why: String| Error::Malformed {
            what: place.to_string(),
            why,
        };
        let Content::Manifest(manifest) = &fetched.content else {
            return Err(wrong("it is not an index of Orkestra's".to_owned()));
        };
        let layer = manifest
            .layers
            .iter()
            .find(|layer| layer.media_type == INDEX);
        let layer = layer.ok_or_else(|| wrong("it is not an index of Orkestra's".to_owned()))?;
        let bytes = self.fetch_blob(index, layer, MOST_BYTES).await?;
        let catalogue = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        Ok((catalogue, fetched.digest))
    }

    async fn put_catalogue(
        &self,
        index: &Repository,
        tag: &str,
        catalogue: &Catalogue,
    ) -> Result<(), Error> {
        let content = Bytes::from(serde_json::to_vec(catalogue).unwrap_or_default());
        let (config, empty) = empty_config();
        self.push_blob(index, &empty, |_| ()).await?;
        self.push_blob(index, &content, |_| ()).await?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: Some(INDEX.to_owned()),
            config,
            layers: vec![Descriptor::of(INDEX, &content)],
            subject: None,
            annotations: BTreeMap::new(),
        };
        let bytes = Bytes::from(serde_json::to_vec(&manifest).unwrap_or_default());
        self.put_manifest(&tagged(index, tag), media::MANIFEST, bytes)
            .await
            .map(drop)
    }
}

fn place(folder: &Repository) -> Result<Repository, Error> {
    folder.child(NAME).map_err(|error| Error::Malformed {
        what: folder.to_string(),
        why: error.to_string(),
    })
}

fn tagged(repository: &Repository, tag: &str) -> Reference {
    Reference {
        repository: repository.clone(),
        tag: Some(tag.into()),
        digest: None,
    }
}

/// Returns the tag of an entry. The same artifact under the same name and tag always has the same one.
fn entry_tag(pattern: &Pattern, digest: &Digest) -> String {
    let text = format!("{}\n{}\n{digest}", pattern.name, pattern.latest_version);
    let hash = Digest::of(text.as_bytes()).hex();
    format!("{ENTRY}{}", &hash[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(name: &str, version: &str, second: i64) -> Catalogue {
        let pattern = Pattern {
            name: name.to_owned(),
            kind: Some(Kind::Katalog),
            latest_version: version.to_owned(),
            description: format!("of {version}"),
            tags: vec!["Database".to_owned()],
            author: String::new(),
            deprecated: false,
            versions: BTreeSet::from([version.to_owned()]),
            pushed_at: Timestamp::from_second(second).ok(),
        };
        let entries = BTreeSet::from([entry_tag(&pattern, &Digest::of(b""))]);
        Catalogue {
            updated_at: pattern.pushed_at,
            patterns: vec![pattern],
            entries,
        }
    }

    #[test]
    fn the_order_of_merging_makes_no_difference_and_the_highest_version_is_the_latest() {
        let all = [
            catalogue("a", "v1.10.0", 1),
            catalogue("a", "1.9.0", 2),
            catalogue("b", "main", 3),
            catalogue("a", "edge", 4),
            catalogue("b", "next", 5),
        ];
        let merged = |order: &[usize]| {
            let mut result = Catalogue::default();
            for at in order {
                result.merge(all[*at].clone());
            }
            result
        };
        let expected = merged(&[0, 1, 2, 3, 4]);
        for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [3, 3, 0, 1, 4]] {
            let mut order = order.to_vec();
            order.extend([0, 1, 2, 3, 4]);
            assert_eq!(merged(&order), expected);
        }
        let latest: Vec<&str> = expected
            .patterns
            .iter()
            .map(|pattern| &*pattern.latest_version)
            .collect();
        assert_eq!(latest, ["v1.10.0", "next"]);
        assert_eq!(expected.patterns[0].versions.len(), 3);
        assert_eq!(expected.patterns[0].description, "of v1.10.0");
        assert!(expected.patterns[0].matches("dataBASE"));
    }

    #[test]
    fn a_list_of_other_tools_is_read() {
        let text = r#"{"updatedAt":"2025-01-01T00:00:00Z","patterns":[{"name":"a","latestVersion":"1","description":"d","tags":[],"author":"x"}]}"#;
        let read: Catalogue = serde_json::from_str(text).unwrap();
        assert_eq!(read.patterns[0].name, "a");
    }
}
