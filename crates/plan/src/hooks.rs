//! Hooks: functions outside of the Katalog that decide on children and on the status.

use std::time::Duration;

use super::{Leaf, ObjectTree, OperatorPlan, PlanPlace, ResourceType, Retry, TokenPlan};
use orkestra_object::value::{Key, Node, Path, PathStep};

/// Root of the data that hooks return.
pub const HOOK: &str = "hook";
/// Root of the children that hooks return, by hook and kind. Only the declarations of these children read it.
pub const HOOK_CHILDREN: &str = "_hook";

/// A hook of an operator.
#[derive(Debug)]
pub struct HookPlan {
    /// The key of its data under `.hook`, unique in the operator.
    pub name: Key,
    /// Its path in the Katalog.
    pub path: PlanPlace,
    /// When it is called.
    pub at: HookStage,
    /// Its block, as an index into [`OperatorPlan::blocks`](super::OperatorPlan::blocks): it has the gate of the hook, and its
    /// children are those that the hook returns. While the gate is closed the hook is not called.
    pub block: usize,
    /// The endpoint.
    pub http: HookEndpoint,
    /// The shape of requests and responses.
    pub protocol: HookProtocol,
    /// The arguments: a map.
    pub args: ObjectTree,
    /// The kinds of children that it may return; it sees its custom resource's children of these kinds.
    pub managed: Box<[ManagedKind]>,
    /// Compiles children that it returns as entries of the language.
    pub entries: EntriesCompiler,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The retry policy.
    pub retry: Retry,
    /// How long a successful answer to one request is reused; `None` means as long as there is room for it.
    pub cache_for: Option<Duration>,
}

/// Compiles entries, lists of a lifecycle block by name, to an operator whose children they are, for custom resources of that kind.
/// It fails with the first problem.
pub type EntriesCompiler = fn(&ResourceType, &Node) -> Result<OperatorPlan, String>;

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookStage {
    /// Before the templates are rendered, which read its data.
    Before,
    /// When the children that the templates declare exist.
    After,
    /// When the custom resource is being deleted, before `onDelete`.
    Finalize,
}

/// A kind of children that a hook returns.
#[derive(Clone, Debug)]
pub struct ManagedKind {
    /// The kind.
    pub kind: ResourceType,
    /// The root fields of its objects that the hook sees, beside `metadata`.
    pub roots: Box<[Key]>,
}

/// The HTTP endpoint of a hook.
#[derive(Debug)]
pub struct HookEndpoint {
    /// The URL.
    pub url: Leaf,
    /// The URL that is called when the custom resource is being deleted.
    pub finalize_url: Option<Leaf>,
    /// Header names and values, sorted.
    pub headers: Box<[(Box<str>, Leaf)]>,
    /// The bearer token.
    pub token: Option<TokenPlan>,
}

/// The shape of requests and responses of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookProtocol {
    /// Orkestra's own.
    Orkestra,
    /// The hooks of Metacontroller: composite and decorator controllers.
    Metacontroller,
}

/// Fields of the metadata that a hook sees: those that no write of the runtime itself changes.
const METADATA: [&str; 10] = [
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "uid",
];

impl HookPlan {
    /// Returns the URL that is called for a custom resource; `None` if there is no call, according to whether it is being
    /// deleted.
    pub fn url(&self, is_finalizing: bool) -> Option<&Leaf> {
        let HookEndpoint {
            url, finalize_url, ..
        } = &self.http;
        match (self.at, is_finalizing) {
            (HookStage::Finalize, false) => None,
            (HookStage::Finalize, true) => Some(finalize_url.as_ref().unwrap_or(url)),
            (HookStage::Before | HookStage::After, true) => finalize_url.as_ref(),
            (HookStage::Before | HookStage::After, false) => Some(url),
        }
    }

    /// Returns the paths that it reads of an object with these root fields.
    pub fn reads<'a>(roots: impl IntoIterator<Item = &'a Key>) -> impl Iterator<Item = Path> {
        let metadata = METADATA.map(|field| Path::of_fields(["metadata", field]));
        let roots: Vec<Path> = roots
            .into_iter()
            .map(|root| Path::from_iter([PathStep::Field(root.clone())]))
            .collect();
        metadata.into_iter().chain(roots)
    }

    /// Returns the key of a managed kind in requests: `Deployment.apps/v1`. Source: Metacontroller, "Composite Controller",
    /// hooks.
    pub fn key_of(kind: &ResourceType) -> Key {
        Key::from(&*format!("{}.{}", kind.kind, kind.api_version()))
    }

    /// Returns the path of the children of a kind that it returned.
    pub fn children_path(name: &Key, kind: &ResourceType) -> Path {
        [Key::from(HOOK_CHILDREN), name.clone(), Self::key_of(kind)]
            .map(PathStep::Field)
            .into_iter()
            .collect()
    }
}
