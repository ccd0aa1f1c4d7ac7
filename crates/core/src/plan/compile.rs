//! Compiles a Katalog into its plan.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    GroupKind, KatalogRef, Lexicon, Library, OperatorPlan, Plan, Schemas, Stopped, Typed,
    admission, api_types, checks, conversion,
    imports::{self, Imported},
    lifecycle,
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
    unresolved(&root, spec);
    let security = admission::security(&root.field("security"), spec.security.as_ref());
    let known = Known {
        schemas,
        built_in: &built_in,
    };
    let homes = homes(&root, spec, library);
    let lexicons: Vec<Lexicon<'_>> = homes.iter().map(|home| home.lexicon(library)).collect();
    let (mut operators, mut stopped) = (Vec::new(), Vec::new());
    let mut kinds: BTreeMap<(GroupKind, Key), &str> = BTreeMap::new();
    for (name, entry) in &spec.crds {
        let home = spec.scopes.position(name);
        let Some((home, lexicon)) = homes.get(home).zip(lexicons.get(home)) else {
            continue;
        };
        let context = Context {
            katalog,
            spec: home.spec,
            crds: &spec.crds,
            source: spec.scopes.of(name).map(|scope| &*scope.katalog),
            known,
            library,
            wide: &home.wide,
            lexicon,
            security: &security,
            listed,
        };
        let at = home.at.field("crds").field(name);
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
        if let Some(message) = why_second(&at, before, &operator, &operators) {
            stopped.push(Stopped {
                name: name.clone(),
                kind: operator.resource,
                message,
            });
            continue;
        }
        // Each version of a kind may have an entry; the runtime decides which of them reconciles.
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
    let entry_at = |name: &str| {
        let home = spec.scopes.position(name);
        let (home, lexicon) = homes.get(home).zip(lexicons.get(home))?;
        Some(home.at.field("crds").field(name).with(lexicon))
    };
    let conversions = conversion::compile(&spec.crds, entry_at, &operators, schemas, &security);
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

/// What the entries of one Katalog share: of the whole document, or of one source of a composition.
struct Home<'a> {
    /// Its `spec`.
    at: At<'a>,
    spec: &'a KatalogSpec,
    /// The Motifs that it imports for all entries.
    wide: Vec<Imported<'a>>,
}

impl<'a> Home<'a> {
    fn new(at: At<'a>, spec: &'a KatalogSpec, library: &'a Library) -> Self {
        let wide = imports::follow(&at.field("imports"), &spec.imports, library);
        checks::only_contributes(&wide);
        lifecycle::check(&at, spec);
        lifecycle::check_imports(&at.field("imports"), &wide);
        Self { at, spec, wide }
    }

    fn lexicon(&self, library: &'a Library) -> Lexicon<'a> {
        let lexicon = Lexicon::new(&self.at, own(self.spec), &self.wide, library);
        lexicon.profiles.check(&self.at.with(&lexicon));
        lexicon
    }
}

/// Returns the document itself and then the Katalogs of its sources, in the order of [`Scopes::position`].
///
/// [`Scopes::position`]: crate::api::Scopes::position
fn homes<'a>(root: &At<'a>, spec: &'a KatalogSpec, library: &'a Library) -> Vec<Home<'a>> {
    let own = Home::new(root.clone(), spec, library);
    let composed = spec.scopes.0.iter().map(|scope| {
        let at = root.composed(&scope.origin).field("spec");
        Home::new(at, &scope.spec, library)
    });
    [own].into_iter().chain(composed).collect()
}

/// Refuses a Katalog whose `sources` were not merged into it.
fn unresolved(at: &At<'_>, spec: &KatalogSpec) {
    if spec
        .sources
        .as_ref()
        .is_some_and(|sources| !sources.is_empty())
    {
        at.key("sources").error_hint(
            Code::NotSupportedYet,
            "`sources` are not supported here",
            "write a Komposer with these sources",
        );
    }
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

/// Returns why an entry stays stopped whose built-in kind has an operator already, and warns of it; the problems of the entry
/// since `before` become warnings. Objects of a built-in kind have one operator, whichever labels select them: the operator is
/// identified by the kind.
fn why_second(
    at: &At<'_>,
    before: usize,
    operator: &OperatorPlan,
    operators: &[OperatorPlan],
) -> Option<String> {
    if !operator.watched.built_in {
        return None;
    }
    let kind = operator.resource.group_kind();
    let other = taken(operators, &kind)?;
    let message =
        format!("`{other}` operates {kind} already, whatever its labels: this entry stays stopped");
    let hint = "join the two, with `when` for what differs; the other entries run";
    at.demote_from(before);
    at.field("apiTypes")
        .warn_hint(Code::SameKindTwice, message.clone(), hint);
    Some(message)
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
    let katalog = KatalogRef::new(
        document.namespace.clone().unwrap_or_default(),
        document.name.clone(),
    );
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
