//! What the compiler says about an object of our own kinds that is being written, before it is stored.

mod inputs;

use std::{collections::BTreeMap, sync::Arc};

use kube::api::DynamicObject;
use orkestra_cluster::requests::{Cluster, ClusterError, Scope, Served};
use orkestra_compiler::{
    compilation::{
        Compilation, CompilationResult, CompilationRules, CompilationStep, DocumentSite,
        RefusedDocument,
    },
    compose::{Base, Declared},
};
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::Source,
};
use orkestra_plan::{GroupKind, KatalogRef, Plan};
use serde_json::Value;
use tokio::task::JoinError;

use super::super::watched::own_kind;
use crate::object::KatalogObject;
use inputs::ReviewInputs;
use orkestra_loader::compilation::{DriveError, blocking, finish, gather};
use orkestra_operator::{context::Context, metrics::CompiledFor};

/// Objects per page.
const PAGE: u32 = 20;

/// An object that is being written, as the compiler sees it.
#[derive(Debug, Default)]
pub struct Examined {
    /// What it makes operators do.
    pub declares: Declares,
    /// The kind of each of its own entries.
    pub kinds: BTreeMap<String, GroupKind>,
    /// All problems, including warnings.
    pub problems: Diagnostics,
    /// An error of the compiler itself.
    pub panicked: bool,
}

/// What an object makes operators do.
#[derive(Debug, Default)]
pub enum Declares {
    /// Nothing that can run: its problems say why.
    #[default]
    Nothing,
    /// These plans: that of a Katalog, or those of the Katalogs that use a Motif.
    Plans(Vec<Arc<Plan>>),
    /// The operators of sources, which are known once these are fetched.
    Sources,
}

/// Compiles the object of a Katalog or Komposer with the Motifs and definitions that the cluster has. The operators of its sources
/// are known once these are fetched: what they need beyond the approved revision waits for approval then.
///
/// # Errors
/// The Motifs cannot be read.
pub async fn examine_katalog(
    context: &Context,
    object: DynamicObject,
    held: impl Clone + Send + 'static,
) -> Result<Examined, ClusterError> {
    let object = KatalogObject::new(object);
    if let Some(why) = &object.document.unread {
        return Ok(Diagnostics::from(unread(why)).into());
    }
    let inputs = ReviewInputs::of(context, object.reference().namespace);
    let compilation = match compilation_of(object, reviewed(context), held.clone()).await {
        Ok(Ok(compilation)) => compilation,
        Ok(Err(problems)) => return Ok(problems.into()),
        Err(panicked) => return Ok(panicked.into()),
    };
    examine(compilation, &inputs, held).await
}

/// Returns the compilation of an object, or the problems of one that cannot be read.
async fn compilation_of(
    object: KatalogObject,
    rules: CompilationRules,
    held: impl Send + 'static,
) -> Result<Result<Compilation, Diagnostics>, JoinError> {
    let reference = object.reference();
    blocking(reference.to_string(), held, move || {
        let source = Source::from_object(&object.document.tree())?;
        Ok(Compilation::new(source, DocumentSite::Cluster(reference)).under(rules))
    })
    .await
}

/// Returns the rules for an object that is being written: the controller applies the others.
fn reviewed(context: &Context) -> CompilationRules {
    CompilationRules {
        manages_definitions: context.rules.manages_definitions,
        ..CompilationRules::default()
    }
}

/// Compiles to the end.
async fn examine(
    compilation: Compilation,
    inputs: &ReviewInputs<'_>,
    held: impl Clone + Send + 'static,
) -> Result<Examined, ClusterError> {
    let metrics = &inputs.context.metrics;
    match finish(compilation, inputs, held).await {
        Ok((compilation, step)) => {
            metrics.compiled(CompiledFor::Review, Some(&step));
            Ok(Examined::of(&compilation, step))
        }
        Err(DriveError::Input(error)) => Err(error),
        Err(DriveError::Compiler(error)) => {
            metrics.compiled(CompiledFor::Review, None);
            Ok(error.into())
        }
    }
}

/// Returns the kind of each entry that an object of ours declares itself, as the runtime reads it; none if it cannot be read.
pub async fn kinds_declared(
    object: DynamicObject,
    held: impl Send + 'static,
) -> BTreeMap<String, GroupKind> {
    let object = KatalogObject::new(object);
    let named = format!("kinds of {}", object.reference());
    let examined = blocking(named, held, move || {
        let base = Base::Cluster {
            namespace: object.reference().namespace,
        };
        let source = Source::from_object(&object.document.tree());
        let declared = source.and_then(|source| Declared::read(&source, base));
        declared.map_or_else(|_| BTreeMap::new(), |declared| declared.kinds())
    });
    examined.await.unwrap_or_default()
}

/// Checks a Motif's object, and compiles the Katalogs of its namespace that use it, as they would be with it. Those with sources
/// compare it when they are composed: what it adds to the approved revision waits for approval.
///
/// # Errors
/// Katalogs or Motifs cannot be read.
pub async fn examine_motif(
    context: &Context,
    object: &DynamicObject,
    held: impl Clone + Send + 'static,
) -> Result<Examined, ClusterError> {
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    let document = Arc::new(serde_json::to_value(object).unwrap_or_default());
    let inputs = ReviewInputs::of(context, namespace.clone());
    let site = DocumentSite::Cluster(KatalogRef::new(namespace.clone(), name.clone()));
    let (read, named) = (Arc::clone(&document), format!("Motif {name}"));
    let source = blocking(named, held.clone(), move || Source::from_object(&read)).await;
    let mut examined = match source {
        Ok(Ok(source)) => {
            let compilation = Compilation::new(source, site).under(reviewed(context));
            match finish(compilation, &inputs, held.clone()).await {
                Ok((compilation, step)) => Examined::of(&compilation, step),
                Err(DriveError::Input(error)) => return Err(error),
                Err(DriveError::Compiler(error)) => error.into(),
            }
        }
        Ok(Err(problems)) => problems.into(),
        Err(panicked) => panicked.into(),
    };
    if examined.problems.has_errors() || examined.panicked {
        return Ok(examined);
    }
    inputs.put(&name, document);
    let (mut plans, mut next) = (Vec::new(), None::<String>);
    loop {
        let (katalogs, more) = page(&context.cluster, &namespace, next.as_deref()).await?;
        for katalog in katalogs {
            let Ok(object) = serde_json::from_value(katalog) else {
                continue;
            };
            let with = with_motif(KatalogObject::new(object), &name, &inputs, held.clone());
            let Some(compiled) = with.await? else {
                continue;
            };
            examined.panicked |= compiled.panicked;
            // A Katalog that the Motif breaks keeps its last good revision: it gets no permissions from this one.
            if let Declares::Plans(compiled) = compiled.declares {
                plans.extend(compiled);
            }
        }
        next = more;
        if next.is_none() {
            examined.declares = Declares::Plans(plans);
            return Ok(examined);
        }
    }
}

/// Compiles a Katalog if it uses the Motif of this name.
async fn with_motif(
    katalog: KatalogObject,
    name: &str,
    inputs: &ReviewInputs<'_>,
    held: impl Clone + Send + 'static,
) -> Result<Option<Examined>, ClusterError> {
    let compilation = match compilation_of(katalog, reviewed(inputs.context), held.clone()).await {
        Ok(Ok(compilation)) => compilation,
        // Its problems were reported when it was written.
        Ok(Err(_)) => return Ok(None),
        Err(panicked) => return Ok(Some(panicked.into())),
    };
    match gather(compilation, inputs, held.clone()).await {
        Ok((compilation, _)) if compilation.motifs().contains_key(name) => {
            Ok(Some(examine(compilation, inputs, held).await?))
        }
        Ok(_) => Ok(None),
        Err(DriveError::Input(error)) => Err(error),
        Err(DriveError::Compiler(panicked)) => Ok(Some(panicked.into())),
    }
}

fn unread(why: &str) -> Diagnostic {
    Diagnostic::error(
        Code::Unreadable,
        FieldPath::root(),
        format!("it cannot be read: {why}"),
    )
}

impl Examined {
    /// Returns what a compilation ended with.
    fn of(compilation: &Compilation, step: CompilationStep) -> Self {
        let kinds = || {
            let declared = compilation.declared();
            declared.map_or_else(|_| BTreeMap::new(), |declared| declared.kinds())
        };
        match step {
            CompilationStep::Ended(result) => match *result {
                CompilationResult::Compiled(compiled) => Self {
                    declares: match compiled.composed {
                        Some(_) => Declares::Sources,
                        None => Declares::Plans(vec![compiled.plan]),
                    },
                    kinds: kinds(),
                    problems: compiled.warnings,
                    panicked: false,
                },
                CompilationResult::Motif(problems)
                | CompilationResult::Refused(RefusedDocument::Invalid(problems)) => problems.into(),
                // A review permits all children, and compares no digests: nothing is derived.
                CompilationResult::Refused(
                    RefusedDocument::NotLocked(_) | RefusedDocument::NotPermitted(_),
                ) => Self::default(),
            },
            CompilationStep::Waiting(_) => Self {
                declares: Declares::Sources,
                kinds: kinds(),
                problems: compilation.warnings(),
                panicked: false,
            },
            // A driver answers everything.
            CompilationStep::Need(_) => Self::default(),
        }
    }
}

impl From<Diagnostics> for Examined {
    fn from(problems: Diagnostics) -> Self {
        Self {
            problems,
            ..Self::default()
        }
    }
}

/// The compiler failed.
impl From<JoinError> for Examined {
    fn from(_: JoinError) -> Self {
        Self {
            panicked: true,
            ..Self::default()
        }
    }
}

/// Lists a page of the Katalogs of a namespace, and returns the continue token of the next one.
async fn page(
    cluster: &Cluster,
    namespace: &str,
    next: Option<&str>,
) -> Result<(Vec<Value>, Option<String>), ClusterError> {
    let served = own_kind("Katalog", "katalogs");
    let scope = Scope {
        namespace: Some(namespace.to_owned()),
        ..Scope::default()
    };
    let page = cluster.list_page(&served, &scope, PAGE, next).await?;
    let items = page.items.iter();
    let katalogs = items.map(|item| typed(&served, item.to_json())).collect();
    Ok((katalogs, page.next))
}

/// Returns an object with the type that items of lists lack.
fn typed(served: &Served, mut object: Value) -> Value {
    object["apiVersion"] = served.api_version().into();
    object["kind"] = (&*served.kind).into();
    object
}

#[cfg(test)]
mod tests;
