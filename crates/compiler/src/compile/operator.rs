//! Compiles one entry of a Katalog into the plan of its operator.
//!
//! One file: the parts of an entry are compiled in a fixed order, and later ones use earlier ones.

use std::{cell::RefCell, collections::BTreeMap};

use super::{
    Typed, admission, api_types, autoscale,
    calls::{self, DeclaredCalls},
    cel, checks, children, cross, emit, enrich, entry_schema, for_each, held, hooks,
    imports::{self, Imported},
    known_schemas::KnownSchemas,
    lifecycle, observe, on_delete, randomness,
    reads::{self, Unreadable},
    reconciler::{self, OperatorPace},
    rules, secret_taint, setup, status, targets,
    typing::Typing,
    watched, wiring,
};
use crate::scope::{At, Library, Problems, Symbols};
use orkestra_language::{
    api::{
        CrdEntry, DependsOn, KatalogSpec, MotifSpec, Notes, OperatorBox, Profiles, StatusSpec,
        endpoints::Endpoints,
    },
    diagnostics::{Code, Diagnostics},
    schema::BuiltIn,
};
use orkestra_object::value::{Key, Path};
use orkestra_plan::roots;
use orkestra_plan::{
    AdmissionPlan, AutoscalePlan, BlockPlan, CallPlan, ChildPlan, CleanupPlan, DependencyPlan,
    Gate, GroupKind, ImportPlan, KatalogRef, Leaf, MetadataKey, OperatorPlan, PagesPlan,
    ResourceType, SecurityPlan, Stage, StatusPlan,
    cross::CrossAccess,
    definitions::{CrdVersion, Schemas},
    describe, kinds,
};

/// The reason why an operator of a built-in kind writes no status.
const BUILT_IN_STATUS: &str = "the status of a built-in kind belongs to its controller, so none is written: Events and the status of the Katalog show the state of the objects";

/// Returns the profiles and notes that a Katalog declares itself.
pub(crate) fn own(spec: &KatalogSpec) -> (Option<&Profiles>, Option<&Notes>) {
    (spec.profiles.as_ref(), spec.notes.as_ref())
}

/// Returns the problems of a Motif that do not depend on its importer. Checks that depend on the importing operator are
/// skipped: the workloads that Services select, and other operators' children that templates read.
///
/// The problems of the Motif itself have paths; those of documents that it imports also have their file.
pub fn check_motif(motif: &MotifSpec, library: &Library) -> Diagnostics {
    let problems = Problems::default();
    let root = At::root(&problems).field("spec");
    let imported = imports::of_motif(&root, motif, library);
    let own = (motif.profiles.as_ref(), motif.notes.as_ref());
    let symbols = Symbols::new(&root, own, &imported[1..], library);
    let at = root.with(&symbols);
    symbols.profiles.check(&at);
    let imports = imports::plans(&at, &imported);
    let (owner, schemas) = (GroupKind::parse(""), Schemas::default());
    let (declared, entry) = (OperatorBox::default(), CrdEntry::default());
    let all = (&*imported, &*imports);
    let rules = rules::of_motifs(&at, &imported, library);
    let nothing = (&schemas, &*rules.live(&imports));
    let other = rules::calls(&at, &entry, &imported);
    let (calls, blocks, children) = children(&at, &declared, &owner, all, (&entry, other), nothing);
    let mut plan = OperatorPlan {
        rules,
        imports,
        calls,
        blocks: blocks.into(),
        children: children.into(),
        status: status(&at, None, &imported, None, library),
        ..OperatorPlan::of_nothing()
    };
    let built_in = BuiltIn::new();
    let known = KnownSchemas {
        schemas: &schemas,
        built_in: &built_in,
    };
    Typing::new(&at, known, None, &plan, None).check(&mut plan);
    for child in &plan.children {
        for_each::check_name(&at, child);
    }
    report(&at, reads::gather(&plan, false).unreadable);
    let mut found = problems.into_inner();
    let elsewhere = [Code::ServiceSelector, Code::NoPort, Code::SelectsNothing];
    found.0.retain(|problem| !elsewhere.contains(&problem.code));
    found
}

/// Reports unreadable paths at the places that read them.
fn report(at: &At<'_>, unreadable: Vec<Unreadable>) {
    for read in unreadable {
        let place = at.place(read.at()).shared();
        place.in_text(
            (read.severity, read.code),
            read.offset,
            read.message,
            read.hint,
        );
    }
}

/// The context shared by all entries of a Katalog.
pub(crate) struct Context<'a> {
    pub(crate) katalog: &'a KatalogRef,
    /// The Katalog that declares the entries.
    pub(crate) spec: &'a KatalogSpec,
    /// The entries of all Katalogs of a composition.
    pub(crate) crds: &'a BTreeMap<String, CrdEntry>,
    /// The name of the source's Katalog, in a composition.
    pub(crate) source: Option<&'a str>,
    pub(crate) known: KnownSchemas<'a>,
    pub(crate) library: &'a Library,
    /// The Motifs that the whole Katalog imports.
    pub(crate) wide: &'a [Imported<'a>],
    /// The symbols of entries without imports.
    pub(crate) symbols: &'a Symbols<'a>,
    /// Protection and webhooks.
    pub(crate) security: &'a SecurityPlan,
    /// Collects the types of expressions.
    pub(crate) listed: Option<&'a RefCell<Vec<Typed>>>,
}

impl<'a> Context<'a> {
    /// Returns the entries that `cross` can name.
    fn named(&self) -> cross::NamedEntries<'a> {
        cross::NamedEntries {
            crds: self.crds,
            schemas: self.known.schemas,
        }
    }
}

/// Compiles the operator of the entry at `at`; `None` if its kind is unknown, which is reported.
pub(crate) fn operator<'a>(
    at: &At<'a>,
    name: &str,
    entry: &'a CrdEntry,
    context: &Context<'a>,
) -> Option<OperatorPlan> {
    let imported = imports::follow(&at.field("imports"), &entry.imports, context.library);
    if imported.is_empty() {
        return with_names(&at.with(context.symbols), name, entry, &[], context);
    }
    let Context {
        spec,
        library,
        wide,
        ..
    } = context;
    let root = at.katalog().field("spec");
    let all = wide.iter().chain(&imported);
    let symbols = Symbols::new(&root, own(spec), all, library);
    let at = at.with(&symbols);
    symbols.profiles.check(&at);
    with_names(&at, name, entry, &imported, context)
}

/// Compiles the operator of an entry; `at` carries its symbols.
fn with_names(
    at: &At<'_>,
    name: &str,
    entry: &CrdEntry,
    imported: &[Imported<'_>],
    context: &Context<'_>,
) -> Option<OperatorPlan> {
    lifecycle::check_imports(&at.field("imports"), imported);
    let pace = reconciler::pace(at, entry, context.library);
    entry_schema::check(at, entry);
    let resource = api_types::resolve(at, name, entry, context.known.schemas);
    if let Some(declared) = &entry.setup {
        setup::check(&at.field("setup"), declared);
    }
    // Without a kind the operatorBox is still checked, with an empty kind.
    let mut plan = parts(at, entry, imported, resource.as_ref(), pace, context);
    plan.name = name.into();
    if let Some(resource) = &resource {
        plan.resource = resource.clone();
        if kinds::built_in(&resource.group_kind()).is_some() {
            plan.roots = roots(context.known, resource);
        }
    }
    check(at, &mut plan, resource.as_ref(), context);
    resource?;
    plan.hash = describe::hash(&plan);
    Some(plan)
}

/// Compiles the parts of an entry, without its name, its kind and what follows from the whole.
// Over 60 lines: a line or two for each part of an operator.
fn parts(
    at: &At<'_>,
    entry: &CrdEntry,
    imported: &[Imported<'_>],
    resource: Option<&ResourceType>,
    pace: OperatorPace,
    context: &Context<'_>,
) -> OperatorPlan {
    let (schemas, library) = (context.known.schemas, context.library);
    let owner = resource.map_or_else(|| GroupKind::parse(""), ResourceType::group_kind);
    let default_box = OperatorBox::default();
    let declared = entry.operator_box.as_ref().unwrap_or(&default_box);
    let box_at = at.field("operatorBox");
    let imports = imports::plans(at, imported);
    let version = resource.and_then(|kind| schemas.kind(&owner)?.version(&kind.version));
    let rules = rules::plan(at, entry, imported, version, library);
    let live = rules.live(&imports);
    let other = held::calls(&box_at, declared)
        .into_iter()
        .chain(rules::calls(at, entry, imported));
    let of_entry = (entry, other.collect());
    let of_imports = (imported, &*imports);
    let known = (schemas, &*live);
    let (calls, mut blocks, mut children) =
        children(&box_at, declared, &owner, of_imports, of_entry, known);
    let around = hooks::HookContext {
        known: context.known,
        resource,
        force_conflict: entry.force_conflict.unwrap_or(false),
        live: &live,
    };
    let hooks = hooks::plans(&box_at, declared, &around, &mut blocks, &mut children);
    let status = status(
        &box_at,
        declared.status.as_ref(),
        imported,
        version,
        library,
    );
    let is_built_in = kinds::built_in(&owner).is_some();
    let status = match why_silent(entry, is_built_in) {
        Some(why) => silent(&box_at, &status, why),
        None => status,
    };
    let (finalizer, other_finalizers) = watched::finalizers(at, entry, context.spec);
    let on_delete = declared.on_delete.as_ref().map(|declared| {
        let at = box_at.field("onDelete");
        children::compile_end(&at, declared, &owner, schemas)
    });
    let mut watched = watched::plan(at, entry, resource);
    admission::restrict(&mut watched, context.security);
    OperatorPlan {
        rules,
        admission: AdmissionPlan {
            replicas: admission::replicas(&owner, version),
            ..admission::of_entry(at, entry, context.security)
        },
        katalog: context.katalog.clone(),
        source: context.source.map(Into::into),
        workers: usize::try_from(pace.workers).unwrap_or(1),
        most_workers: usize::try_from(pace.most_workers).unwrap_or(1),
        resync: pace.resync,
        autoscale: autoscale(&box_at, declared, &pace, context).map(Box::new),
        queue: pace.queue,
        depends_on: depends_on(entry),
        watched,
        targets: targets::plan(at, entry),
        labels: labels(at, entry, &children),
        cross_access: CrossAccess::of(entry.cross_access),
        pages: pages(entry, context.spec),
        finalizer,
        other_finalizers,
        imports,
        cross: cross::plans(&box_at.field("cross"), &declared.cross, context.named()),
        observe: observe::plan(
            &box_at.field("observe"),
            declared.observe.as_ref(),
            schemas,
            library,
        ),
        enrich: enrich::plans(at, entry, &children),
        hold: held::plan(&box_at, declared, &live),
        requeue: pace.requeue,
        calls,
        hooks,
        blocks: blocks.into(),
        children: children.into(),
        on_delete: on_delete.map(Box::new),
        emits: emit::events(&box_at, declared),
        cleanup: emit::cleanup(&box_at, declared, status.conditions).map(Box::new),
        status,
        ..OperatorPlan::of_nothing()
    }
}

/// Compiles the labels and annotations that custom resources get.
fn labels(at: &At<'_>, entry: &CrdEntry, children: &[ChildPlan]) -> Box<[(MetadataKey, Leaf)]> {
    let declared = watched::metadata(at, entry);
    let of_set = watched::apply_set(at, entry, children);
    declared.into_iter().chain(of_set).collect()
}

/// Checks the plan for `resource`, and fills in its reads.
fn check(
    at: &At<'_>,
    plan: &mut OperatorPlan,
    resource: Option<&ResourceType>,
    context: &Context<'_>,
) {
    plan.rules.late = rules::are_late(plan);
    admission::complete(at, plan);
    cel::complete(plan, context.known, resource);
    held::check_order(at, plan);
    let mut typing = Typing::new(at, context.known, resource, plan, context.listed);
    let before = at.count();
    typing.check(plan);
    if context.known.schemas.is_trusting() {
        at.demote_from(before);
    }
    for child in &plan.children {
        for_each::check_name(at, child);
    }
    let mut gathered = reads::gather(plan, true);
    randomness::check(at, plan);
    status::never::check(at, plan);
    let schema = resource.and_then(|resource| context.known.kind(resource));
    status::never::check_names(at, plan, schema);
    on_delete::check(at, plan);
    emit::check(at, plan);
    targets::check(at, plan, resource);
    cross::check(at, &plan.cross, resource);
    wiring::check_namespaces(at, plan, resource);
    if !plan.finalizer {
        checks::left_behind(at, &plan.children, resource);
    }
    gathered.settle(plan);
    report(at, gathered.unreadable);
    plan.reads = gathered.reads;
    enrich::keep_for_additions(plan);
    // Changes of the labels by others must be noticed.
    let labels = plan.labels.iter().map(|(key, _)| key.path());
    let protection = plan.cleanup.iter().map(|_| CleanupPlan::protection());
    plan.reads.cr.extend(labels.chain(protection));
    plan.reads.cr.sort();
    plan.reads.cr.dedup();
    plan.children_names = gathered.aliases.into_iter().collect();
    secret_taint::check(at, plan);
}

/// Compiles the calls and children of Motifs and of the operatorBox at `at`; `other` calls are declared outside of it.
fn children<'a>(
    at: &At<'a>,
    declared: &'a OperatorBox,
    owner: &GroupKind,
    (imported, imports): (&'a [Imported<'a>], &[ImportPlan]),
    (entry, other): (&CrdEntry, Vec<DeclaredCalls<'a>>),
    (schemas, live): (&Schemas, &[Path]),
) -> (Box<[CallPlan]>, Vec<BlockPlan>, Vec<ChildPlan>) {
    let mut blocks = Vec::new();
    for index in imports::merge_order(imported) {
        let Imported {
            at: spec, motif, ..
        } = &imported[index];
        if let Some(resources) = &motif.resources {
            let at = spec.as_at(at).field("resources");
            blocks.extend(children::of_motif(&at, resources, index));
        }
    }
    blocks.extend(children::of_box(at, declared));
    let of_box = DeclaredCalls {
        at: at.field("external"),
        calls: &declared.external,
        stage: Stage::Box,
        import: None,
    };
    let calls = calls::plans(other, of_box, &blocks);
    let force_conflict = entry.force_conflict.unwrap_or(false);
    let (compiled_blocks, compiled) =
        children::plans(&blocks, imports, owner, schemas, force_conflict, live);
    wiring::check(&blocks);
    let children = checks::within(at, imports, &compiled_blocks, compiled);
    (calls, compiled_blocks, children)
}

/// Compiles the status fields of Motifs, the included file and the operatorBox at `at`.
fn status<'a>(
    at: &At<'a>,
    declared: Option<&'a StatusSpec>,
    imported: &'a [Imported<'a>],
    version: Option<&CrdVersion>,
    library: &'a Library,
) -> StatusPlan {
    let mut lists = Vec::new();
    for index in imports::merge_order(imported) {
        let Imported {
            at: spec, motif, ..
        } = &imported[index];
        if let Some(status) = &motif.status {
            lists.push(status::DeclaredFields {
                at: spec.as_at(at).field("status").field("fields"),
                fields: &status.fields,
                import: Some(index),
            });
        }
    }
    let at = at.field("status");
    if let Some(declared) = declared {
        lists.extend(status::included(&at, declared, library));
        lists.push(status::DeclaredFields {
            at: at.field("fields"),
            fields: &declared.fields,
            import: None,
        });
    }
    status::plan(&at, declared, &lists, version)
}

/// Compiles the autoscaler of the operator.
fn autoscale(
    at: &At<'_>,
    declared: &OperatorBox,
    pace: &OperatorPace,
    context: &Context<'_>,
) -> Option<AutoscalePlan> {
    let names = autoscale::ConditionNames {
        cross: cross::entries(&declared.cross),
        entries: context.crds.keys().map(String::as_str).collect(),
    };
    let declared = declared.autoscale.as_ref()?;
    autoscale::autoscale(&at.field("autoscale"), declared, pace, &names)
}

/// Returns the pages that the entry enables; each of its fields overrides that of the whole Katalog.
fn pages(entry: &CrdEntry, spec: &KatalogSpec) -> PagesPlan {
    let declared = || entry.endpoints.iter().chain(&spec.endpoints);
    let is_on = |field: fn(&Endpoints) -> Option<bool>| declared().find_map(field).unwrap_or(true);
    let any = is_on(|endpoints| endpoints.enabled);
    PagesPlan {
        health: any && is_on(|endpoints| endpoints.health),
        info: any && is_on(|endpoints| endpoints.info),
        resources: any,
    }
}

/// Returns the root fields of a built-in kind that custom resources do not have.
fn roots(known: KnownSchemas<'_>, resource: &ResourceType) -> Box<[Key]> {
    let fields = known
        .kind(resource)
        .into_iter()
        .flat_map(|schema| schema.fields());
    let others = fields.filter(|field| !roots::CR_ROOTS.contains(field));
    others.map(Key::from).collect()
}

/// Returns why no status is written, if so.
fn why_silent(entry: &CrdEntry, is_built_in: bool) -> Option<&'static str> {
    let asks = entry.ignore_status_patch == Some(true);
    let asked = asks.then_some("with `ignoreStatusPatch: true` no status is written");
    is_built_in.then_some(BUILT_IN_STATUS).or(asked)
}

/// Returns an empty status plan, and warns with `why` if a status is declared.
fn silent(at: &At<'_>, status: &StatusPlan, why: &str) -> StatusPlan {
    if !status.fields.is_empty() || !status.own.is_empty() || !status.ready_when.is_empty() {
        at.field("status").warn(Code::NoEffect, why);
    }
    StatusPlan {
        conditions: false,
        own: Box::default(),
        ready_when: Gate::default(),
        fields: Box::default(),
    }
}

/// Returns the dependencies of the operator; the document's own check validates the names and reports cycles.
fn depends_on(entry: &CrdEntry) -> Box<[DependencyPlan]> {
    let declared = entry.depends_on.iter().flat_map(DependsOn::conditions);
    declared
        .map(|(on, condition)| DependencyPlan {
            on: on.into(),
            condition,
        })
        .collect()
}
