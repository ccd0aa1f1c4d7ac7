//! From a Katalog to its plan.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    GroupKind, KatalogRef, Library, OperatorPlan, Plan, ResourceType, Schemas, StatusPlan,
    Typed, api_types, chance, checks, children, describe, reads, status,
    typing::{Known, Typing},
};
use crate::{
    api::{CrdEntry, KatalogSpec, names},
    diagnostics::{Code, Diagnostic, Diagnostics},
    document::{Source, read_what_can_be},
    resources::scope::{At, Problems},
    schema::BuiltIn,
    value::Key,
};

/// Passes at a time, where nothing is declared.
const DEFAULT_WORKERS: u32 = 3;
/// Most passes at a time that one operator may declare.
const MOST_WORKERS: u32 = 1000;
/// Period of the safety net, where nothing is declared.
const DEFAULT_RESYNC: Duration = Duration::from_mins(10);

/// Compiles a Katalog, with what `schemas` knows of custom resource definitions.
///
/// Gives the plan and warnings. Entries that are not enabled are checked and left out of the plan.
///
/// # Errors
/// Every problem of every entry, warnings included; each with its path, and inside of templates with its byte. One bad
/// entry refuses the whole Katalog: the revision before it stays in charge.
pub fn compile(
    katalog: &KatalogRef,
    spec: &KatalogSpec,
    schemas: &Schemas,
    library: &Library,
) -> Result<(Plan, Vec<Diagnostic>), Diagnostics> {
    compile_listing(katalog, spec, schemas, library, None)
}

/// Every expression of a Katalog with its type, as far as the schemas tell, in the order of compilation; what is wrong
/// with it is told by [`compile`].
pub fn types(
    katalog: &KatalogRef,
    spec: &KatalogSpec,
    schemas: &Schemas,
    library: &Library,
) -> Vec<Typed> {
    let listed = RefCell::default();
    let _ = compile_listing(katalog, spec, schemas, library, Some(&listed));
    listed.into_inner()
}

fn compile_listing(
    katalog: &KatalogRef,
    spec: &KatalogSpec,
    schemas: &Schemas,
    _library: &Library,
    listed: Option<&RefCell<Vec<Typed>>>,
) -> Result<(Plan, Vec<Diagnostic>), Diagnostics> {
    let problems = Problems::default();
    let built_in = BuiltIn::new();
    let known = Known {
        schemas,
        built_in: &built_in,
    };
    let at = At::root(&problems).field("spec").field("crds");
    let mut operators = Vec::new();
    let mut kinds: BTreeMap<(GroupKind, Key), &str> = BTreeMap::new();
    for (name, entry) in &spec.crds {
        let at = at.field(name);
        let check = names::check_dns1123_subdomain;
        if let Err(why) = check(name) {
            at.bad_name(name, why, check);
        }
        let Some(operator) = operator(&at, katalog, name, entry, known, listed) else {
            continue;
        };
        if !entry.is_enabled() {
            continue;
        }
        // Each version of a kind may have an entry; which of them reconciles is decided where they run.
        let resource = &operator.resource;
        let version = (resource.group_kind(), resource.version.clone());
        if let Some(other) = kinds.insert(version, name) {
            at.error(
                Code::SameKindTwice,
                format!(
                    "`{other}` operates version {} of {} already",
                    resource.version,
                    resource.group_kind()
                ),
            );
        }
        operators.push(operator);
    }
    checks::across(&problems, &operators);
    let warnings = problems.into_inner().into_result()?;
    let operators = operators.into_iter().map(Arc::new).collect();
    Ok((
        Plan {
            katalog: katalog.clone(),
            operators,
        },
        warnings,
    ))
}

/// What is wrong inside the templates of Katalogs that have other errors already, with its place in the text: so that
/// nobody mends a field to be told of the next one. What else compiling would say may follow from those errors.
pub fn errors_in_templates(sources: &[Source]) -> Diagnostics {
    let mut all = Diagnostics::default();
    for source in sources {
        let (Some(document), found) = read_what_can_be(source) else {
            continue;
        };
        if !found.has_errors() {
            continue;
        }
        let katalog = KatalogRef {
            namespace: document.namespace.unwrap_or_default(),
            name: document.name,
        };
        if let Err(mut problems) = compile(
            &katalog,
            &document.spec,
            &Schemas::default(),
            &Library::default(),
        ) {
            problems.0.retain(|problem| problem.text_offset.is_some());
            problems.locate(&document.tree, source.file.as_deref());
            all.extend(problems);
        }
    }
    all
}

fn operator<'a>(
    at: &At<'a>,
    katalog: &KatalogRef,
    name: &str,
    entry: &CrdEntry,
    known: Known<'_>,
    listed: Option<&'a RefCell<Vec<Typed>>>,
) -> Option<OperatorPlan> {
    let schemas = known.schemas;
    let workers = workers(at, entry);
    let resync = entry.declared_resync().unwrap_or(DEFAULT_RESYNC);
    let resource = api_types::resolve(at, name, entry, schemas);
    // Without a kind the box is still checked, as the box of no kind.
    let owner = resource
        .as_ref()
        .map_or_else(|| GroupKind::parse(""), ResourceType::group_kind);
    let default_box = crate::api::OperatorBox::default();
    let declared = entry.operator_box.as_ref().unwrap_or(&default_box);
    let box_at = at.field("operatorBox");
    if declared.default == Some(false) {
        box_at.field("default").error(
            Code::CustomReconciler,
            "reconcilers of your own are not supported",
        );
    }
    let force_conflict = entry.force_conflict.unwrap_or(false);
    let compiled = children::compile(&box_at, declared, &owner, schemas, force_conflict);
    let mut children = checks::within(at, compiled);
    let version = resource
        .as_ref()
        .and_then(|resource| schemas.kind(&owner)?.version(&resource.version));
    let status = match &declared.status {
        Some(spec) => status::compile(&box_at.field("status"), spec, version),
        None => StatusPlan {
            conditions: true,
            fields: Box::default(),
        },
    };
    let typing = Typing::new(at, known, resource.as_ref(), &children, listed);
    let before = at.count();
    typing.check(&mut children, &status);
    if schemas.is_trusting() {
        at.demote_from(before);
    }
    let gathered = reads::gather(&children, &status);
    chance::check(at, &children, &status);
    let finalizer = finalizer(&box_at, declared.finalizers.as_deref());
    if !finalizer {
        checks::left_behind(at, &children, resource.as_ref());
    }
    for read in gathered.unreadable {
        at.place(&read.place)
            .error_in_text(read.code, read.offset, read.message, read.hint);
    }
    let mut operator = OperatorPlan {
        katalog: katalog.clone(),
        name: name.to_owned(),
        resource: resource?,
        workers: usize::try_from(workers).unwrap_or(1),
        resync,
        finalizer,
        children: children.into(),
        status,
        reads: gathered.reads,
        children_names: gathered.aliases.into_iter().collect(),
        hash: String::new(),
    };
    operator.hash = describe::hash(&operator);
    Some(operator)
}

/// The reconciler's own value wins over the entry's; both are checked.
fn workers(at: &At<'_>, entry: &CrdEntry) -> u32 {
    let reconciler = entry
        .operator_box
        .as_ref()
        .and_then(|declared| declared.reconciler.as_ref());
    let inner = reconciler.and_then(|reconciler| reconciler.workers);
    let places = [
        (at.field("workers"), entry.workers),
        (reconciler_at(at).field("workers"), inner),
    ];
    for (at, workers) in &places {
        match workers {
            Some(0) => at.error_hint(
                Code::OutOfRange,
                "an operator without workers does nothing",
                "write `enabled: false` to stop it",
            ),
            Some(many) if *many > MOST_WORKERS => {
                at.error(
                    Code::OutOfRange,
                    format!("at most {MOST_WORKERS} workers are allowed"),
                );
            }
            _ => {}
        }
    }
    if let (Some(outer), Some(inner)) = (entry.workers, inner)
        && outer != inner
    {
        at.field("workers").warn(
            Code::SetTwice,
            format!("`operatorBox.reconciler.workers` is set too and wins: {inner}"),
        );
    }
    entry.declared_workers().unwrap_or(DEFAULT_WORKERS)
}

fn reconciler_at<'a>(at: &At<'a>) -> At<'a> {
    at.field("operatorBox").field("reconciler")
}

/// Whether the custom resources get our finalizer.
fn finalizer(at: &At<'_>, declared: Option<&[String]>) -> bool {
    match declared {
        None => true,
        Some([]) => false,
        Some([only]) if only == names::FINALIZER => true,
        Some(_) => {
            at.field("finalizers").error_hint(
                Code::Finalizers,
                "finalizers of your own are not supported yet",
                "write `[]` to go without ours, or leave it out",
            );
            true
        }
    }
}
