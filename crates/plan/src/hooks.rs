//! Hooks: functions outside of the Katalog that decide on children and on the status.

use std::{fmt, sync::Arc, time::Duration};

use orkestra_wasm::Module;

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
    /// The function.
    pub function: HookFunction,
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

/// The function of a hook.
#[derive(Debug)]
pub enum HookFunction {
    /// An HTTP endpoint.
    Http(HookEndpoint),
    /// A WebAssembly module.
    Module(HookModule),
}

/// The WebAssembly module of a hook.
#[derive(Debug)]
pub struct HookModule {
    /// Where it is from.
    pub place: ModulePlace,
    /// The module; `None` if it is known in a cluster only.
    pub module: Option<Arc<Module>>,
    /// Whether it is called when the custom resource is being deleted, even if it is called at other times, too.
    pub finalizes: bool,
}

/// Where a module is from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModulePlace {
    /// A file, by its path as declared.
    File(Box<str>),
    /// A key of a `ConfigMap` in the namespace of the Katalog.
    ConfigMap {
        /// Its name.
        name: Box<str>,
        /// The key of its `binaryData`.
        key: Box<str>,
    },
}

/// Formats the path, or kind, name and key.
impl fmt::Display for ModulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file `{path}`"),
            Self::ConfigMap { name, key } => write!(f, "key `{key}` of ConfigMap `{name}`"),
        }
    }
}

/// What is called for a custom resource.
#[derive(Clone, Copy, Debug)]
pub enum HookCall<'a> {
    /// This URL of the endpoint.
    Http(&'a HookEndpoint, &'a Leaf),
    /// The module.
    Module(&'a HookModule),
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
    /// Returns what is called for a custom resource; `None` if nothing is, according to whether it is being deleted.
    pub fn call(&self, is_finalizing: bool) -> Option<HookCall<'_>> {
        let is_its_time = (self.at == HookStage::Finalize) == is_finalizing;
        match &self.function {
            HookFunction::Http(endpoint) => {
                let declared = endpoint.finalize_url.as_ref().filter(|_| is_finalizing);
                let url = declared.or_else(|| is_its_time.then_some(&endpoint.url))?;
                Some(HookCall::Http(endpoint, url))
            }
            HookFunction::Module(module) => {
                let is_called = is_its_time || (is_finalizing && module.finalizes);
                is_called.then_some(HookCall::Module(module))
            }
        }
    }

    /// Returns its endpoint; `None` if it is a module.
    pub fn endpoint(&self) -> Option<&HookEndpoint> {
        match &self.function {
            HookFunction::Http(endpoint) => Some(endpoint),
            HookFunction::Module(_) => None,
        }
    }

    /// Returns its module; `None` if it is an endpoint.
    pub fn module(&self) -> Option<&HookModule> {
        match &self.function {
            HookFunction::Module(module) => Some(module),
            HookFunction::Http(_) => None,
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
