//! Describes a plan as a tree of plain values, for its hash and for tests.
//!
//! One file: it destructures every type of a plan, so that the compiler reports a field that is left out.

mod calls;
mod gate;
mod observe;
mod rules;
mod targets;
mod tree;
mod upkeep;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    AdmissionPlan, AutoscalePlan, BlockPlan, CapacityPlan, ChildAlias, ChildPlan, ForEachPlan,
    ImportPlan, InputPlan, Leaf, MetadataKey, Mode, NameForm, OnDeletePlan, OnDeleteStep,
    OnFalsePlan, OperatorPlan, Plan, Reads, ResourceType, StatusFieldPlan, Watched,
    cross::{CrossPlan, CrossSelectorPlan, CrossTarget},
};
use orkestra_object::value::{self, Key, Map, Node, Path};

pub use gate::{gate, relation};
pub use tree::tree;

use tree::{coerced, leaf, of_template};

/// Returns the hash of everything in a plan that changes what a pass does or reports: equal hashes need no new pass.
pub fn hash(plan: &OperatorPlan) -> String {
    value::hash(&operator(plan))
}

impl Plan {
    /// Returns the plan for a gateway whose environment, `by_default`, makes webhooks apply rules where it is not declared; otherwise
    /// policies alone apply them there. Call it before the operators are shared.
    #[must_use]
    pub fn with_admission(mut self, by_default: bool) -> Self {
        if !by_default {
            return self;
        }
        self.security.admission.get_or_insert(true);
        for operator in self.operators.iter_mut().filter_map(Arc::get_mut) {
            operator.admission.enabled.get_or_insert(true);
            operator.hash = hash(operator);
        }
        self
    }
}

/// Describes a plan without its name, schedule and capacity.
// Over 60 lines: a table, a line for each field of a plan.
pub fn operator(plan: &OperatorPlan) -> Node {
    let OperatorPlan {
        katalog,
        source,
        name: _,
        resource,
        workers: _,
        most_workers: _,
        resync: _,
        watched,
        targets,
        // Their reads are part of `reads`.
        roots: _,
        labels,
        // Passes do not depend on these.
        cross_access: _,
        pages: _,
        queue: _,
        autoscale: _,
        depends_on: _,
        finalizer,
        rules,
        admission,
        other_finalizers,
        imports,
        hold,
        requeue,
        calls,
        hooks,
        cross,
        observe,
        enrich,
        blocks,
        children,
        on_delete,
        status,
        emits,
        cleanup,
        reads,
        children_names,
        hash: _,
    } = plan;
    let names = children_names.iter().map(alias);
    let rules = (!rules.is_empty()).then(|| self::rules::rules(rules));
    let added = enrich
        .iter()
        .map(|entry| (entry.target.word(), gate(&entry.gate)));
    let calls = (!calls.is_empty()).then(|| list(calls.iter().map(self::calls::call)));
    let hooks = (!hooks.is_empty()).then(|| list(hooks.iter().map(self::calls::hook)));
    let imports = (!imports.is_empty()).then(|| list(imports.iter().map(import)));
    let operator = [
        ("katalog", Node::from(katalog.to_string())),
        ("apiVersion", Node::from(resource.api_version())),
        ("kind", Node::from(&*resource.kind)),
        ("plural", plural(resource)),
        (
            "namespaced",
            resource.namespaced.map(Node::from).unwrap_or_default(),
        ),
        ("finalizer", Node::from(*finalizer)),
        ("blocks", list(blocks.iter().map(block))),
        ("children", list(children.iter().map(child))),
        ("conditions", Node::from(status.conditions)),
        ("status", list(status.fields.iter().map(field))),
        ("reads", read(reads)),
        ("names", map(names)),
    ];
    let parts = [
        ("source", source.as_deref().map(Node::from)),
        ("imports", imports),
        ("rules", rules),
        ("calls", calls),
        ("hooks", hooks),
        (
            "cross",
            Some(list(cross.iter().map(self::cross))).filter(has_any),
        ),
        (
            "observe",
            (!observe.is_empty()).then(|| self::observe::observe(observe)),
        ),
        ("enrich", Some(map(added)).filter(has_any)),
        (
            "watched",
            (*watched != Watched::default()).then(|| self::watched(watched)),
        ),
        (
            "targets",
            (!targets.is_empty()).then(|| self::targets::targets(targets)),
        ),
        ("ending", on_delete.as_deref().map(self::on_delete)),
    ];
    let declared = |(key, part)| Some((key, part?));
    let parts = parts.into_iter().filter_map(declared);
    let gates = gate::parts(hold, requeue, status);
    let gates = gates.into_iter().chain(stores(admission));
    let rest = metadata(labels, other_finalizers).chain(gate::reports(emits, cleanup.as_deref()));
    map(operator.into_iter().chain(parts).chain(gates).chain(rest))
}

/// Describes the metadata that custom resources get, if declared.
fn metadata(
    labels: &[(MetadataKey, Leaf)],
    finalizers: &[Box<str>],
) -> impl Iterator<Item = (&'static str, Node)> {
    let finalizers = list(finalizers.iter().map(|name| Node::from(&**name)));
    let parts = [
        ("labels", in_field(labels, "labels")),
        ("annotations", in_field(labels, "annotations")),
        ("finalizers", finalizers),
    ];
    parts.into_iter().filter(|(_, part)| has_any(part))
}

/// Describes a name that templates use for children.
fn alias(alias: &ChildAlias) -> (&str, Node) {
    let number = if alias.number == NameForm::Plural {
        "all"
    } else {
        "one"
    };
    (&*alias.name, Node::from(format!("{number} {}", alias.kind)))
}

/// Describes whether admission stores normalized specs; passes depend on nothing else of it.
fn stores(admission: &AdmissionPlan) -> Option<(&'static str, Node)> {
    let stores = admission.stores_normalized();
    stores.then_some(("storesNormalized", Node::Bool(true)))
}

/// Describes the labels, or the annotations, that custom resources get.
fn in_field(all: &[(MetadataKey, Leaf)], field: &str) -> Node {
    let of_field = all.iter().filter(|(key, _)| key.field() == field);
    map(of_field.map(|(key, value)| (key.key(), leaf(value))))
}

fn plural(resource: &ResourceType) -> Node {
    let plural = resource.plural.as_ref();
    plural
        .map(|plural| Node::from(&**plural))
        .unwrap_or_default()
}

fn has_any(node: &Node) -> bool {
    !node.is_empty_value()
}

fn watched(plan: &Watched) -> Node {
    let Watched {
        allowed,
        restricted,
        labels,
        fields,
        built_in: _,
    } = plan;
    let names = |names: &BTreeSet<Box<str>>| list(names.iter().map(|name| Node::from(&**name)));
    let pairs = |pairs: &BTreeMap<Box<str>, Box<str>>| {
        map(pairs
            .iter()
            .map(|(key, value)| (&**key, Node::from(&**value))))
    };
    map([
        ("allowed", names(allowed)),
        ("restricted", names(restricted)),
        ("labels", pairs(labels)),
        ("fields", pairs(fields)),
    ])
}

fn on_delete(plan: &OnDeletePlan) -> Node {
    let OnDeletePlan {
        block: whole,
        ordered,
        timeout,
        steps,
    } = plan;
    let step = |step: &OnDeleteStep| {
        let OnDeleteStep {
            name,
            gate,
            made,
            deleted,
        } = step;
        map([
            ("name", Node::from(&**name)),
            ("gate", self::gate(gate)),
            ("made", list(made.iter().map(child))),
            ("deleted", list(deleted.iter().map(child))),
        ])
    };
    map([
        ("block", block(whole)),
        ("ordered", Node::from(*ordered)),
        ("timeout", Node::from(format!("{timeout:?}"))),
        ("steps", list(steps.iter().map(step))),
    ])
}

/// Returns the hash of an autoscaler.
pub fn autoscale_hash(plan: &AutoscalePlan) -> String {
    let AutoscalePlan {
        interval,
        cooldown,
        gate,
        cross,
        capacity:
            CapacityPlan {
                workers,
                queue_depth,
                resync,
            },
        hash: _,
    } = plan;
    let text = |value: &dyn std::fmt::Debug| Node::from(format!("{value:?}"));
    let all = [
        ("interval", text(interval)),
        ("cooldown", text(cooldown)),
        ("gate", self::gate(gate)),
        ("cross", text(cross)),
        ("workers", text(workers)),
        ("queueDepth", text(queue_depth)),
        ("resync", text(resync)),
    ];
    value::hash(&map(all))
}

fn import(plan: &ImportPlan) -> Node {
    let ImportPlan {
        motif,
        outer,
        inputs: _,
    } = plan;
    let import = [("motif", Node::from(&**motif)), ("inputs", inputs(plan))];
    map(import.into_iter().chain(place("outer", *outer)))
}

/// Describes the inputs of an import.
pub fn inputs(plan: &ImportPlan) -> Node {
    let input = |input: &InputPlan| {
        let InputPlan {
            name,
            given,
            default,
            coerce,
            is_intent: _,
            path: _,
        } = input;
        map([
            ("name", Node::from(&**name)),
            ("given", given.as_ref().map(tree).unwrap_or_default()),
            ("default", default.as_ref().map(tree).unwrap_or_default()),
            ("type", Node::from(coerced(*coerce))),
        ])
    };
    list(plan.inputs.iter().map(input))
}

/// The index of an import under `key`; `None` for the Katalog itself.
fn place(key: &str, import: Option<usize>) -> Option<(&str, Node)> {
    Some((key, Node::from(i64::try_from(import?).ok()?)))
}

fn cross(plan: &CrossPlan) -> Node {
    let CrossPlan {
        path: _,
        name,
        target,
        selector,
        namespace,
        allowed,
        reads,
        reads_health,
        reads_metrics,
    } = plan;
    let target = match target {
        CrossTarget::Own(name, kind) => {
            let kind = format!("{} {}", kind.api_version(), kind.kind);
            map([("crd", Node::from(&**name)), ("kind", Node::from(kind))])
        }
        CrossTarget::Other(name) => map([("crd", Node::from(&**name))]),
        CrossTarget::Labels(labels) => map(labels
            .iter()
            .map(|(key, value)| (&**key, Node::from(&**value)))),
    };
    let selector = match selector {
        CrossSelectorPlan::Name(name) => leaf(name),
        CrossSelectorPlan::Labels(labels) => {
            map(labels.iter().map(|(key, value)| (&**key, leaf(value))))
        }
    };
    map([
        ("as", Node::from(&**name)),
        ("target", target),
        ("selector", selector),
        (
            "allowed",
            list(allowed.iter().map(|one| Node::from(&**one))),
        ),
        (
            "namespace",
            namespace.as_ref().map(leaf).unwrap_or_default(),
        ),
        (
            "reads",
            list(reads.iter().map(|path| Node::from(path.to_string()))),
        ),
        ("health", Node::from(*reads_health)),
        ("metrics", Node::from(*reads_metrics)),
    ])
}

fn block(plan: &BlockPlan) -> Node {
    let BlockPlan { path, import, gate } = plan;
    let block = [("path", Node::from(&**path)), ("gate", self::gate(gate))];
    map(block.into_iter().chain(place("import", *import)))
}

// Over 60 lines: a table, a line for each field of a child.
fn child(plan: &ChildPlan) -> Node {
    let ChildPlan {
        path,
        import,
        block,
        kind,
        mode,
        for_each,
        gate,
        on_false,
        name,
        name_rule: _,
        namespace,
        body,
        whole_lists,
        // Derived from the schema, as the types of fields are.
        list_keys: _,
        force_conflict,
        adopt,
        recreates: _,
        generated: _,
        copy: _,
        scale: _,
        bound_roles: _,
        rolls: _,
        reach: _,
        spread: _,
        // It follows from the templates of the plan.
        shows_secrets: _,
    } = plan;
    let child = [
        ("path", Node::from(&**path)),
        ("kind", Node::from(kind.group_kind().to_string())),
        ("version", Node::from(&*kind.version)),
        (
            "namespaced",
            kind.namespaced.map(Node::from).unwrap_or_default(),
        ),
        (
            "mode",
            Node::from(if *mode == Mode::Once {
                "once"
            } else {
                "reconciled"
            }),
        ),
        ("gate", self::gate(gate)),
        (
            "onFalse",
            Node::from(if *on_false == OnFalsePlan::Delete {
                "delete"
            } else {
                "keep"
            }),
        ),
        ("name", leaf(name)),
        (
            "namespace",
            namespace.as_ref().map(leaf).unwrap_or_default(),
        ),
        ("body", tree(body)),
        ("forceConflict", Node::from(*force_conflict)),
        ("adopt", Node::from(*adopt)),
    ];
    let places = place("import", *import)
        .into_iter()
        .chain(place("block", Some(*block)));
    let each = for_each
        .as_ref()
        .map(|each| ("forEach", self::for_each(each)));
    let whole = whole_lists.iter().map(|path| Node::from(path.to_string()));
    let whole = (!whole_lists.is_empty()).then(|| ("wholeLists", list(whole)));
    let upkeep = upkeep::of(plan);
    let rest = places.chain(each).chain(whole).chain(upkeep);
    map(child.into_iter().chain(rest))
}

fn for_each(each: &ForEachPlan) -> Node {
    let ForEachPlan {
        field,
        name,
        pairs,
        path: _,
    } = each;
    let pairs = pairs.then(|| ("pairs", Node::from(true)));
    let named = [
        ("field", Node::from(field.to_string())),
        ("as", Node::from(&**name)),
    ];
    map(named.into_iter().chain(pairs))
}

fn field(field: &StatusFieldPlan) -> Node {
    let StatusFieldPlan {
        import,
        path,
        value,
        kind,
        gate,
        clear,
    } = field;
    let field = [
        ("path", Node::from(path.to_string())),
        ("value", leaf(value)),
        ("typed", Node::from(kind.is_some())),
        ("gate", self::gate(gate)),
    ];
    let clear = clear.then_some(("clear", Node::from(true)));
    let field = field.into_iter().chain(clear);
    map(field.chain(place("import", *import)))
}

fn read(reads: &Reads) -> Node {
    let Reads {
        cr,
        children,
        unique,
        roots,
    } = reads;
    let paths = |paths: &[Path]| list(paths.iter().map(|path| Node::from(path.to_string())));
    let children = children
        .iter()
        .map(|(kind, read)| (Key::from(kind.to_string()), paths(read)));
    let unique = (!unique.is_empty()).then(|| ("unique", paths(unique)));
    let read = [
        ("cr", paths(cr)),
        ("children", Node::Map(children.collect())),
    ];
    let names = roots.iter().map(|root| Node::from(*root));
    // The hash of a plan must not change with the name of a field here.
    let roots = (!roots.is_empty()).then(|| ("introspection", list(names)));
    map(read.into_iter().chain(unique).chain(roots))
}

fn list(items: impl Iterator<Item = Node>) -> Node {
    Node::from(items.collect::<Vec<_>>())
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Node)>) -> Node {
    Node::Map(
        entries
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect::<Map>(),
    )
}
