//! What a hook is asked with: the custom resource, its children of the managed kinds, and arguments.

use std::collections::BTreeMap;

use crate::reconcile::{
    record::{Observed, ObservedChild},
    template_data::TemplateData,
};
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{HookPlan, HookProtocol, ManagedKind, OperatorPlan};

/// `apiVersion` of requests in Orkestra's own protocol.
const API_VERSION: &str = "hooks.orkestra.orkspace.io/v1";

/// Returns the body of a request: the same text for the same state. It has no moment and no resource version, so that an
/// answer holds as long as nothing changes that the hook sees.
pub(crate) fn body(
    (plan, hook): (&OperatorPlan, &HookPlan),
    (observed, sources): (&Observed, &TemplateData),
    args: Node,
    is_finalizing: bool,
) -> Box<str> {
    let object = resource(plan, observed, sources);
    let children = children(plan, hook, observed);
    let request = match hook.protocol {
        HookProtocol::Orkestra => {
            let operation = if is_finalizing { "finalize" } else { "sync" };
            let external = sources.external.get(&None).cloned();
            Node::object([
                ("apiVersion", Node::from(API_VERSION)),
                ("kind", Node::from("HookRequest")),
                ("hook", Node::from(&*hook.name)),
                ("operation", Node::from(operation)),
                ("object", object),
                ("children", children),
                ("args", args),
                (
                    "external",
                    external.unwrap_or_else(|| Node::Map(Map::default())),
                ),
            ])
        }
        // Hooks of both kinds of controllers find their part under their own name. Source: Metacontroller, "Composite
        // Controller" and "Decorator Controller", sync hook request.
        HookProtocol::Metacontroller => Node::object([
            ("controller", controller(plan, args)),
            ("parent", object.clone()),
            ("object", object),
            ("children", children.clone()),
            ("attachments", children),
            ("related", Node::Map(Map::default())),
            ("finalizing", Node::Bool(is_finalizing)),
        ]),
    };
    request.to_json().to_string().into()
}

/// Returns the custom resource as templates see it.
fn resource(plan: &OperatorPlan, observed: &Observed, sources: &TemplateData) -> Node {
    let seen = sources.cr.as_ref().unwrap_or(&observed.cr.view);
    typed(seen, (&plan.resource.api_version(), &plan.resource.kind))
}

/// Returns an object with its type, without the parts of its metadata that each write changes.
fn typed(object: &Node, (api_version, kind): (&str, &str)) -> Node {
    let fields = object.as_map().into_iter().flat_map(Map::iter);
    let mut object: Map = fields
        .map(|(key, value)| match (&**key, value) {
            ("metadata", Node::Map(metadata)) => {
                let kept = metadata.iter();
                let kept = kept
                    .filter(|(key, _)| !["managedFields", "resourceVersion"].contains(&&***key));
                let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
                (key.clone(), Node::Map(kept.collect()))
            }
            _ => (key.clone(), value.clone()),
        })
        .collect();
    object.insert(Key::from("apiVersion"), Node::from(api_version));
    object.insert(Key::from("kind"), Node::from(kind));
    Node::Map(object)
}

/// Returns the children by kind and name; each managed kind has an entry. Children of a cluster-scoped custom resource that
/// are namespaced have their namespace in their name. Source: Metacontroller, "Composite Controller", sync hook request.
fn children(plan: &OperatorPlan, hook: &HookPlan, observed: &Observed) -> Node {
    let manager = plan.field_manager();
    let is_ours = |child: &&ObservedChild| child.record.is_ours(&observed.cr.id.uid, &manager);
    let own = &observed.cr.id.key.namespace;
    let kinds = hook.managed.iter().map(|ManagedKind { kind, roots: _ }| {
        let group_kind = kind.group_kind();
        let of_kind = observed.children.iter().filter(is_ours);
        let of_kind = of_kind.filter(|child| child.key.kind == group_kind);
        let by_name: BTreeMap<Key, Node> = of_kind
            .map(|child| {
                let key = &child.key.object;
                let name = match (&key.namespace, own) {
                    (Some(namespace), None) => Key::from(&*format!("{namespace}/{}", key.name)),
                    _ => Key::from(&*key.name),
                };
                let object = typed(&child.record.view, (&kind.api_version(), &kind.kind));
                (name, object)
            })
            .collect();
        (
            HookPlan::key_of(kind),
            Node::Map(by_name.into_iter().collect()),
        )
    });
    Node::Map(kinds.collect())
}

/// Returns the controller of a request: the operator, with the arguments of the hook in its specification.
fn controller(plan: &OperatorPlan, args: Node) -> Node {
    Node::object([
        ("apiVersion", Node::from("metacontroller.k8s.io/v1alpha1")),
        ("kind", Node::from("CompositeController")),
        (
            "metadata",
            Node::object([("name", Node::from(plan.name.as_str()))]),
        ),
        ("spec", Node::object([("args", args)])),
    ])
}
