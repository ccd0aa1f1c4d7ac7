//! The end: a document of which everything is known is compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inputs::InputRequest;
use super::resolving::{ReadDocument, Resolving};
use super::result::{CompiledKatalog, RefusedDocument, UsedInputs};
use super::{Compilation, CompilationResult, DocumentSite, Moved, State, invalid};
use crate::compile;
use crate::compose::definition;
use orkestra_language::api::KatalogSpec;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_object::value::{self, Key, Node};
use orkestra_plan::definitions::{GeneratedCrd, Schemas, generated_crds};
use orkestra_plan::{DefinitionPlan, Plan};

impl Compilation {
    /// Returns the `crdFile`s of the entries on disk: the entry, the path as declared, and the file.
    fn crd_files(&self, resolving: &Resolving) -> Vec<(FieldPath, String, String, PathBuf)> {
        let (DocumentSite::File(own), Some((document, composed))) =
            (&self.site, resolving.katalog())
        else {
            return Vec::new();
        };
        let files = document.spec.crds.iter().filter_map(|(name, entry)| {
            let file = entry.crd_file.as_ref()?;
            let crds = FieldPath::root().field("spec").field("crds");
            let at = crds.field(name).field("crdFile");
            if composed.is_some_and(|composed| composed.manifest(&at, file).is_some()) {
                return None;
            }
            let owner = composed.and_then(|composed| composed.file_of(&at));
            let path = match owner {
                Some(owner) => beside(owner.as_ref(), file),
                None => beside(own, file),
            };
            Some((at, name.clone(), file.clone(), path))
        });
        files.collect()
    }

    pub(crate) fn missing_definitions(&self, resolving: &Resolving) -> Vec<InputRequest> {
        let files = self.crd_files(resolving).into_iter();
        let missing: BTreeSet<PathBuf> = files
            .filter(|(_, _, file, _)| !is_url(file))
            .map(|(_, _, _, path)| path)
            .filter(|path| !self.inputs.files.contains_key(path))
            .collect();
        missing.into_iter().map(InputRequest::File).collect()
    }

    /// Adds the definitions of the entries' `crdFile`s, and returns the problems of those that cannot be used. An entry that is
    /// disabled does not need the file.
    fn add_definitions(&self, resolving: &Resolving, schemas: &mut Schemas) -> Diagnostics {
        let mut problems = Diagnostics::default();
        let Some((document, composed)) = resolving.katalog() else {
            return problems;
        };
        if let Some(composed) = composed {
            composed.add_schemas(schemas);
        }
        for (at, name, file, path) in self.crd_files(resolving) {
            let problem = if is_url(&file) {
                let code = Code::NotSupportedYet;
                let error = Diagnostic::error(code, at, "a URL is not supported yet");
                error.hint("download the CRD and name the file")
            } else {
                let text = self.inputs.files.get(&path);
                match text.map(|text| text.as_ref().map(|text| definition(&file, text))) {
                    Some(Ok(Ok(shape))) => {
                        schemas.insert_file(&name, shape);
                        continue;
                    }
                    Some(Ok(Err(why))) => {
                        Diagnostic::error(Code::CrdFile, at, format!("{file}: {why}"))
                    }
                    Some(Err(why)) => {
                        let message = format!("cannot read {}: {why}", path.display());
                        Diagnostic::error(Code::Unreadable, at, message)
                    }
                    None => continue,
                }
            };
            let entry = document.spec.crds.get(&name);
            if entry.is_some_and(orkestra_language::api::CrdEntry::is_enabled) {
                problems.push(problem);
            }
        }
        problems
    }

    // Over 60 lines: the steps from a resolved document to a plan, in order.
    /// Compiles a document of which everything is known.
    pub(crate) fn compile(&mut self, resolving: Resolving, mut schemas: Schemas) -> Moved {
        let mut problems = self.add_definitions(&resolving, &mut schemas);
        let Resolving {
            document,
            found: mut warnings,
            library,
            motifs,
            links: _,
        } = resolving;
        let ReadDocument::Katalog {
            document,
            composed,
            used: artifacts,
            approved,
        } = document
        else {
            return invalid(warnings);
        };
        let schemas = schemas.with_generated(&document.spec);
        if warnings.has_errors() {
            let inside = compile::errors_in_templates(&document, &warnings, &schemas, &library);
            warnings.extend(inside);
            return invalid(warnings);
        }
        let katalog = self.site.katalog(&document);
        let compiled = compile::katalog(&katalog, &document.spec, &schemas, &library);
        let plan = certain(compiled, &mut problems);
        if let Some(composed) = &composed {
            composed.locate(&mut problems);
        }
        if self.site.is_file() {
            problems.locate(&document.tree, document.file.as_deref());
        }
        warnings.extend(problems);
        let Some(mut plan) = plan.filter(|_| !warnings.has_errors()) else {
            return invalid(warnings);
        };
        if self.rules.manages_definitions {
            plan.definitions = definitions(&plan, &document.spec);
        }
        let sources = composed.as_ref();
        let used = UsedInputs {
            artifacts,
            sources: sources.map_or_else(Vec::new, |composed| composed.sources.clone()),
            motifs,
        };
        if composed.is_some() {
            let unapproved = self.approvals().find((&plan, &used), &approved);
            if !unapproved.is_empty() {
                self.held.extend(unapproved);
                return Moved::To(State::Unread);
            }
        }
        let kind = self.declaring();
        let compiled = |plan: Plan| CompiledKatalog {
            plan: Arc::new(plan),
            document: *document,
            schemas,
            library,
            composed,
            kind,
            used,
            warnings,
        };
        self.permitted(plan, compiled)
    }

    /// Refuses a plan with children that the installation does not permit.
    fn permitted(&self, plan: Plan, compiled: impl FnOnce(Plan) -> CompiledKatalog) -> Moved {
        let violations = self.rules.children.violations(&plan);
        if !violations.is_empty() {
            let refused = RefusedDocument::NotPermitted(violations);
            return Moved::Ended(CompilationResult::Refused(refused));
        }
        let plan = match self.rules.admission {
            Some(default) => plan.with_admission(default),
            None => plan,
        };
        Moved::Ended(CompilationResult::Compiled(Box::new(compiled(plan))))
    }
}

/// Returns the definitions that entries declare with `schema`, of kinds that the plan operates.
fn definitions(plan: &Plan, spec: &KatalogSpec) -> Box<[Arc<DefinitionPlan>]> {
    let all = generated_crds(spec).into_iter();
    let operated = all.filter(|one| {
        let mut operators = plan.operators.iter();
        operators.any(|operator| operator.resource.group_kind() == one.kind)
    });
    let plans = operated.map(|GeneratedCrd { kind, crd, .. }| {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let name = Key::from(name);
        let converts = plan.conversions.iter().any(|one| one.kind == kind);
        let crd = Node::from(&crd);
        let hash = value::hash(&crd);
        Arc::new(DefinitionPlan {
            kind,
            name,
            crd,
            hash,
            converts,
        })
    });
    plans.collect()
}

/// Returns the plan, and adds its problems: without its definition, other problems of an entry may be consequences.
fn certain(
    compiled: Result<(Plan, Vec<Diagnostic>), Diagnostics>,
    problems: &mut Diagnostics,
) -> Option<Plan> {
    match compiled {
        Ok((plan, found)) => {
            problems.extend(found);
            Some(plan)
        }
        Err(mut found) => {
            if problems.has_errors() {
                let is_certain = |one: &Diagnostic| one.text_offset.is_some() || one.file.is_some();
                found.0.retain(is_certain);
            }
            problems.extend(found);
            None
        }
    }
}

fn is_url(file: &str) -> bool {
    file.starts_with("https://") || file.starts_with("http://")
}

/// Returns the path of a file that a Katalog references: relative to the Katalog.
pub fn beside(katalog: &Path, file: &str) -> PathBuf {
    katalog.parent().unwrap_or(Path::new("")).join(file)
}
