//! One file: the tests share a world of inputs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::compose::{Artifact, Fetched, SourceRecord};
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::definitions::Schemas;

const API: &str = "orkestra.orkspace.io/v1";

/// The inputs of a test.
#[derive(Default)]
struct World {
    motifs: BTreeMap<String, Arc<Value>>,
    sources: BTreeMap<String, SourceAnswer>,
    /// Every request, in order.
    asked: RefCell<Vec<String>>,
}

impl World {
    fn motif(mut self, motif: Value) -> Self {
        let name = motif["metadata"]["name"].as_str().unwrap().to_owned();
        self.motifs.insert(name, Arc::new(motif));
        self
    }

    fn source(mut self, id: &str, document: &Value) -> Self {
        let documents = vec![Fetched {
            name: "katalog.yaml".to_owned(),
            text: document.to_string(),
        }];
        let artifact = Artifact {
            url: id.to_owned(),
            digest: Artifact::digest_of(&documents),
            documents,
            ..Artifact::default()
        };
        let answer = SourceAnswer::Fetched(Arc::new(artifact));
        self.sources.insert(id.to_owned(), answer);
        self
    }

    fn digest(&self, id: &str) -> String {
        match &self.sources[id] {
            SourceAnswer::Fetched(artifact) => artifact.digest.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&self, request: &InputRequest) -> InputAnswer {
        let asked = match request {
            InputRequest::Source(source, _) => source.id.clone(),
            InputRequest::Motif(name) => format!("motif {name}"),
            InputRequest::Artifact(reference) => reference.clone(),
            InputRequest::File(path) => path.display().to_string(),
            InputRequest::Schemas(_) => "schemas".to_owned(),
        };
        self.asked.borrow_mut().push(asked);
        match request {
            InputRequest::Source(source, _) => {
                let known = self.sources.get(&source.id).cloned();
                InputAnswer::Source(
                    source.id.clone(),
                    known.unwrap_or(SourceAnswer::Awaited(None)),
                )
            }
            InputRequest::Motif(name) => {
                let motif = self.motifs.get(name).cloned().map(MotifAnswer::Object);
                let none = || MotifAnswer::Absent(format!("there is no Motif `{name}`"));
                InputAnswer::Motif(name.clone(), motif.unwrap_or_else(none))
            }
            InputRequest::Artifact(text) => InputAnswer::Artifact(text.clone(), Err("no".into())),
            InputRequest::File(path) => {
                let (is_missing, why) = (true, "it is not there".to_owned());
                InputAnswer::File(path.clone(), Err(UnreadFile { is_missing, why }))
            }
            InputRequest::Schemas(kinds) => InputAnswer::Schemas(kinds.clone(), Schemas::default()),
        }
    }

    fn run(&self, compilation: &mut Compilation) -> CompilationStep {
        compilation.run(|request| Some(self.answer(request)))
    }

    fn compile(&self, document: &Value) -> (CompilationStep, Compilation) {
        let mut compilation = of(document);
        (self.run(&mut compilation), compilation)
    }
}

fn of(document: &Value) -> Compilation {
    let kind = match document["kind"].as_str() {
        Some("Komposer") => Declaring::Komposer,
        _ => Declaring::Katalog,
    };
    let katalog = KatalogRef::new("shop".to_owned(), "k".to_owned()).of(kind);
    Compilation::new(
        Source::from_object(document).unwrap(),
        DocumentSite::Cluster(katalog),
    )
}

fn document(kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": API, "kind": kind, "metadata": { "name": "k", "namespace": "shop" }, "spec": spec })
}

fn motif(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": API, "kind": "Motif", "metadata": { "name": name, "namespace": "shop" }, "spec": spec })
}

fn types() -> Value {
    json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" })
}

/// Returns a Katalog whose operator creates children in this block.
fn ponds(block: &str) -> Value {
    let children = json!({ block: [{ "name": "x" }] });
    let entry = json!({ "apiTypes": types(), "operatorBox": { "onReconcile": children } });
    document("Katalog", &json!({ "crds": { "pond": entry } }))
}

fn compiled(step: CompilationStep) -> CompiledKatalog {
    match step {
        CompilationStep::Ended(result) => match *result {
            CompilationResult::Compiled(compiled) => *compiled,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn refused(step: CompilationStep) -> RefusedDocument {
    match step {
        CompilationStep::Ended(result) => match *result {
            CompilationResult::Refused(refused) => refused,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_refusal_has_its_reason_and_its_path() {
    let without_types = json!({ "crds": { "pond": { "crdFile": "pond.yaml" } } });
    let misspelt = json!({ "crds": { "pond": { "apiTypez": {} } } });
    let path = json!({ "crds": {}, "sources": { "files": ["./pond.yaml"] } });
    let imports =
        json!({ "crds": { "pond": { "apiTypes": types(), "imports": [{ "motif": "reeds" }] } } });
    for (spec, reason, parts) in [
        (
            without_types,
            KatalogReason::NoApiTypes,
            vec!["spec.crds.pond"],
        ),
        (
            misspelt,
            KatalogReason::InvalidRevision,
            vec!["spec.crds.pond.apiTypez"],
        ),
        (
            path,
            KatalogReason::InvalidRevision,
            vec!["ORK0611", "spec.sources.files[0]", "`pond.yaml` is a path"],
        ),
        (
            imports,
            KatalogReason::MotifNotFound,
            vec!["there is no Motif `reeds`"],
        ),
    ] {
        let (step, _) = World::default().compile(&document("Katalog", &spec));
        let refused = refused(step);
        assert_eq!(refused.reason(), reason, "{refused}");
        let message = refused.to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn everything_is_requested_once_and_schemas_last() {
    let outer = motif("outer", &json!({ "imports": [{ "motif": "inner" }] }));
    let children = json!({ "resources": { "configMaps": [{ "data": { "height": "1" } }] } });
    let world = World::default()
        .motif(outer)
        .motif(motif("inner", &children));
    let imports = json!([{ "motif": "outer" }]);
    let spec = json!({ "crds": { "pond": { "apiTypes": types(), "imports": imports }, "lake": {
        "apiTypes": { "group": "water.example", "version": "v1", "kind": "Lake", "plural": "lakes" }, "imports": imports,
    } } });
    let (step, compilation) = world.compile(&document("Katalog", &spec));
    let compiled = compiled(step);
    assert_eq!(compiled.plan.operators[0].children.len(), 1);
    assert_eq!(
        *world.asked.borrow(),
        ["motif outer", "motif inner", "schemas"]
    );
    let used: Vec<&String> = compiled.used.motifs.keys().collect();
    assert_eq!(used, ["inner", "outer"]);
    assert_eq!(compilation.motifs().len(), 2);
    let kinds: Vec<String> = compilation
        .kinds()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(kinds, ["Lake.water.example", "Pond.water.example"]);
}

#[test]
fn an_object_of_the_cluster_refers_to_no_files() {
    let imports = json!([{ "motif": "./a.yaml" }, { "motif": "b.yaml" }, { "motif": "c/d" }, { "motif": "e" }]);
    let world = World::default();
    let spec = json!({ "imports": imports, "crds": {} });
    drop(world.compile(&document("Katalog", &spec)));
    assert_eq!(*world.asked.borrow(), ["motif e", "schemas"]);
}

fn komposer(more: &Value) -> Value {
    let mut spec = json!({ "sources": { "configMaps": [{ "name": "s" }] } });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    document("Komposer", &spec)
}

const SOURCE: &str = "configmap/s";

#[test]
fn a_source_that_is_not_there_leaves_it_waiting_and_its_answer_continues_it() {
    let mut compilation = of(&komposer(&json!({})));
    let CompilationStep::Waiting(missing) = World::default().run(&mut compilation) else {
        panic!("it does not wait");
    };
    assert_eq!(missing.reason(), KatalogReason::Fetching);
    let id = compilation.requests()[0].id.clone();
    assert_eq!(missing.to_string(), format!("fetching {id}"));

    let failed = SourceAnswer::Awaited(Some("it is not permitted".to_owned()));
    compilation.answer(InputAnswer::Source(id.clone(), failed));
    let CompilationStep::Waiting(missing) = compilation.step() else {
        panic!("it does not wait");
    };
    assert_eq!(missing.reason(), KatalogReason::SourceFailed);
    assert!(
        missing.to_string().contains("it is not permitted"),
        "{missing}"
    );

    let world = World::default().source(&id, &ponds("configMaps"));
    compilation.answer(InputAnswer::Source(id.clone(), world.sources[&id].clone()));
    let compiled = compiled(world.run(&mut compilation));
    assert_eq!(compiled.kind, Declaring::Komposer);
    assert_eq!(compiled.used.sources[0].operators, ["pond"]);
    assert_eq!(*world.asked.borrow(), ["schemas"]);
}

#[test]
fn a_source_that_cannot_be_fetched_is_a_problem_where_nothing_waits_for_it() {
    let mut compilation = of(&komposer(&json!({})));
    let CompilationStep::Need(requests) = compilation.step() else {
        panic!("it needs nothing");
    };
    let [InputRequest::Source(request, None)] = &*requests else {
        panic!("{requests:?}");
    };
    let problem = request.problem(
        orkestra_language::diagnostics::Code::Unreadable,
        "it is gone",
    );
    let failed = SourceAnswer::Failed(Box::new(problem));
    compilation.answer(InputAnswer::Source(request.id.clone(), failed));
    assert!(
        refused(compilation.step())
            .to_string()
            .contains("it is gone")
    );
}

/// Returns the rules of a revision in force that was compiled from these inputs.
fn running(world: &World, document: &Value) -> CompilationRules {
    let before = compiled(world.compile(document).0);
    CompilationRules {
        in_force: Some(RevisionInForce {
            plan: before.plan,
            used: before.used,
        }),
        ..CompilationRules::default()
    }
}

fn resources(compiled: &CompiledKatalog) -> Vec<String> {
    let children = compiled.plan.operators[0].children.iter();
    children.map(|child| child.kind.kind.to_string()).collect()
}

#[test]
fn a_revision_of_a_source_that_needs_more_is_held_back_until_it_is_approved() {
    let id = source_id();
    let old = World::default().source(&id, &ponds("configMaps"));
    let new = World::default().source(&id, &ponds("secrets"));
    let rules = running(&old, &komposer(&json!({})));
    let mut compilation = of(&komposer(&json!({}))).under(rules.clone());
    let held = compiled(new.run(&mut compilation));
    assert_eq!(resources(&held), ["ConfigMap"]);
    assert_eq!(held.used.artifacts[&id].digest, old.digest(&id));
    let [unapproved] = compilation.unapproved() else {
        panic!("{:?}", compilation.unapproved());
    };
    assert_eq!(
        (&unapproved.source, &unapproved.digest),
        (&id, &new.digest(&id))
    );

    // By the document, or by an annotation.
    let by_document = of(&komposer(&json!({ "approve": [new.digest(&id)] }))).under(rules.clone());
    let by_annotation = of(&komposer(&json!({}))).under(CompilationRules {
        approved: [new.digest(&id)].into(),
        ..rules
    });
    for mut compilation in [by_document, by_annotation] {
        assert_eq!(resources(&compiled(new.run(&mut compilation))), ["Secret"]);
        assert!(compilation.unapproved().is_empty());
    }
}

#[test]
fn a_revision_of_a_source_that_protects_less_is_held_back() {
    let id = source_id();
    let with = |security: Value, entry: Value| {
        let mut katalog = ponds("configMaps");
        katalog["spec"]["security"] = security;
        katalog["spec"]["crds"]["pond"]["deletionProtection"] = entry;
        World::default().source(&id, &katalog)
    };
    let (strict, none) = (
        json!({ "deletionProtection": { "strictMode": true } }),
        Value::Null,
    );
    let rules = running(&with(strict.clone(), none.clone()), &komposer(&json!({})));
    for (security, entry) in [
        (none.clone(), none.clone()),
        (
            json!({ "deletionProtection": { "enabled": false } }),
            none.clone(),
        ),
        (json!({ "deletionProtection": {} }), none.clone()),
        (strict.clone(), json!({ "protectCRs": false })),
        (strict.clone(), json!({ "strictMode": false })),
    ] {
        let mut compilation = of(&komposer(&json!({}))).under(rules.clone());
        let held = compiled(with(security.clone(), entry).run(&mut compilation));
        assert!(held.plan.security.deletion.is_some_and(|one| one.strict));
        let [unapproved] = compilation.unapproved() else {
            panic!("{security}: {:?}", compilation.unapproved());
        };
        assert!(
            unapproved.rules[0].starts_with("less protection"),
            "{unapproved}"
        );
    }
    // The composition itself decides for all of its sources.
    let own = json!({ "security": { "deletionProtection": { "enabled": false } } });
    let mut compilation = of(&komposer(&own)).under(rules);
    let found = compiled(with(strict, none).run(&mut compilation));
    assert!(found.plan.security.deletion.is_none() && compilation.unapproved().is_empty());
}

/// What is held back is replaced by what runs, and that is compared again: it may bring another revision to light.
#[test]
fn a_plan_is_compared_until_nothing_more_is_held_back() {
    let id = source_id();
    let imports = |motif: &str| {
        let entry = json!({ "apiTypes": types(), "imports": [{ "motif": motif }], "operatorBox": { "onReconcile": {} } });
        document("Katalog", &json!({ "crds": { "pond": entry } }))
    };
    let reeds = |block: &str| {
        motif(
            "reeds",
            &json!({ "resources": { block: [{ "name": "x" }] } }),
        )
    };
    let old = World::default()
        .source(&id, &imports("reeds"))
        .motif(reeds("configMaps"));
    // The new revision of the source uses another Motif, and the one that the old revision uses has changed as well.
    let stones = motif(
        "stones",
        &json!({ "resources": { "secrets": [{ "name": "x" }] } }),
    );
    let new = World::default().source(&id, &imports("stones"));
    let new = new.motif(stones).motif(reeds("serviceAccounts"));
    let rules = running(&old, &komposer(&json!({})));
    let mut compilation = of(&komposer(&json!({}))).under(rules);
    let held = compiled(new.run(&mut compilation));
    assert_eq!(resources(&held), ["ConfigMap"]);
    let unapproved = compilation.unapproved().iter();
    let unapproved: Vec<&str> = unapproved.map(|one| &*one.source).collect();
    assert_eq!(unapproved, [&*id, "motif/reeds"]);
    assert_eq!(
        held.used.motifs["reeds"].as_deref(),
        Some(&reeds("configMaps"))
    );
}

#[test]
fn a_lock_of_an_object_is_checked_once_its_sources_are_known() {
    let id = source_id();
    let world = World::default().source(&id, &ponds("configMaps"));
    let (step, _) = world.compile(&komposer(&json!({ "lock": "required" })));
    let unlocked = refused(step);
    assert_eq!(unlocked.reason(), KatalogReason::NotLocked);
    let locked = json!({ "lock": "required", "locked": { id.clone(): world.digest(&id) } });
    compiled(world.compile(&komposer(&locked)).0);
}

#[test]
fn an_invalid_katalog_with_sources_still_names_them() {
    let spec = json!({ "crds": { "pond": { "apiTypez": {} } }, "sources": { "configMaps": [{ "name": "s" }] } });
    let world = World::default();
    let (step, compilation) = world.compile(&document("Katalog", &spec));
    assert_eq!(refused(step).reason(), KatalogReason::InvalidRevision);
    assert_eq!(compilation.requests().len(), 1);
    assert_eq!(*world.asked.borrow(), ["schemas"]);
}

#[test]
fn the_same_inputs_have_the_same_hash_in_any_order() {
    let answers = [
        InputAnswer::Source("a".to_owned(), SourceAnswer::Awaited(None)),
        InputAnswer::File("b".into(), Ok("text".to_owned())),
    ];
    let hash = |answers: &[&InputAnswer]| {
        let mut compilation = of(&ponds("configMaps"));
        for answer in answers {
            compilation.answer((*answer).clone());
        }
        compilation.inputs_hash()
    };
    assert_eq!(
        hash(&[&answers[0], &answers[1]]),
        hash(&[&answers[1], &answers[0]])
    );
    assert_ne!(hash(&[&answers[0]]), hash(&[&answers[0], &answers[1]]));
}

fn source_id() -> String {
    let mut compilation = of(&komposer(&json!({})));
    drop(compilation.step());
    let id = compilation.requests()[0].id.clone();
    assert_eq!(id, SOURCE);
    id
}

#[test]
fn only_the_operators_of_a_source_count_for_what_its_new_revision_adds() {
    let record = |source: &str, operators: &[&str]| SourceRecord {
        source: source.to_owned(),
        affected: operators.iter().map(|name| (*name).to_owned()).collect(),
        ..SourceRecord::default()
    };
    let plan = |kinds: &[&str]| {
        let entry = |kind: &&str| {
            let name = kind.to_lowercase();
            let types = json!({ "group": "water.example", "version": "v1", "kind": kind, "plural": format!("{name}s") });
            (name, json!({ "apiTypes": types }))
        };
        let crds: serde_json::Map<String, Value> = kinds.iter().map(entry).collect();
        compiled(
            World::default()
                .compile(&document("Katalog", &json!({ "crds": crds })))
                .0,
        )
        .plan
    };
    let (before, after) = (plan(&["Pond"]), plan(&["Pond", "Lake"]));
    let old = [record("ponds", &["pond"]), record("map", &[])];
    let added =
        |source, new: &[SourceRecord]| approval::added(source, (&after, new), (&before, &old));
    let names_lakes = |lines: &[String]| lines.iter().any(|line| line.contains("lakes"));
    let same = [record("ponds", &["pond"]), record("map", &["lake"])];
    assert!(added("ponds", &same).is_empty());
    assert!(names_lakes(&added("map", &same)));
    let moved = [record("ponds", &["pond", "lake"]), record("map", &[])];
    assert!(names_lakes(&added("ponds", &moved)));
    let unapproved = Unapproved {
        source: "ponds".to_owned(),
        digest: "sha256:77".to_owned(),
        rules: vec!["get lakes".to_owned(); 13],
    };
    let text = unapproved.to_string();
    assert!(
        text.contains("; and 3 more; add sha256:77 to `spec.approve`"),
        "{text}"
    );
}
