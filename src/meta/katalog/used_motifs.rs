//! The Motifs that a Katalog of the cluster uses: pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use orkestra_core::{
    api::{KatalogSpec, KomposerSpec, LockMode, names},
    compose::{
        Artifacts, Base, Composition, Lock, Merged, ResolvedComposition, SourceRecord,
        SourceRequest, is_pinned, merge,
    },
    diagnostics::Diagnostics,
    document::{DocumentKind, Source, read_komposer, read_what_can_be},
    scope::{self, Library, Reference, ReferenceKind},
};
use serde_json::{Map, Value};

use super::super::revisions::essence;

/// The requested Motifs, by name, with those that exist.
pub(crate) type RequestedMotifs = Vec<(String, Option<Arc<Value>>)>;

/// The inputs of a Katalog from elsewhere.
#[derive(Debug, Default)]
pub(crate) struct UsedMotifs {
    pub(crate) library: Library,
    pub(crate) asked: RequestedMotifs,
    /// The composition; none for a Katalog without sources.
    pub(crate) composed: Option<Composed>,
}

/// A composition, as far as its sources are known.
#[derive(Debug)]
pub(crate) struct Composed {
    /// All sources that it needs, as far as known.
    pub(crate) requests: Vec<SourceRequest>,
    /// The artifacts that it is merged from.
    pub(crate) used: Artifacts,
    pub(crate) merged: Result<Merged, Diagnostics>,
    /// The rules on the digests of its sources.
    pub(crate) locks: Locks,
}

/// The rules of a Komposer on the digests of its sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    /// Whether each source must be locked.
    pub(crate) required: bool,
    pub(crate) locked: BTreeMap<String, String>,
    pub(crate) approved: BTreeSet<String>,
}

impl Composed {
    /// Returns the merged composition, if all of its sources are known and it is valid.
    pub(crate) fn resolved(&self) -> Option<&ResolvedComposition> {
        match &self.merged {
            Ok(Merged::Done(resolved, _)) => Some(resolved),
            _ => None,
        }
    }
}

impl Locks {
    fn of(spec: &KomposerSpec) -> Self {
        Self {
            required: spec.lock == Some(LockMode::Required),
            locked: spec.locked.clone(),
            approved: spec.approve.iter().cloned().collect(),
        }
    }

    /// Returns why a source is refused.
    pub(crate) fn refusal(&self, records: &[SourceRecord]) -> Option<String> {
        records.iter().find_map(|record| {
            let SourceRecord { source, digest, .. } = record;
            match self.locked.get(source) {
                Some(locked) if locked == digest => None,
                Some(locked) => Some(format!(
                    "source {source} has the digest {digest}; `spec.locked` has {locked}"
                )),
                None if self.required && !is_pinned(source, digest) => Some(format!(
                    "source {source} is not locked, and `spec.lock` is `required`: add its digest {digest} to `spec.locked`"
                )),
                None => None,
            }
        })
    }
}

/// Merges a composition with the artifacts that are known.
fn compose(composition: &Composition, known: &Artifacts, locks: Locks) -> Composed {
    let mut composed = Composed {
        requests: Vec::new(),
        used: Artifacts::new(),
        merged: Ok(Merged::Need(Vec::new())),
        locks,
    };
    loop {
        composed.merged = merge(composition, &composed.used);
        let Ok(Merged::Need(requests)) = &composed.merged else {
            return composed;
        };
        let before = composed.used.len();
        for request in requests {
            if let Some(artifact) = known.get(&request.id) {
                composed
                    .used
                    .insert(request.id.clone(), Arc::clone(artifact));
            }
        }
        let known = &composed.requests;
        let is_new = |request: &&SourceRequest| known.iter().all(|known| known.id != request.id);
        let new: Vec<SourceRequest> = requests.iter().filter(is_new).cloned().collect();
        composed.requests.extend(new);
        if composed.used.len() == before {
            return composed;
        }
    }
}

/// Looks up everything that a document refers to; `known` has the artifacts of its sources, and `motif` returns a Motif of its
/// namespace by name, or the reason why there is none.
pub(crate) fn take(
    document: &Value,
    known: &Artifacts,
    motif: &dyn Fn(&str) -> Result<Arc<Value>, String>,
) -> UsedMotifs {
    catch_unwind(AssertUnwindSafe(|| look_up(document, known, motif))).unwrap_or_default()
}

fn look_up(
    document: &Value,
    known: &Artifacts,
    motif: &dyn Fn(&str) -> Result<Arc<Value>, String>,
) -> UsedMotifs {
    let mut taken = UsedMotifs::default();
    let Ok(source) = Source::from_object(document) else {
        return taken;
    };
    let namespace = document
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let base = Base::Cluster {
        namespace: namespace.unwrap_or_default().to_owned(),
    };
    let Some(spec) = taken.spec_of(&source, base, known) else {
        return taken;
    };
    loop {
        let mut missing = taken.library.missing(&spec);
        if let Some(resolved) = taken.composed.as_ref().and_then(Composed::resolved) {
            let asked = missing.len();
            missing = resolved.fill(&mut taken.library, missing);
            if missing.is_empty() && asked > 0 {
                continue;
            }
        }
        if missing.is_empty() {
            return taken;
        }
        for reference in missing {
            taken.one(reference, motif);
        }
    }
}

impl UsedMotifs {
    /// Returns the spec of the document: of a composition the merged one, as far as its sources are known.
    fn spec_of(&mut self, source: &Source, base: Base, known: &Artifacts) -> Option<KatalogSpec> {
        let composed = if DocumentKind::of(source) == Some(DocumentKind::Komposer) {
            match read_komposer(source) {
                Ok((komposer, _)) => {
                    let mut composition = Composition::of_komposer(&komposer, base);
                    // Checked once everything is known, for a reason of its own.
                    (composition.lock, composition.requires_lock) = (Lock::default(), false);
                    compose(&composition, known, Locks::of(&komposer.spec))
                }
                Err(problems) => Composed {
                    requests: Vec::new(),
                    used: Artifacts::new(),
                    merged: Err(problems),
                    locks: Locks::default(),
                },
            }
        } else {
            let katalog = read_what_can_be(source).0?;
            let Some(composition) = Composition::of_katalog(&katalog, base) else {
                return Some(katalog.spec);
            };
            compose(&composition, known, Locks::default())
        };
        let composed = self.composed.insert(composed);
        composed.resolved().map(ResolvedComposition::spec).cloned()
    }

    fn one(&mut self, reference: Reference, motif: &dyn Fn(&str) -> Result<Arc<Value>, String>) {
        let name = reference.text.trim().to_owned();
        if reference.part == ReferenceKind::Motif && scope::is_of_registry(&name) {
            let why = "Motifs of registries are read for files only: apply the Motif to the cluster, and import it by its name";
            self.library.put_absent(reference, why);
            return;
        }
        if reference.part != ReferenceKind::Motif || !is_name(&name) {
            let why = "files are not available in the cluster: apply a Motif that holds this, and import it by its name";
            self.library.put_absent(reference, why);
            return;
        }
        match motif(&name) {
            Ok(object) => {
                let called = format!("motif/{name}");
                self.library.put_object(reference, &called, &object);
                self.asked.push((name, Some(object)));
            }
            Err(why) => {
                self.library.put_absent(reference, why);
                self.asked.push((name, None));
            }
        }
    }
}

/// True if a reference is the name of an object, and not the path of a file.
fn is_name(text: &str) -> bool {
    let is_file = [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| text.ends_with(ending));
    !is_file && names::check_dns1123_subdomain(text).is_ok()
}

/// Returns what is stored beside a Katalog's document, so that it can run again even if the Motifs change or are deleted: those that it
/// uses, by name, reduced to what affects operators.
pub(crate) fn stored(asked: &RequestedMotifs) -> Map<String, Value> {
    let found = asked.iter().filter_map(|(name, motif)| {
        let motif = motif.as_ref()?;
        Some((name.clone(), essence(motif)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn katalog(imports: &Value) -> Value {
        json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
            "metadata": { "name": "k", "namespace": "shop" },
            "spec": { "imports": imports, "crds": {} },
        })
    }

    #[test]
    fn motifs_that_motifs_import_are_looked_up_too() {
        let motif = |name: &str| match name {
            "outer" => Ok(Arc::new(json!({
                "apiVersion": "orkestra.orkspace.io/v1", "kind": "Motif", "metadata": { "name": "outer" },
                "spec": { "imports": [{ "motif": "inner" }] },
            }))),
            other => Err(format!("there is no {other}")),
        };
        let taken = take(
            &katalog(&json!([{ "motif": "outer" }])),
            &Artifacts::new(),
            &motif,
        );
        let asked: Vec<_> = (taken.asked.iter())
            .map(|(name, found)| (name.as_str(), found.is_some()))
            .collect();
        assert_eq!(asked, [("outer", true), ("inner", false)]);
        assert_eq!(stored(&taken.asked).keys().collect::<Vec<_>>(), ["outer"]);
    }

    #[test]
    fn files_are_not_looked_up() {
        let asked = std::cell::RefCell::new(Vec::new());
        let motif = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            Err(String::new())
        };
        let imports = json!([{ "motif": "./a.yaml" }, { "motif": "b.yaml" }, { "motif": "c/d" }, { "motif": "e" }]);
        take(&katalog(&imports), &Artifacts::new(), &motif);
        assert_eq!(*asked.borrow(), ["e"]);
    }
}
