//! `hooks` and `constructor`: functions outside of the Katalog.
//!
//! ```text
//!  hook ──► HookPlan: endpoint, arguments, managed kinds
//!       ├─► BlockPlan: its gate
//!       └─► ChildPlan for each managed kind, with `forEach` over the objects of that kind that the hook returns
//! ```
//!
//! So a child of a hook is a child like any other: owned, compared, repaired and pruned by the same rules.

mod child;
mod entries;

use std::{collections::BTreeSet, time::Duration};

use super::{calls, conditions, known_schemas::KnownSchemas};
use crate::{resources::custom, scope::At};
use orkestra_language::{
    api::{
        Constructor, Hook, HookAt, HookHttp, HookProtocol as DeclaredProtocol, Hooks,
        ManagedResource, OperatorBox, calls::RetryBackoff, duration::Span,
    },
    diagnostics::Code,
};
use orkestra_object::value::{Key, Node, Path};
use orkestra_plan::{
    BlockPlan, ChildPlan, HookEndpoint, HookPlan, HookProtocol, HookStage, ManagedKind, ObjectTree,
    ResourceType, kinds, roots::CR_ROOTS,
};

/// The key of a constructor's data under `.hook`.
const CONSTRUCTOR: &str = "constructor";
/// Default timeout of one attempt.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of hooks of one operator.
const MOST_HOOKS: usize = 20;
/// Root fields of objects of kinds without a known schema.
const ROOTS: [&str; 3] = ["data", "spec", "status"];

/// The context of the hooks of one operator.
pub(crate) struct HookContext<'a> {
    pub(crate) known: KnownSchemas<'a>,
    /// The custom resource; `None` if its kind is unknown.
    pub(crate) resource: Option<&'a ResourceType>,
    pub(crate) force_conflict: bool,
    /// Fields of the custom resource that depend on the state of the cluster.
    pub(crate) live: &'a [Path],
}

/// What is common to hooks and constructors.
struct Declared<'a> {
    name: &'a str,
    at: HookStage,
    http: Option<&'a HookHttp>,
    args: ObjectTree,
    managed: &'a [ManagedResource],
    times: (Option<Span>, Option<Span>, Option<&'a RetryBackoff>),
}

/// Compiles the hooks of the operatorBox at `at`, and adds their blocks and children to those of the templates.
// Over 60 lines: constructor and hooks are compiled in a fixed order, and later ones use the names of earlier ones.
pub(crate) fn plans(
    at: &At<'_>,
    declared: &OperatorBox,
    context: &HookContext<'_>,
    blocks: &mut Vec<BlockPlan>,
    children: &mut Vec<ChildPlan>,
) -> Box<[HookPlan]> {
    check_mode(at, declared);
    let mut hooks = Vec::new();
    if let Some(constructor) = &declared.constructor {
        let at = at.field("constructor");
        blocks.push(BlockPlan {
            path: at.kept(),
            import: None,
            gate: conditions::gate(&at, &[], &[]),
        });
        let block = blocks.len() - 1;
        hooks.extend(constructed(&at, constructor, (block, context)));
    }
    let listed = declared.hooks.as_ref().map(Hooks::all);
    let is_list = matches!(&declared.hooks, Some(Hooks::Several(_)));
    let mut names = BTreeSet::from([CONSTRUCTOR]);
    for (index, hook) in listed.unwrap_or_default().iter().enumerate() {
        let at = at.field("hooks");
        let at = if is_list { at.index(index) } else { at };
        if index == MOST_HOOKS {
            let message = format!("an operator has at most {MOST_HOOKS} hooks");
            at.error(Code::OutOfRange, message);
            break;
        }
        blocks.push(BlockPlan {
            path: at.kept(),
            import: None,
            gate: conditions::gate(&at, &hook.when, &hook.or),
        });
        let name = hook.name.as_deref().unwrap_or_default();
        if hook.name.is_none() {
            at.error(
                Code::Missing,
                "`name` is missing: it is the key of the hook's data under `.hook`",
            );
        } else {
            calls::check_name(&at.field("name"), name);
            if !names.insert(name) {
                let message = format!("another hook is called `{name}`");
                at.field("name").error(Code::SetTwice, message);
            }
        }
        hooks.extend(hooked(&at, hook, (blocks.len() - 1, context)));
    }
    hooks.sort_by_key(|hook: &HookPlan| hook.at);
    for hook in &hooks {
        let (at, block) = (at.place(&hook.path), &blocks[hook.block]);
        let made = hook.managed.iter();
        let made: Vec<ChildPlan> = made
            .filter_map(|managed| child::declared(&at, (hook, block), managed, context))
            .collect();
        let place = match hook.at {
            HookStage::Before => 0,
            HookStage::After | HookStage::Finalize => children.len(),
        };
        children.splice(place..place, made);
    }
    // Stable: keeps the order within a rank.
    children.sort_by_key(|plan| kinds::rank(&plan.kind.group_kind()));
    hooks.into()
}

/// Checks that exactly one of blocks and constructor is the reconciler.
fn check_mode(at: &At<'_>, declared: &OperatorBox) {
    let is_own = declared.default == Some(false);
    match (is_own, &declared.constructor) {
        (true, None) => at.field("default").error_hint(
            Code::CustomReconciler,
            "with `default: false` a constructor decides on all children, and none is declared",
            "declare `constructor`, or remove `default`",
        ),
        (false, Some(_)) => at.field("constructor").error_hint(
            Code::CustomReconciler,
            "both the declared blocks and the constructor are the reconciler",
            "set `default: false`; or declare a hook, which is called in addition to the blocks",
        ),
        (true, Some(_)) => {
            for (name, is_declared) in [
                ("onCreate", declared.on_create.is_some()),
                ("onReconcile", declared.on_reconcile.is_some()),
                ("hooks", declared.hooks.is_some()),
            ] {
                if is_declared {
                    at.field(name).error_hint(
                        Code::CustomReconciler,
                        format!("with `default: false` the constructor decides on all children, not `{name}`"),
                        "remove it; or declare a hook instead of the constructor, which is called in addition to the blocks",
                    );
                }
            }
        }
        (false, None) => {}
    }
}

fn constructed(
    at: &At<'_>,
    declared: &Constructor,
    context: (usize, &HookContext<'_>),
) -> Option<HookPlan> {
    let Constructor {
        http,
        args,
        managed_resources,
        cache_for,
        timeout,
        retry_backoff,
        later: _,
    } = declared;
    if managed_resources.is_empty() {
        let hint = "list the kinds of children that it returns, such as `- kind: Deployment`";
        at.error_hint(
            Code::Missing,
            "`managedResources` is missing: permissions are derived from it",
            hint,
        );
    }
    let declared = Declared {
        name: CONSTRUCTOR,
        at: HookStage::Before,
        http: http.as_ref(),
        args: arguments(at, args),
        managed: managed_resources,
        times: (*cache_for, *timeout, retry_backoff.as_ref()),
    };
    compile(at, &declared, context)
}

fn hooked(at: &At<'_>, declared: &Hook, context: (usize, &HookContext<'_>)) -> Option<HookPlan> {
    let Hook {
        name,
        at: stage,
        http,
        args,
        managed_resources,
        // The gate of its block.
        when: _,
        or: _,
        cache_for,
        timeout,
        retry_backoff,
        later: _,
    } = declared;
    let declared = Declared {
        name: name.as_deref().unwrap_or_default(),
        at: match stage {
            None | Some(HookAt::Before) => HookStage::Before,
            Some(HookAt::After) => HookStage::After,
            Some(HookAt::Finalize) => HookStage::Finalize,
        },
        http: http.as_ref(),
        args: arguments(at, args),
        managed: managed_resources,
        times: (*cache_for, *timeout, retry_backoff.as_ref()),
    };
    compile(at, &declared, context)
}

/// Compiles the arguments of the hook at `at`.
fn arguments(at: &At<'_>, args: &std::collections::BTreeMap<String, Node>) -> ObjectTree {
    let at = at.field("args");
    let compiled = args
        .iter()
        .filter_map(|(name, value)| Some((Key::from(&**name), at.field(name).manifest(value)?)));
    ObjectTree::Map(compiled.collect())
}

fn compile(
    at: &At<'_>,
    declared: &Declared<'_>,
    (block, context): (usize, &HookContext<'_>),
) -> Option<HookPlan> {
    let managed = managed(&at.field("managedResources"), declared.managed, context);
    let (cache_for, timeout, retry) = declared.times;
    let retry = calls::retry(&at.field("retryBackoff"), retry);
    let timeout = match timeout {
        None => DEFAULT_TIMEOUT,
        Some(span) => calls::timeout(&at.field("timeout"), Some(span)),
    };
    let Some(http) = declared.http else {
        let hint = "write `http: {url: …}`";
        at.error_hint(
            Code::Missing,
            "`http` is missing: the endpoint of the hook",
            hint,
        );
        return None;
    };
    let protocol = match http.protocol {
        None | Some(DeclaredProtocol::Orkestra) => HookProtocol::Orkestra,
        Some(DeclaredProtocol::Metacontroller) => HookProtocol::Metacontroller,
    };
    Some(HookPlan {
        name: Key::from(declared.name),
        path: at.kept(),
        at: declared.at,
        block,
        http: endpoint(&at.field("http"), http)?,
        protocol,
        args: declared.args.clone(),
        managed,
        entries: entries::compile,
        timeout,
        retry,
        cache_for: cache_for.map(|span| span.0),
    })
}

fn endpoint(at: &At<'_>, declared: &HookHttp) -> Option<HookEndpoint> {
    let HookHttp {
        url,
        finalize_url,
        protocol: _,
        headers,
        token,
        auth,
        later: _,
    } = declared;
    let url = calls::url(&at.field("url"), url);
    let finalize = finalize_url.as_ref();
    let finalize_url = finalize.map(|url| calls::url(&at.field("finalizeUrl"), url));
    Some(HookEndpoint {
        url: url?,
        finalize_url: match finalize_url {
            Some(compiled) => Some(compiled?),
            None => None,
        },
        headers: calls::headers(&at.field("headers"), headers),
        token: calls::token(at, token.as_ref(), auth.as_ref()),
    })
}

fn managed(
    at: &At<'_>,
    declared: &[ManagedResource],
    context: &HookContext<'_>,
) -> Box<[ManagedKind]> {
    let mut compiled: Vec<ManagedKind> = Vec::new();
    for (index, ManagedResource { api_version, kind }) in declared.iter().enumerate() {
        let at = at.index(index);
        let Some(kind) = custom::managed(&at, api_version.as_ref(), kind, context.known.schemas)
        else {
            continue;
        };
        let group_kind = kind.group_kind();
        let is_same = |other: &ManagedKind| other.kind.group_kind() == group_kind;
        let is_own = context
            .resource
            .is_some_and(|own| own.group_kind() == group_kind);
        if compiled.iter().any(is_same) {
            at.error(Code::SetTwice, format!("{group_kind} is listed twice"));
        } else if is_own {
            let message = format!(
                "a {} whose children are of its own kind could create others without end",
                kind.kind
            );
            at.field("kind").error(Code::EndlessChildren, message);
        } else {
            let schema = context.known.kind(&kind);
            let fields = schema.map(|schema| schema.fields().map(Key::from).collect());
            let fields: Vec<Key> = fields.unwrap_or_else(|| ROOTS.map(Key::from).to_vec());
            let roots = fields
                .into_iter()
                .filter(|field| !["metadata", "apiVersion", "kind"].contains(&&**field));
            let roots = roots.collect();
            compiled.push(ManagedKind { kind, roots });
        }
    }
    compiled.into()
}

/// Returns the root fields of a custom resource that hooks see, beside `metadata`; `others` are those of a built-in kind.
pub(crate) fn roots_of_resource(others: &[Key]) -> impl Iterator<Item = Key> {
    let own = CR_ROOTS.into_iter().filter(|root| *root != "metadata");
    own.map(Key::from).chain(others.iter().cloned())
}
