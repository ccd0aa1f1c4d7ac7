//! Compiles a Katalog into its plan.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    GroupKind, KatalogRef, Lexicon, Library, OperatorPlan, Plan, Schemas, Stopped, Typed,
    admission, api_types, checks, conversion, imports, lifecycle,
    operator::{Context, operator, own},
    typing::Known,
};
use crate::{
    api::{DeletionPolicy, KatalogSpec, names},
    diagnostics::{Code, Diagnostic, Diagnostics},
    document::KatalogDocument,
    resources::scope::{At, Problems},
    schema::BuiltIn,
    value::Key,
};

/// Compiles a Katalog, with the custom resource definitions in `schemas` and the imported documents in `library`.
///
/// Returns the plan and warnings. Entries that are not enabled are checked and left out of the plan.
///
/// # Errors
/// Every problem of every entry, including warnings; each with its path, and with the byte offset inside of templates. One
/// invalid entry refuses the whole Katalog: the previous revision stays in force.
pub fn compile(
    katalog: &KatalogRef,
    spec: &KatalogSpec,
    schemas: &Schemas,
    library: &Library,
) -> Result<(Plan, Vec<Diagnostic>), Diagnostics> {
    compile_listing(katalog, spec, schemas, library, None)
}

/// Returns every expression of a Katalog with its type, as far as the schemas tell, in the order of compilation; problems
/// are reported by [`compile`].
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
    library: &Library,
    listed: Option<&RefCell<Vec<Typed>>>,
) -> Result<(Plan, Vec<Diagnostic>), Diagnostics> {
    let problems = Problems::default();
    let schemas = &schemas.with_plurals_of(spec);
    let built_in = BuiltIn::new();
    let root = At::root(&problems).field("spec");
    let wide = imports::follow(&root.field("imports"), &spec.imports, library);
    checks::only_contributes(&wide);
    lifecycle::check(&root, spec);
    lifecycle::check_imports(&root.field("imports"), &wide);
    let lexicon = Lexicon::new(&root, own(spec), &wide, library);
    lexicon.profiles.check(&root.with(&lexicon));
    let security = admission::security(&root.field("security"), spec.security.as_ref());
    let context = Context {
        katalog,
        spec,
        known: Known {
            schemas,
            built_in: &built_in,
        },
        library,
        wide: &wide,
        lexicon: &lexicon,
        security: &security,
        listed,
    };
    let at = root.field("crds");
    let (mut operators, mut stopped) = (Vec::new(), Vec::new());
    let mut kinds: BTreeMap<(GroupKind, Key), &str> = BTreeMap::new();
    for (name, entry) in &spec.crds {
        let at = at.field(name);
        let check = names::check_dns1123_subdomain;
        if let Err(why) = check(name) {
            at.bad_name(name, why, check);
        }
        let before = at.count();
        let operator = operator(&at, name, entry, &context);
        let why = operator
            .as_ref()
            .and_then(|operator| api_types::why_stopped(&operator.resource, entry));
        if why.is_some() {
            // An entry that does not run can do no harm.
            at.demote_from(before);
        }
        let Some(operator) = operator.filter(|_| entry.is_enabled()) else {
            continue;
        };
        if let Some(message) = why {
            stopped.push(Stopped {
                name: name.clone(),
                kind: operator.resource,
                message,
            });
            continue;
        }
        let resource = &operator.resource;
        // Objects of a built-in kind have one operator, whichever labels select them: the operator is identified by the
        // kind.
        if operator.watched.built_in
            && let Some(other) = taken(&operators, &resource.group_kind())
        {
            let message = format!(
                "`{other}` operates {} already, whatever its labels: this entry stays stopped",
                resource.group_kind()
            );
            let hint = "join the two, with `when` for what differs; the other entries run";
            at.demote_from(before);
            at.field("apiTypes")
                .warn_hint(Code::SameKindTwice, message.clone(), hint);
            stopped.push(Stopped {
                name: name.clone(),
                kind: operator.resource,
                message,
            });
            continue;
        }
        // Each version of a kind may have an entry; the runtime decides which of them reconciles.
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
    let conversions = conversion::compile(&root, &context, &operators, &security);
    check_deletion(&root, spec, &operators);
    let warnings = problems.into_inner().into_result()?;
    Ok((
        Plan {
            katalog: katalog.clone(),
            operators: shared(operators),
            stopped,
            deletion_policy: spec.deletion_policy.unwrap_or_default(),
            security,
            conversions,
        },
        warnings,
    ))
}

/// Returns the plans as they are shared.
fn shared(operators: Vec<OperatorPlan>) -> Vec<Arc<OperatorPlan>> {
    let mut operators: Vec<_> = operators.into_iter().map(Arc::new).collect();
    // Collecting in place from the Vec of plans keeps all of its capacity.
    operators.shrink_to_fit();
    operators
}

/// Warns if `deletionPolicy` has no effect; `at` is the path of `spec`.
fn check_deletion(at: &At<'_>, spec: &KatalogSpec, operators: &[OperatorPlan]) {
    let stays = operators.iter().find(|operator| operator.watched.built_in);
    if let Some(operator) = stays.filter(|_| spec.deletion_policy == Some(DeletionPolicy::Delete)) {
        let message = format!(
            "objects of built-in kinds are never deleted with the Katalog: those of {} stay",
            operator.resource.group_kind()
        );
        at.field("deletionPolicy").warn(Code::NoEffect, message);
    }
}

/// Returns the operator that has the kind.
fn taken<'o>(operators: &'o [OperatorPlan], kind: &GroupKind) -> Option<&'o str> {
    let mut operators = operators.iter();
    let taken = operators.find(|operator| operator.resource.group_kind() == *kind)?;
    Some(&taken.name)
}

/// Returns the errors inside the templates of a Katalog that was read in part, with their places in the text, so that they
/// need not be fixed one field at a time. Other problems of compiling may follow from `found`, the problems of reading it;
/// the result is empty if none of those is an error.
pub fn errors_in_templates(
    document: &KatalogDocument,
    found: &Diagnostics,
    schemas: &Schemas,
    library: &Library,
) -> Diagnostics {
    if !found.has_errors() {
        return Diagnostics::default();
    }
    let spec = &document.spec;
    let katalog = KatalogRef {
        namespace: document.namespace.clone().unwrap_or_default(),
        name: document.name.clone(),
    };
    let Err(mut problems) = compile(&katalog, spec, schemas, library) else {
        return Diagnostics::default();
    };
    // A Motif that could not be read may declare the note.
    let imports =
        !spec.imports.is_empty() || spec.crds.values().any(|entry| !entry.imports.is_empty());
    let told: BTreeSet<_> = found.iter().map(|one| (one.code, &one.path)).collect();
    problems.0.retain(|problem| {
        // Children whose kind could not be read count as not declared.
        problem.text_offset.is_some()
            && problem.code != Code::UnknownChild
            && !(imports && problem.code == Code::UnknownNote)
            && !told.contains(&(problem.code, &problem.path))
    });
    problems.locate(&document.tree, document.file.as_deref());
    problems
}
