//! The Motifs that a Katalog of the cluster uses: pure.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use orkestra_core::{
    api::names,
    document::{Source, read_what_can_be},
    plan::{self, Library, Part, Reference},
};
use serde_json::{Map, Value};

use super::super::revisions::essence;

/// The requested Motifs, by name, with those that exist.
pub(crate) type Asked = Vec<(String, Option<Arc<Value>>)>;

/// The inputs of a Katalog from elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) library: Library,
    pub(crate) asked: Asked,
}

/// Looks up everything that a Katalog's document refers to; `motif` returns a Motif of its namespace by name, or the reason
/// why there is none.
pub(crate) fn take(document: &Value, motif: &dyn Fn(&str) -> Result<Arc<Value>, String>) -> Taken {
    catch_unwind(AssertUnwindSafe(|| look_up(document, motif))).unwrap_or_default()
}

fn look_up(document: &Value, motif: &dyn Fn(&str) -> Result<Arc<Value>, String>) -> Taken {
    let mut taken = Taken::default();
    let Ok(source) = Source::from_object(document) else {
        return taken;
    };
    let Some(katalog) = read_what_can_be(&source).0 else {
        return taken;
    };
    loop {
        let missing = taken.library.missing(&katalog.spec);
        if missing.is_empty() {
            return taken;
        }
        for reference in missing {
            taken.one(reference, motif);
        }
    }
}

impl Taken {
    fn one(&mut self, reference: Reference, motif: &dyn Fn(&str) -> Result<Arc<Value>, String>) {
        let name = reference.text.trim().to_owned();
        if reference.part == Part::Motif && plan::is_of_registry(&name) {
            let why = "Motifs of registries are read for files only: apply the Motif to the cluster, and import it by its name";
            self.library.put_absent(reference, why);
            return;
        }
        if reference.part != Part::Motif || !is_name(&name) {
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
pub(crate) fn stored(asked: &Asked) -> Map<String, Value> {
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
        let taken = take(&katalog(&json!([{ "motif": "outer" }])), &motif);
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
        take(&katalog(&imports), &motif);
        assert_eq!(*asked.borrow(), ["e"]);
    }
}
