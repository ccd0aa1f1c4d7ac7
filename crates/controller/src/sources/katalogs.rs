//! The Katalogs of the cluster as sources of Komposers.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_compiler::{
    compilation::essence,
    compose::{Artifact, Fetched},
};
use orkestra_language::api::{LabelOperator, sources::KatalogSelector};
use orkestra_plan::KatalogRef;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::FetchError;
use crate::object::KatalogObject;

/// The known Katalogs and Komposers.
#[derive(Debug)]
pub(crate) struct Katalogs {
    known: Mutex<BTreeMap<KatalogRef, Arc<KatalogObject>>>,
    /// Counts changes that matter to Komposers.
    changed: watch::Sender<u64>,
}

impl Katalogs {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::channel(0).0,
        }
    }

    /// Adds a Katalog, or replaces the one of that name.
    pub(crate) fn put(&self, key: &KatalogRef, object: &Arc<KatalogObject>) {
        let mut known = self.known.lock();
        let before = known.insert(key.clone(), Arc::clone(object));
        drop(known);
        let is_same = |before: &KatalogObject| {
            before.suspended == object.suspended
                && before.metadata.labels == object.metadata.labels
                && *before.document == *object.document
        };
        if !before.is_some_and(|before| is_same(&before)) {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Removes a Katalog.
    pub(crate) fn remove(&self, key: &KatalogRef) {
        let mut known = self.known.lock();
        let before = known.remove(key);
        drop(known);
        if before.is_some() {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// A receiver that changes when a Katalog is added, changed, suspended, resumed or deleted.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the Katalogs of a namespace with that name, or else those that the selector matches, as one artifact.
    ///
    /// # Errors
    /// There is none, or one of them is not suspended.
    pub(crate) fn artifact(
        &self,
        namespace: &str,
        name: Option<&str>,
        selector: Option<&KatalogSelector>,
    ) -> Result<Artifact, FetchError> {
        let refused = |message: String| FetchError {
            message,
            permanent: true,
        };
        let known = self.known.lock();
        let is_meant = |object: &KatalogObject| match (name, selector) {
            (Some(name), _) => object.metadata.name.as_deref() == Some(name),
            (None, Some(selector)) => matches(selector, object.metadata.labels.as_ref()),
            (None, None) => false,
        };
        let found: Vec<&Arc<KatalogObject>> = (known.iter())
            .filter(|(key, object)| {
                **key == KatalogRef::new(namespace.to_owned(), key.name.clone()) && is_meant(object)
            })
            .map(|(_, object)| object)
            .collect();
        if found.is_empty() {
            return Err(refused(match name {
                Some(name) => format!("there is no Katalog `{name}` in namespace {namespace}"),
                None => format!("no Katalog in namespace {namespace} has these labels"),
            }));
        }
        let mut documents = Vec::with_capacity(found.len());
        for object in found {
            let name = object.metadata.name.clone().unwrap_or_default();
            if !object.suspended {
                return Err(refused(format!(
                    "Katalog `{name}` is not suspended: set `spec.suspend: true`, so that its operators run only once"
                )));
            }
            if let Some(why) = &object.document.unread {
                return Err(refused(format!("Katalog `{name}` cannot be read: {why}")));
            }
            let text = serde_json::to_string_pretty(&essence(&object.document.tree()));
            documents.push(Fetched {
                name,
                text: text.unwrap_or_default(),
            });
        }
        let url = match name {
            Some(_) => "katalog".to_owned(),
            None => "katalogs".to_owned(),
        };
        Ok(Artifact {
            digest: Artifact::digest_of(&documents),
            url,
            documents,
            ..Artifact::default()
        })
    }
}

/// True if the labels have everything that a selector requires.
fn matches(selector: &KatalogSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let KatalogSelector {
        match_labels,
        match_expressions,
    } = selector;
    match_labels
        .iter()
        .all(|(key, wanted)| value(key) == Some(wanted))
        && match_expressions.iter().all(|one| {
            let value = value(&one.key);
            let is_one = value.is_some_and(|value| one.values.contains(value));
            match one.operator {
                LabelOperator::In => is_one,
                LabelOperator::NotIn => !is_one,
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
            }
        })
}
