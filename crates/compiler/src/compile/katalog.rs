//! Compiles a Katalog into its plan.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Typed, admission, api_types, checks, conversion,
    imports::{self, Imported},
    known_schemas::KnownSchemas,
    lifecycle,
    operator::{Context, operator, own},
};
use crate::scope::{At, Library, Problems, Symbols};
use orkestra_language::{
    api::{CrdEntry, DeletionPolicy, KatalogSpec, names},
    diagnostics::{Code, Diagnostic, Diagnostics},
    document::KatalogDocument,
    schema::BuiltIn,
};
use orkestra_object::value::Key;
use orkestra_plan::{GroupKind, KatalogRef, OperatorPlan, Plan, Stopped, definitions::Schemas};

/// Compiles a Katalog, with the custom resource definitions in `schemas` and the imported documents in `library`.
///
/// Returns the plan and warnings. Entries that are not enabled are checked and left out of the plan.
///
/// # Errors
/// Every problem of every entry, including warnings; each with its path, and with the byte offset inside of templates. One
/// invalid entry refuses the whole Katalog: the previous revision stays in force.
///
/// ```
/// use orkestra_compiler::{compile, scope::Library};
/// use orkestra_plan::{definitions::Schemas, KatalogRef};
/// use orkestra_language::{document::read_stream};
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
///       operatorBox:
///         onReconcile:
///           configMaps: [{ data: { depth: '{{ .spec.depth }}' } }]
/// ";
/// let (documents, _) = read_stream("katalog.yaml", text)?;
/// let reference = KatalogRef::new("default".to_owned(), "ponds".to_owned());
/// let spec = &documents.katalogs[0].spec;
/// let (plan, _) = compile::katalog(&reference, spec, &Schemas::default(), &Library::default())?;
/// assert_eq!(plan.operators[0].name, "pond");
/// # Ok::<(), orkestra_language::diagnostics::Diagnostics>(())
/// ```
pub fn katalog(
    katalog: &KatalogRef,
    spec: &KatalogSpec,
    schemas: &Schemas,
    library: &Library,
) -> Result<(Plan, Vec<Diagnostic>), Diagnostics> {
    compile_listing(katalog, spec, schemas, library, None)
}

/// Returns every expression of a Katalog with its type, as far as the schemas tell, in the order of compilation; problems
/// are reported by [`katalog`].
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
    let schemas = &schemas.with_generated(spec).with_plurals_of(spec);
    let built_in = BuiltIn::new();
    let root = At::root(&problems).field("spec");
    unresolved(&root, spec);
    let security = admission::security(&root.field("security"), spec.security.as_ref());
    let built_in = &built_in;
    let known = KnownSchemas { schemas, built_in };
    let homes = homes(&root, spec, library);
    let symbols: Vec<Symbols<'_>> = homes.iter().map(|home| home.symbols(library)).collect();
    let mut entries = Entries::default();
    for (name, entry) in &spec.crds {
        let home = spec.scopes.position(name);
        let Some((home, symbols)) = homes.get(home).zip(symbols.get(home)) else {
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
            symbols,
            security: &security,
            listed,
        };
        entries.add(&home.at.field("crds").field(name), name, entry, &context);
    }
    let Entries {
        operators, stopped, ..
    } = entries;
    checks::across(&problems, &operators);
    let entry_at = |name: &str| {
        let home = spec.scopes.position(name);
        let (home, symbols) = homes.get(home).zip(symbols.get(home))?;
        Some(home.at.field("crds").field(name).with(symbols))
    };
    let conversions = conversion::plans(&spec.crds, entry_at, &operators, schemas, &security);
    check_deletion(&root, spec, &operators);
    let warnings = problems.into_inner().into_result()?;
    let plan = Plan {
        katalog: katalog.clone(),
        operators: shared(operators),
        stopped,
        deletion_policy: spec.deletion_policy.unwrap_or_default(),
        security,
        conversions,
        definitions: Box::default(),
    };
    Ok((plan, warnings))
}

/// The compiled entries.
#[derive(Default)]
struct Entries<'a> {
    operators: Vec<OperatorPlan>,
    stopped: Vec<Stopped>,
    /// The entry of each version of a kind.
    kinds: BTreeMap<(GroupKind, Key), &'a str>,
}

impl<'a> Entries<'a> {
    /// Compiles the entry at `at`, and adds its operator if it runs.
    fn add<'c>(&mut self, at: &At<'c>, name: &'a str, entry: &'c CrdEntry, context: &Context<'c>) {
        let check = names::check_dns1123_subdomain;
        if let Err(why) = check(name) {
            at.bad_name(name, why, check);
        }
        let before = at.count();
        let operator = operator(at, name, entry, context);
        let why = operator
            .as_ref()
            .and_then(|operator| api_types::why_stopped(&operator.resource, entry));
        if why.is_some() {
            // An entry that does not run can do no harm.
            at.demote_from(before);
        }
        let Some(operator) = operator.filter(|_| entry.is_enabled()) else {
            return;
        };
        if let Some(message) = why.or_else(|| why_second(at, before, &operator, &self.operators)) {
            self.stopped.push(Stopped {
                name: name.to_owned(),
                kind: operator.resource,
                message,
            });
            return;
        }
        // Each version of a kind may have an entry; the runtime decides which of them reconciles.
        let resource = &operator.resource;
        let version = (resource.group_kind(), resource.version.clone());
        if let Some(other) = self.kinds.insert(version, name) {
            at.error(
                Code::SameKindTwice,
                format!(
                    "`{other}` already operates version {} of {}",
                    resource.version,
                    resource.group_kind()
                ),
            );
        }
        self.operators.push(operator);
    }
}

/// What the entries of one Katalog share: of the whole document, or of one source of a composition.
struct DocumentContext<'a> {
    /// Its `spec`.
    at: At<'a>,
    spec: &'a KatalogSpec,
    /// The Motifs that it imports for all entries.
    wide: Vec<Imported<'a>>,
}

impl<'a> DocumentContext<'a> {
    fn new(at: At<'a>, spec: &'a KatalogSpec, library: &'a Library) -> Self {
        let wide = imports::follow(&at.field("imports"), &spec.imports, library);
        checks::only_contributes(&wide);
        lifecycle::check(&at, spec);
        lifecycle::check_imports(&at.field("imports"), &wide);
        Self { at, spec, wide }
    }

    fn symbols(&self, library: &'a Library) -> Symbols<'a> {
        let symbols = Symbols::new(&self.at, own(self.spec), &self.wide, library);
        symbols.profiles.check(&self.at.with(&symbols));
        symbols
    }
}

/// Returns the document itself and then the Katalogs of its sources, in the order of [`Scopes::position`].
///
/// [`Scopes::position`]: orkestra_language::api::Scopes::position
fn homes<'a>(
    root: &At<'a>,
    spec: &'a KatalogSpec,
    library: &'a Library,
) -> Vec<DocumentContext<'a>> {
    let own = DocumentContext::new(root.clone(), spec, library);
    let composed = spec.scopes.0.iter().map(|scope| {
        let at = root.composed(&scope.origin).field("spec");
        DocumentContext::new(at, &scope.spec, library)
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
    let other = kind_holder(operators, &kind)?;
    let message = format!(
        "`{other}` already operates {kind}, regardless of labels: this entry stays stopped"
    );
    let hint = "merge the two entries, with `when` for the differences; the other entries run";
    at.demote_from(before);
    at.field("apiTypes")
        .warn_hint(Code::SameKindTwice, message.clone(), hint);
    Some(message)
}

/// Returns the operator that has the kind.
fn kind_holder<'o>(operators: &'o [OperatorPlan], kind: &GroupKind) -> Option<&'o str> {
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
    let Err(mut problems) = self::katalog(&katalog, spec, schemas, library) else {
        return Diagnostics::default();
    };
    // A Motif that could not be read may declare the note.
    let imports =
        !spec.imports.is_empty() || spec.crds.values().any(|entry| !entry.imports.is_empty());
    let reported: BTreeSet<_> = found.iter().map(|one| (one.code, &one.path)).collect();
    problems.0.retain(|problem| {
        // Children whose kind could not be read count as not declared.
        problem.text_offset.is_some()
            && problem.code != Code::UnknownChild
            && !(imports && problem.code == Code::UnknownNote)
            && !reported.contains(&(problem.code, &problem.path))
    });
    problems.locate(&document.tree, document.file.as_deref());
    problems
}
