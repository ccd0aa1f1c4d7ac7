//! Shows what a Katalog would change in a cluster: `ork diff`. Read-only.
//!
//! ```text
//!  files ── files::validate ──► plans ─┐
//!  custom resources: files, or live ───┼─► pass (as `render`) ──► objects ── dry-run apply ──► Change ── print ──► unified diff
//!  live children, objects that are read ┘
//! ```

mod print;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use orkestra_cluster::requests::Cluster;
use orkestra_language::diagnostics::Diagnostics;
use orkestra_object::value::{MASK, Node};
use orkestra_plan::{ChildKey, OperatorPlan};
use serde_json::Value;

pub use self::print::unified;
pub use crate::live::Error;
use crate::live::{LiveCluster, Subject, left_alone};
use crate::render::{
    FileObject, RenderInput, Rendered, RenderedPass, is_secret, pass, pick, read_calls,
    read_objects,
};
use orkestra_loader::{
    compose::Fetch,
    files::{self, Compiled},
};

/// The most concurrent requests.
const SIDE_BY_SIDE: usize = 8;
/// How often an object is compared again if it is written in the meantime.
const ATTEMPTS: usize = 3;

/// The input of a comparison; `-` is standard input.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// Katalogs, and definitions that they do not reference.
    pub katalogs: Vec<PathBuf>,
    /// Custom resources; if there are none, those of the cluster.
    pub resources: Vec<PathBuf>,
    /// The namespace of the cluster's custom resources; all namespaces if there is none.
    pub namespace: Option<String>,
    /// Responses to external calls: a map by the call's name.
    pub calls: Option<PathBuf>,
    /// Whether values of Secrets are shown.
    pub secrets: bool,
    /// The present time for templates.
    pub now: Timestamp,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Diffed {
    /// The objects that would change, in the order of the custom resources and then of creation.
    pub changes: Vec<Change>,
    /// The number of compared custom resources.
    pub resources: usize,
    /// Problems of the files and of rendering, including warnings.
    pub problems: Diagnostics,
    /// The texts of the files by name.
    pub texts: BTreeMap<String, String>,
}

/// An object that would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The object: `Deployment.apps shop/web`.
    pub object: String,
    /// Its present state; `None` if it would be created.
    pub before: Option<Value>,
    /// Its state after the change; `None` if it would be deleted.
    pub after: Option<Value>,
    /// The API server's message on fields that other field managers own; the change shows them as taken over.
    pub conflict: Option<String>,
}

/// Compares the objects rendered for custom resources with the objects of a cluster.
///
/// # Errors
/// The cluster does not answer, or refuses a request.
pub async fn diff(cluster: &Cluster, request: &DiffRequest) -> Result<Diffed, Error> {
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut rendered = Rendered {
        passes: Vec::new(),
        problems: found.problems,
        texts: found.texts,
    };
    let given = read_objects(&request.resources, &mut rendered);
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut rendered);
    let mut diffed = Diffed {
        problems: rendered.problems,
        texts: rendered.texts,
        ..Diffed::default()
    };
    if diffed.problems.has_errors() {
        return Ok(diffed);
    }
    let desk = CompareContext {
        cluster: LiveCluster::new(cluster.clone()),
        katalogs: &found.katalogs,
        calls: &calls,
        request,
    };
    let resources = if request.resources.is_empty() {
        desk.live_resources().await?
    } else {
        desk.with_live(given).await?
    };
    diffed.resources = resources.len();
    let cross = desk.cross(&resources).await?;
    let mut operated = Vec::with_capacity(resources.len());
    for resource in &resources {
        match pick(desk.katalogs, resource) {
            Ok(picked) => operated.push((resource, picked.operator)),
            Err(problem) => diffed.problems.push(*problem),
        }
    }
    // In the order of the custom resources, whose operators may take turns.
    let mut changes = BTreeMap::new();
    for operator in desk.operators() {
        let own = operated.iter().enumerate();
        let own = own.filter(|(_, (_, of))| std::ptr::eq(*of, operator));
        let (places, own): (Vec<usize>, Vec<&FileObject>) =
            own.map(|(at, (resource, _))| (at, *resource)).unzip();
        if own.is_empty() {
            continue;
        }
        let comparing = desk.compare(operator, &own, &cross, &mut diffed.problems);
        changes.extend(places.into_iter().zip(comparing.await?));
    }
    diffed.changes = changes.into_values().flatten().collect();
    Ok(diffed)
}

/// The shared input of all comparisons.
struct CompareContext<'a> {
    cluster: LiveCluster,
    katalogs: &'a [Compiled],
    calls: &'a BTreeMap<String, Node>,
    request: &'a DiffRequest,
}

impl CompareContext<'_> {
    fn operators(&self) -> impl Iterator<Item = &OperatorPlan> {
        let all = self
            .katalogs
            .iter()
            .flat_map(|katalog| &katalog.plan.operators);
        all.map(AsRef::as_ref)
    }

    /// Returns the cluster's custom resources that the Katalogs reconcile and that are not being deleted.
    async fn live_resources(&self) -> Result<Vec<FileObject>, Error> {
        let (mut seen, mut resources) = (BTreeSet::new(), Vec::new());
        for operator in self.operators() {
            if !seen.insert(operator.resource.group_kind()) {
                continue;
            }
            let namespace = self.request.namespace.as_deref();
            let live = self.cluster.resources(operator, namespace).await?;
            resources.extend(live.into_iter().map(FileObject::live));
        }
        Ok(resources)
    }

    /// Merges custom resources of files with their live state.
    async fn with_live(&self, given: Vec<FileObject>) -> Result<Vec<FileObject>, Error> {
        let mut resources = Vec::with_capacity(given.len());
        for mut resource in given {
            // A custom resource without an operator is reported by the pass.
            if let Ok(picked) = pick(self.katalogs, &resource) {
                let served = self.cluster.kind(&picked.operator.resource).await?;
                self.cluster.place(&served, &mut resource.node);
                if let Some(live) = self.cluster.same(&served, &resource.node).await? {
                    resource.node = merged(&live, &resource.node);
                }
            }
            resources.push(resource);
        }
        Ok(resources)
    }

    /// Returns the objects that `cross` may read: the custom resources of these Katalogs.
    async fn cross(&self, resources: &[FileObject]) -> Result<Vec<Node>, Error> {
        if self.operators().all(|operator| operator.cross.is_empty()) {
            return Ok(Vec::new());
        }
        let mut all: Vec<Node> = resources.iter().map(|one| one.node.clone()).collect();
        if !self.request.resources.is_empty() {
            let live = self.live_resources().await?;
            all.extend(live.into_iter().map(|one| one.node));
        }
        Ok(all)
    }

    /// Returns the changes of the objects of each custom resource.
    async fn compare(
        &self,
        operator: &OperatorPlan,
        resources: &[&FileObject],
        cross: &[Node],
        problems: &mut Diagnostics,
    ) -> Result<Vec<Vec<Change>>, Error> {
        let crs = resources.iter().map(|one| one.node.clone()).collect();
        let mut subjects = self.cluster.with_children(operator, crs).await?;
        let run = |at: usize, subject: &Subject| {
            let given = RenderInput {
                resource: resources[at],
                status: None,
                children: &subject.children,
                cross,
                calls: self.calls,
                now: self.request.now,
            };
            pass(self.katalogs, &given)
        };
        let asked = |passed: &Result<(RenderedPass, _), _>| match passed {
            Ok((pass, _)) => pass.preview.asked.clone(),
            Err(_) => BTreeSet::new(),
        };
        let settling = self.cluster.settled(operator, &mut subjects, run, asked);
        let passes = settling.await?;
        let scaled = self.cluster.scaled(operator).await?;
        let mut changes = Vec::with_capacity(passes.len());
        for passed in passes {
            changes.push(match passed {
                Ok((pass, found)) => {
                    problems.extend(found);
                    self.changes(operator, &pass, &scaled).await?
                }
                Err(problem) => {
                    problems.push(*problem);
                    Vec::new()
                }
            });
        }
        Ok(changes)
    }

    /// Returns the changes of a pass.
    async fn changes(
        &self,
        operator: &OperatorPlan,
        pass: &RenderedPass,
        scaled: &BTreeSet<ChildKey>,
    ) -> Result<Vec<Change>, Error> {
        let manager = operator.field_manager();
        let unscaled: Vec<Node> = pass
            .preview
            .objects
            .iter()
            .map(|object| left_alone(object, scaled))
            .collect();
        let objects = unscaled.iter().zip(&pass.hidden.objects);
        let changes =
            objects.map(|(object, hidden)| self.change(operator, &manager, object, hidden));
        let changes = stream::iter(changes).buffered(SIDE_BY_SIDE);
        let mut changes: Vec<Option<Change>> = changes.try_collect().await?;
        changes.extend(pass.preview.deleted.iter().map(|key| Some(deleted(key))));
        Ok(changes.into_iter().flatten().collect())
    }

    /// Returns the change of one object; `None` if it stays the same.
    async fn change(
        &self,
        operator: &OperatorPlan,
        manager: &str,
        object: &Node,
        hidden: &Node,
    ) -> Result<Option<Change>, Error> {
        let served = self.cluster.kind_of(operator, object).await?;
        let (mut before, mut after, mut conflict) = (None, Value::Null, None);
        for _ in 0..ATTEMPTS {
            before = self
                .cluster
                .same(&served, object)
                .await?
                .map(|live| live.to_json());
            (after, conflict) = self.cluster.dry_run(&served, manager, object).await?;
            // A write by another client between the two requests is not a difference.
            let is_one_state = |live: &Value| print::version(live) == print::version(&after);
            if before.as_ref().is_none_or(is_one_state) {
                break;
            }
        }
        let mut before = before.map(|live| print::cleaned(&live));
        let mut after = print::cleaned(&after);
        if let Some(before) = &before {
            print::keep_katalog(before, &mut after);
        }
        let mut after = Some(after);
        if before == after {
            return Ok(None);
        }
        if !self.request.secrets {
            if is_secret(object) {
                print::mask_secret(before.as_mut(), after.as_mut());
            } else if object != hidden {
                print::mask(hidden, MASK, before.as_mut(), after.as_mut());
            }
        }
        Ok(Some(Change {
            object: print::name(&object.to_json()),
            before,
            after,
            conflict,
        }))
    }
}

/// A child that would be deleted. Its content is not shown: it may contain values of a Secret.
fn deleted(key: &ChildKey) -> Change {
    let namespace = key.object.namespace.as_deref();
    let metadata = serde_json::json!({ "name": &*key.object.name, "namespace": namespace });
    let before = serde_json::json!({ "kind": &*key.kind.kind, "metadata": metadata });
    Change {
        object: key.to_string(),
        before: Some(before),
        after: None,
        conflict: None,
    }
}

/// Returns the live custom resource with the content of the file: labels and annotations of the file are added to the live ones,
/// and its other fields, except for metadata, replace the live ones.
fn merged(live: &Node, file: &Node) -> Node {
    let (Value::Object(mut live), Value::Object(file)) = (live.to_json(), file.to_json()) else {
        return file.clone();
    };
    for (key, value) in file {
        match (key.as_str(), live.get_mut(&key)) {
            ("metadata", Some(Value::Object(metadata))) => {
                for field in ["labels", "annotations"] {
                    let added = value.get(field).and_then(Value::as_object);
                    let all = metadata
                        .entry(field)
                        .or_insert_with(|| serde_json::json!({}));
                    if let (Some(added), Some(all)) = (added, all.as_object_mut()) {
                        all.extend(added.clone());
                    }
                }
            }
            _ => {
                live.insert(key, value);
            }
        }
    }
    Node::from(&Value::Object(live))
}
