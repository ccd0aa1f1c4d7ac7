//! Compares the result of an applied custom resource with the expected objects.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use orkestra_author::render::{RenderRequest, Show, render, to_json};
use orkestra_engine::reconcile::inventory::Inventory;
use orkestra_language::api::names::{self, LABEL_OWNER_UID};
use orkestra_loader::files::validate;
use serde_json::{Value, json};

use super::Example;
use crate::scenario::is_ready;

impl Example<'_> {
    /// Checks that the custom resources of the file are ready, that all objects of `expected/` exist with the expected content,
    /// and that another pass would change neither children nor statuses.
    ///
    /// Only the keys of Secrets are compared, since values may be random.
    pub(crate) async fn look(&self, file: &str) -> Result<()> {
        let live = self.live(file).await?;
        for resource in &live {
            ensure!(
                is_ready(resource),
                "it is not ready: {}",
                resource["status"]
            );
        }
        let pass = self.pass(file, &live).await?;
        let enriched = self.is_enriched().await;
        for resource in &live {
            let uid = &resource["metadata"]["uid"];
            let written = pass.iter().find(|one| &one["metadata"]["uid"] == uid);
            let written = written.context("it was not rendered")?;
            let [reported, wanted] = [resource, written].map(|one| without_times(&one["status"]));
            ensure!(
                reported == wanted || enriched,
                "its status is {reported}, and should be {wanted}"
            );
        }
        let mut promised = documents(&fs::read_to_string(self.expected(file))?)?;
        promised.extend(pass);
        promised.retain(|one| {
            !live
                .iter()
                .any(|resource| identity(resource) == identity(one))
        });
        self.hold(&promised).await
    }

    /// Returns true if an operator uses `enrich`: a status may then show data that a pass over kubectl's output lacks. The README
    /// of such an example waits for the status.
    async fn is_enriched(&self) -> bool {
        let found = validate(std::slice::from_ref(&self.folder)).await;
        let mut operators = found
            .katalogs
            .iter()
            .flat_map(|katalog| &katalog.plan.operators);
        operators.any(|operator| !operator.enrich.is_empty())
    }

    /// Returns the children of those custom resources, as kubectl shows them.
    pub(crate) async fn children(&self, file: &str, live: &[Value]) -> Result<Vec<Value>> {
        let found = fs::read_to_string(self.children_file(file, live).await?)?;
        Ok(items(serde_json::from_str(&found)?))
    }

    /// Writes a file with the children of those custom resources; returns its path.
    async fn children_file(&self, file: &str, live: &[Value]) -> Result<PathBuf> {
        let mut kinds = BTreeSet::new();
        for resource in live {
            let text = resource["metadata"]["annotations"][names::ANNOTATION_INVENTORY].as_str();
            let inventory = Inventory::parse(text.unwrap_or_default());
            kinds.extend(inventory.kinds.iter().map(ToString::to_string));
        }
        let uids: Vec<&str> = live
            .iter()
            .filter_map(|resource| resource["metadata"]["uid"].as_str())
            .collect();
        let owned = format!("-l '{LABEL_OWNER_UID} in ({})'", uids.join(","));
        self.all(&format!("{file}.children.json"), kinds, &owned)
            .await
    }

    /// Returns the custom resources of the file, as they are in the cluster.
    pub(crate) async fn live(&self, file: &str) -> Result<Vec<Value>> {
        let found = self.sh(&format!("kubectl get -f {file} -o json")).await?;
        Ok(items(serde_json::from_str(&found)?))
    }

    /// Returns the objects that a pass over those custom resources and their children would apply, with the statuses that it
    /// would write. A pass that would delete anything is an error.
    async fn pass(&self, file: &str, live: &[Value]) -> Result<Vec<Value>> {
        let request = RenderRequest {
            katalogs: vec![self.folder.clone()],
            resources: vec![self.scratch_file(&format!("{file}.json"), &list(live))?],
            status: None,
            children: vec![self.children_file(file, live).await?],
            cross: vec![self.all("cross.json", self.definitions()?, "").await?],
            calls: Some(self.folder.join(file).with_extension("answers.yaml"))
                .filter(|answers| answers.exists()),
            now: Timestamp::now(),
            fetch: std::sync::Arc::new(orkestra_loader::compose::DiskFiles),
        };
        let rendered = render(&request).await;
        ensure!(rendered.problems.is_empty(), "{}", rendered.problems);
        for pass in &rendered.passes {
            let deleted = &pass.preview.deleted;
            ensure!(deleted.is_empty(), "a pass would delete {deleted:?}");
        }
        let show = Show {
            secrets: true,
            status: true,
        };
        Ok(items(to_json(&rendered.passes, show)))
    }

    /// Checks that the objects exist, and that an apply by another field manager would change nothing.
    async fn hold(&self, objects: &[Value]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let promised: Vec<Value> = objects.iter().map(certain).collect();
        let file = self.scratch_file("promised.json", &list(&promised))?;
        let file = file.display();
        let get = format!("kubectl get -f {file} -o json");
        let apply =
            "kubectl apply --server-side --force-conflicts --dry-run=server --field-manager=reader";
        let apply = format!("{apply} -f {file} -o json");
        let (live, applied) = (self.sh(&get).await?, self.sh(&apply).await?);
        let [live, applied] = [live, applied].map(|text| serde_json::from_str(&text).map(items));
        let (live, applied) = (live?, applied?);
        ensure!(
            live.len() == objects.len() && applied.len() == objects.len(),
            "some objects are missing"
        );
        for ((object, live), applied) in objects.iter().zip(live).zip(applied) {
            let [is, should] = [&live, &applied].map(bare);
            ensure!(
                is == should,
                "{} is {is}, and should be {should}",
                identity(object)
            );
            let [there, wanted] = [&live, object].map(|one| keys(one));
            ensure!(
                there == wanted,
                "{} has {there:?}, and should have {wanted:?}",
                identity(object)
            );
        }
        Ok(())
    }

    /// Writes a file with all selected objects of those kinds; returns its path.
    async fn all(&self, name: &str, kinds: BTreeSet<String>, selected: &str) -> Result<PathBuf> {
        let kinds: Vec<String> = kinds.into_iter().collect();
        if kinds.is_empty() {
            return self.scratch_file(name, &list(&[]));
        }
        let kinds = kinds.join(",");
        let found = self
            .sh(&format!(
                "kubectl get {kinds} --all-namespaces {selected} -o json"
            ))
            .await?;
        self.scratch_file(name, &serde_json::from_str(&found)?)
    }

    /// Returns the names of the CRDs in the folder, such as `websites.demo.orkestra.io`.
    fn definitions(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                let documents = documents(&fs::read_to_string(path)?)?;
                let definitions = documents
                    .iter()
                    .filter(|one| one["kind"] == "CustomResourceDefinition");
                let found = definitions.filter_map(|one| one["metadata"]["name"].as_str());
                names.extend(found.map(str::to_owned));
            }
        }
        Ok(names)
    }

    fn scratch_file(&self, name: &str, content: &Value) -> Result<PathBuf> {
        let path = self.scratch.join(name.replace('/', "-"));
        fs::write(&path, content.to_string())?;
        Ok(path)
    }
}

fn documents(text: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(text)?)
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Returns the items of a list, or the object itself if it is not a list.
fn items(mut found: Value) -> Vec<Value> {
    match found.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![found],
    }
}

/// Returns the kind, group, namespace and name of an object.
fn identity(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = text("/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"].map(text);
    format!("{kind}.{group} {namespace}/{name}")
}

/// Returns an object without random and time-dependent values: the data of Secrets, and annotations derived from it or the clock.
fn certain(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        remove(&mut object, "", "data");
        remove(
            &mut object,
            "/metadata/annotations",
            names::ANNOTATION_APPLIED,
        );
    }
    for (place, annotation) in [
        ("/metadata/annotations", names::ANNOTATION_GENERATED_AT),
        ("/metadata/annotations", names::ANNOTATION_SCALED_AT),
        (
            "/spec/template/metadata/annotations",
            names::ANNOTATION_CONFIG_HASH,
        ),
    ] {
        remove(&mut object, place, annotation);
    }
    object
}

/// Returns an object without the fields that every write changes, its status, and the data of a Secret.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["managedFields", "resourceVersion", "generation"] {
        remove(&mut object, "/metadata", field);
    }
    remove(&mut object, "", "status");
    if object["kind"] == "Secret" {
        remove(&mut object, "", "data");
    }
    object
}

/// Returns a status without the times of its conditions.
fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        remove(condition, "", "lastTransitionTime");
    }
    status
}

fn remove(object: &mut Value, place: &str, field: &str) {
    let place = object.pointer_mut(place).and_then(Value::as_object_mut);
    place.and_then(|place| place.remove(field));
}

/// Returns the keys of a Secret; other objects have none.
fn keys(object: &Value) -> BTreeSet<&str> {
    let secret = object["kind"] == "Secret";
    let data = object["data"].as_object().filter(|_| secret);
    data.into_iter()
        .flat_map(|data| data.keys().map(String::as_str))
        .collect()
}
