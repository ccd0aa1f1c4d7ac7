//! Compiles the entries of an operatorBox's lifecycle blocks into child plans.

mod blocks;
mod config;
mod copies;
mod handling;

use std::{collections::BTreeMap, sync::Arc};

use super::{conditions, for_each, on_delete, scale};
use crate::{
    resources::{Child, Metadata, Shorthand, Workload, custom, patch},
    scope::{At, Fields},
};
use blocks::Block;
use orkestra_language::{
    api::{
        Lifecycle, OnDelete, OrTemplate, Text,
        children::{Control, Custom},
    },
    diagnostics::Code,
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::{
    BlockPlan, ChildPlan, Coerce, Gate, GroupKind, ImportPlan, Leaf, NameRule, ObjectTree,
    OnDeletePlan, Reach, ResourceType, definitions::Schemas, kinds,
};
use orkestra_template::Template;

pub(crate) use blocks::{DeclaredBlock, entries, of_box, of_motif};

/// The context shared by all entries of a block.
struct BlockContext<'a> {
    /// The index of the block.
    position: usize,
    owner: &'a GroupKind,
    schemas: &'a Schemas,
    /// The workloads that its Services can select.
    workloads: Vec<Workload<'a>>,
    imports: &'a [ImportPlan],
    /// The import that declares the block.
    import: Option<usize>,
    force_conflict: bool,
    /// Fields of the custom resource that depend on the state of the cluster.
    live: &'a [Path],
    /// The gate of the block.
    gate: &'a Gate,
}

/// An entry that is being compiled into a child plan: its path, and the fields common to all kinds.
#[derive(Clone)]
struct Entry<'a> {
    at: At<'a>,
    block: Block,
    kind: ResourceType,
    /// As declared; `None` if it is missing, which is reported.
    name: Option<&'a str>,
    /// The path of the name.
    named: At<'a>,
    namespace: Option<&'a Text>,
    labels: &'a OrTemplate<BTreeMap<String, Text>>,
    annotations: &'a OrTemplate<BTreeMap<String, Text>>,
    control: &'a Control,
    /// The patch merged into the object.
    patch: Option<&'a BTreeMap<String, Node>>,
}

/// Compiles the blocks of an operator and all their children in creation order; invalid ones are reported and left out.
pub(crate) fn plans(
    blocks: &[DeclaredBlock<'_>],
    imports: &[ImportPlan],
    owner: &GroupKind,
    schemas: &Schemas,
    force_conflict: bool,
    live: &[Path],
) -> (Vec<BlockPlan>, Vec<ChildPlan>) {
    let (mut compiled, mut plans) = (Vec::new(), Vec::new());
    for (position, declared) in blocks.iter().enumerate() {
        let gate = gate_of(&declared.at, declared.lifecycle);
        let surroundings = BlockContext {
            position,
            owner,
            schemas,
            workloads: blocks::selectable(blocks, declared.import),
            imports,
            import: declared.import,
            force_conflict,
            live,
            gate: &gate,
        };
        plans.extend(surroundings.block(&declared.at, declared.block, declared.lifecycle));
        compiled.push(BlockPlan {
            path: declared.at.kept(),
            import: declared.import,
            gate,
        });
    }
    // Stable: keeps the order of declaration within a rank.
    plans.sort_by_key(|plan: &ChildPlan| kinds::rank(&plan.kind.group_kind()));
    (compiled, plans)
}

/// Compiles the gate of a block.
fn gate_of(at: &At<'_>, block: &Lifecycle) -> Gate {
    conditions::gate(at, &block.when, &block.or)
}

/// Compiles the `onDelete` of the operatorBox at `at`, which runs before a custom resource is deleted.
pub(crate) fn compile_end(
    at: &At<'_>,
    declared: &OnDelete,
    owner: &GroupKind,
    schemas: &Schemas,
) -> OnDeletePlan {
    let block = BlockPlan {
        path: at.kept(),
        import: None,
        gate: gate_of(at, &declared.lifecycle),
    };
    let open = Gate::default();
    on_delete::plan(at, declared, block, |at, lifecycle| {
        let surroundings = BlockContext {
            position: 0,
            owner,
            schemas,
            workloads: Vec::new(),
            imports: &[],
            import: None,
            force_conflict: false,
            live: &[],
            gate: &open,
        };
        let entries = surroundings.block(at, Block::Delete, lifecycle);
        (gate_of(at, lifecycle), entries)
    })
}

impl BlockContext<'_> {
    fn block(&self, at: &At<'_>, block: Block, lifecycle: &Lifecycle) -> Vec<ChildPlan> {
        let mut plans: Vec<ChildPlan> = blocks::entries(lifecycle)
            .into_iter()
            .flat_map(|(index, entry)| self.shorthand(at, index, block, entry))
            .collect();
        for (index, entry) in lifecycle.ingresses.iter().enumerate() {
            plans.extend(self.certificate_of(&shell(at, index, block, entry), entry));
        }
        for (index, entry) in lifecycle.secrets.iter().enumerate() {
            plans.extend(self.secrets(shell(at, index, block, entry), entry));
        }
        let custom = lifecycle.custom.iter().enumerate();
        plans.extend(custom.filter_map(|(index, entry)| {
            self.custom(&at.field("custom").index(index), block, entry)
        }));
        plans
    }

    /// Compiles the entry `index` of a list in the block at `at`.
    fn shorthand(
        &self,
        at: &At<'_>,
        index: usize,
        block: Block,
        entry: &dyn Shorthand,
    ) -> Vec<ChildPlan> {
        let shell = shell(at, index, block, entry);
        let each = shell.control.for_each.as_ref();
        let workloads = blocks::within_reach(&self.workloads, each);
        let child = |shell: &Entry<'_>| {
            self.child(shell, |metadata, name| {
                let child = Child {
                    at: shell.at.clone(),
                    kind: shell.kind.group_kind(),
                    name: name.clone(),
                    name_text: shell.name.unwrap_or_default(),
                    workloads: &workloads,
                };
                entry.expand(&child, metadata)
            })
        };
        if let Some((source, copies)) = entry.copies() {
            return self.copies(&shell, &source, copies, child);
        }
        let place = shell.at.field("autoscale");
        let plan = child(&shell).map(|plan| {
            let plan = config::rolling(&shell.at, plan, entry.roll_on_change());
            scale::scaled(plan, &place, entry.autoscale())
        });
        plan.into_iter().collect()
    }

    fn custom(&self, at: &At<'_>, block: Block, entry: &Custom) -> Option<ChildPlan> {
        let kind = custom::kind(at, entry, self.schemas);
        let body = |kind: &GroupKind| custom::expand(at, entry, kind);
        let Some(kind) = kind else {
            // The object may have other problems too.
            body(&GroupKind::parse(""));
            return None;
        };
        if kind.group_kind() == *self.owner
            && entry.control.when.is_empty()
            && entry.control.or.is_empty()
            && self.gate.is_empty()
        {
            at.field("kind").error_hint(
                Code::EndlessChildren,
                format!(
                    "every {} would create another one, without end",
                    self.owner.kind
                ),
                "add a `when` condition that does not hold for the children",
            );
        }
        let group_kind = kind.group_kind();
        let shell = Entry {
            at: at.clone(),
            block,
            kind,
            name: Some(&entry.metadata.name),
            named: at.field("metadata").field("name"),
            namespace: entry.metadata.namespace.as_ref(),
            labels: &entry.metadata.labels,
            annotations: &entry.metadata.annotations,
            control: &entry.control,
            patch: None,
        };
        let place = at.field("metadata");
        self.child_at(&shell, &place, |_, _| body(&group_kind))
    }

    /// Compiles one child of a kind that has its own list.
    fn child(
        &self,
        entry: &Entry<'_>,
        body: impl FnOnce(&mut Metadata, &Leaf) -> Fields,
    ) -> Option<ChildPlan> {
        if entry.name.is_none() {
            let kind = &entry.kind.kind;
            let message = format!("a {kind} has no name by default: `name` is missing");
            entry.at.error(Code::Missing, message);
        }
        let patch = entry
            .patch
            .and_then(|patch| patch::tree(&entry.at.field("patch"), patch));
        let mut plan = self.child_at(entry, &entry.at, body)?;
        if let Some(patch) = patch {
            plan.body = ObjectTree::Patched(Box::new((plan.body, patch, Arc::default())));
        }
        Some(plan)
    }

    /// Compiles one child whose metadata is declared at `meta`. Every part is checked, even if others have errors.
    // Over 60 lines: a line or two for each field of a child.
    fn child_at(
        &self,
        entry: &Entry<'_>,
        meta: &At<'_>,
        body: impl FnOnce(&mut Metadata, &Leaf) -> Fields,
    ) -> Option<ChildPlan> {
        let Entry {
            at,
            block,
            kind,
            control,
            ..
        } = entry;
        let group_kind = kind.group_kind();
        let name_rule = kinds::name_rule(&group_kind);
        let name = entry
            .name
            .and_then(|text| name(&entry.named, text, name_rule));
        let namespace = namespace(&meta.field("namespace"), entry);
        let body = object(entry, meta, name.as_ref(), body)?;
        let gate = conditions::gate(at, &control.when, &control.or);
        let for_each = for_each::plan(at, control.for_each.as_ref());
        if control.for_each.is_some() && for_each.is_none() {
            return None;
        }
        let mode = handling::mode(at, *block, &group_kind, control);
        let mut plan = ChildPlan {
            path: at.kept(),
            import: self.import,
            block: self.position,
            kind: kind.clone(),
            mode,
            on_false: handling::on_false(at, mode, control, self.gate).unwrap_or_else(|| {
                let import = self.import.and_then(|import| self.imports.get(import));
                conditions::default_on_false(
                    [self.gate, &gate],
                    import,
                    for_each.as_ref(),
                    self.live,
                )
            }),
            for_each: for_each.map(Box::new),
            gate,
            name: name?,
            name_rule,
            namespace,
            reach: Reach::default(),
            body,
            whole_lists: Box::default(),
            list_keys: Arc::default(),
            force_conflict: control.force_conflict.unwrap_or(self.force_conflict),
            adopt: control.adopt.unwrap_or(false),
            recreates: handling::recreates(at, mode, &group_kind, control),
            generated: None,
            copy: None,
            scale: None,
            bound_roles: Box::default(),
            rolls: false,
            spread: false,
            shows_secrets: false,
        };
        for_each::determine_form(&mut plan);
        Some(plan)
    }
}

/// Compiles the whole object of an entry called `name`, with the fields of its kind from `body`.
fn object(
    entry: &Entry<'_>,
    meta: &At<'_>,
    name: Option<&Leaf>,
    body: impl FnOnce(&mut Metadata, &Leaf) -> Fields,
) -> Option<ObjectTree> {
    let Entry { at, kind, .. } = entry;
    let mut metadata = Metadata {
        labels: meta.field("labels").object_labels(entry.labels),
        annotations: meta
            .field("annotations")
            .object_annotations(entry.annotations),
        ..Metadata::default()
    };
    let unnamed = || {
        Some(Leaf {
            template: Template::parse("").ok()?,
            coerce: Coerce::OptionalText,
            path: at.kept(),
        })
    };
    let mut root = body(&mut metadata, &name.cloned().or_else(unnamed)?);
    root.put_text("apiVersion", &kind.api_version());
    root.put_text("kind", &kind.kind);
    root.put("metadata", metadata.into_optional());
    Some(root.into_tree())
}

/// Returns the entry `index` of a list in the block at `at`, with the fields common to all kinds.
fn shell<'a>(at: &At<'a>, index: usize, block: Block, entry: &'a dyn Shorthand) -> Entry<'a> {
    let (list, common) = (entry.row().list, entry.common());
    Entry {
        named: at.field(list).index(index).field("name"),
        at: at.field(list).index(index),
        block,
        kind: entry.resource(),
        name: entry.name(),
        namespace: common.meta.namespace.as_ref(),
        labels: &common.meta.labels,
        annotations: &common.meta.annotations,
        control: &common.control,
        patch: Some(&common.patch),
    }
}

fn name(at: &At<'_>, text: &str, rule: NameRule) -> Option<Leaf> {
    let leaf = at.leaf(text, Coerce::OptionalText)?;
    let is_legal = at.legal_name(&leaf.template, rule.as_check());
    is_legal.then_some(leaf)
}

fn namespace(at: &At<'_>, entry: &Entry<'_>) -> Option<Leaf> {
    let leaf = at.leaf(entry.namespace?, Coerce::OptionalText)?;
    if entry.kind.namespaced == Some(false) {
        at.warn(
            Code::NoEffect,
            format!(
                "{} is cluster-scoped: its namespace is ignored",
                entry.kind.group_kind()
            ),
        );
        return None;
    }
    if leaf
        .template
        .literal()
        .is_some_and(|literal| literal.trim().is_empty())
    {
        return None;
    }
    at.legal_name(&leaf.template, NameRule::Label1123.as_check());
    Some(leaf)
}
