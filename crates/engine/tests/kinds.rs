//! The objects and permissions of each kind with a short form. A Katalog sets every field of the kind; its objects are checked
//! against Kubernetes' own schemas, and its permissions against the expected ones.
//!
//! The same Katalogs run on a genuine control plane: `tests/it/kinds/mod.rs`. `UPDATE=1 cargo test -p orkestra-engine --test kinds`
//! writes the expected objects again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read is a fault of the test"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::reconcile::preview::{Assumptions, Preview, preview};
use orkestra_language::{
    api::{Lifecycle, shape::Shape},
    diagnostics::Code,
    document::{parse_stream, read_stream},
};
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, Plan, definitions::Schemas, rbac};
use serde_json::{Value, json};

/// Fields that cannot be combined with those of the fixture, or that another test covers.
const ELSEWHERE: [&str; 8] = [
    "forEach",
    "namespace",
    "onFalse",
    "or",
    "reconcile",
    "sleep",
    "when",
    "autoscale",
];

/// Fields of Secrets and copies, which other tests cover. They cannot be combined with the fields of the fixture.
const OF_DATA: [&str; 10] = [
    "allowedSources",
    "fromConfigMap",
    "fromLimitRange",
    "fromNamespace",
    "fromNetworkPolicy",
    "fromResourceQuota",
    "fromSecret",
    "once",
    "rotateAfter",
    "tls",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/inputs/kinds")
}

/// Returns the lists of a block, with the supported fields of their entries.
fn lists() -> BTreeMap<String, BTreeSet<String>> {
    let Shape::Object(block) = Shape::of::<Lifecycle>() else {
        panic!("a block is a map");
    };
    let fields = block.fields.iter().filter(|(name, field)| {
        field.works() && !["custom", "external", "or", "when"].contains(&name.as_str())
    });
    let entry = |(name, field): (&String, &orkestra_language::api::shape::Field)| {
        let Shape::List(item) = &field.shape else {
            panic!("{name} is a list");
        };
        let Shape::Object(item) = &**item else {
            panic!("{name} is a list of maps");
        };
        let works = item.fields.iter().filter(|(_, field)| field.works());
        let works = works.map(|(name, _)| name.clone());
        (name.clone(), works.collect())
    };
    fields.map(entry).collect()
}

struct Fixture {
    entries: Vec<Value>,
    plan: Plan,
    preview: Preview,
}

fn fixture(list: &str) -> Fixture {
    let path = folder().join(format!("{list}.yaml"));
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("GROUP", "water.example");
    let sources = parse_stream(list, &text).sources;
    let [katalog, cr] = &sources[..] else {
        panic!("{list}: a Katalog and a custom resource");
    };
    let tree = katalog.tree.to_json();
    let crds = tree["spec"]["crds"].as_object().unwrap();
    let declared = &crds.values().next().unwrap()["operatorBox"];
    let block = declared.as_object().unwrap().values().next().unwrap();
    let entries = block[list].as_array().unwrap().clone();
    let (documents, warnings) = read_stream(list, text.split("\n---\n").next().unwrap()).unwrap();
    assert!(warnings.is_empty(), "{list}: {warnings:?}");
    let reference = KatalogRef::new("gardens".to_owned(), "kinds".to_owned());
    let spec = &documents.katalogs[0].spec;
    let compiled = compile::katalog(&reference, spec, &Schemas::default(), &Library::default());
    let (plan, mut warnings) = compiled.unwrap_or_else(|problems| panic!("{list}: {problems}"));
    // The roles are declared by other fixtures.
    warnings.retain(|warning| warning.code != Code::UnknownRole);
    assert!(warnings.is_empty(), "{list}: {warnings:?}");
    let mut cr = cr.tree.to_json();
    cr["metadata"]["namespace"] = json!("east");
    let assumed = Assumptions {
        cr: Node::from(&cr),
        children: &[],
        cross: &[],
        version: None,
        scopes: &BTreeMap::new(),
        now: jiff::Timestamp::UNIX_EPOCH,
        seen_as: None,
        calls: &BTreeMap::new(),
    };
    let preview = preview(&plan.operators[0], assumed).unwrap();
    Fixture {
        entries,
        plan,
        preview,
    }
}

#[test]
fn every_kind_has_a_fixture_that_sets_every_field() {
    for (list, fields) in lists() {
        let Fixture { entries, .. } = fixture(&list);
        let set: BTreeSet<String> = entries
            .iter()
            .flat_map(|entry| entry.as_object().unwrap().keys().cloned())
            .collect();
        let is_missing = |field: &&String| {
            let elsewhere = ELSEWHERE.iter().chain(&OF_DATA);
            !set.contains(*field) && !elsewhere.into_iter().any(|known| known == field)
        };
        let missing: Vec<&String> = fields.iter().filter(is_missing).collect();
        // Fields that exclude each other, such as a bound and a profile, are set in separate entries.
        assert!(missing.is_empty(), "{list}: {missing:?}");
    }
}

#[test]
fn every_kind_makes_the_expected_objects_with_the_expected_permissions() {
    let mut wrong = Vec::new();
    for list in lists().into_keys() {
        let Fixture { plan, preview, .. } = fixture(&list);
        assert!(
            preview.failures.is_empty(),
            "{list}: {:?}",
            preview.failures
        );
        assert!(preview.left_out.is_empty(), "{list}");
        let mut found = String::new();
        let rights = json!({ "rights": rbac::rules(&plan) });
        let objects = preview.objects.iter().map(Node::to_json);
        for document in objects.chain([rights]) {
            found.push_str("---\n");
            found.push_str(&serde_saphyr::to_string(&document).unwrap());
        }
        let file = folder().join(format!("expected/{list}.yaml"));
        if env::var_os("UPDATE").is_some() {
            fs::write(&file, &found).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != found {
            wrong.push(format!("== {list}\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
