//! What the compiler says about an object of our own kinds that is being written, before it is stored.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kube::api::DynamicObject;
use orkestra_cluster::requests::{Cluster, ClusterError, Scope};
use orkestra_core::{
    compile,
    compose::{Artifacts, Base, Composition, merge},
    diagnostics::Diagnostics,
    document::{Source, read_komposer, read_motif},
    plan::{KatalogRef, Plan},
    scope::Library,
};
use serde_json::Value;

use super::{
    super::watched::own_kind,
    judge::compile_document,
    used_motifs::{UsedMotifs, take},
};
use crate::{
    meta::{known::kinds_named, known::known, known::whole_schemas, object::KatalogObject},
    runtime::context::Context,
};

/// Objects per page.
const PAGE: u32 = 200;

/// An object that is being written, as the compiler sees it.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// What it makes operators do: the plan of a Katalog, or those of the Katalogs that use a Motif.
    pub(crate) plans: Vec<Plan>,
    /// All problems, including warnings.
    pub(crate) problems: Diagnostics,
    /// An error of the compiler itself.
    pub(crate) panicked: bool,
}

/// Compiles a Katalog's object with the Motifs and definitions that the cluster has.
///
/// # Errors
/// The Motifs cannot be read.
pub(crate) async fn examine_katalog(
    context: &Context,
    object: DynamicObject,
) -> Result<Examined, ClusterError> {
    let object = KatalogObject::new(object);
    let (reference, document) = (object.reference(), object.document.tree());
    if let Some(why) = &object.document.unread {
        let problem = unread(why);
        return Ok(Examined {
            problems: problem.into(),
            ..Examined::default()
        });
    }
    let motifs = all(&context.cluster, "Motif", "motifs", &reference.namespace).await?;
    Ok(compile(context, &reference, &document, &motifs).await)
}

/// Checks a Komposer's object by itself. The operators of its sources are known once these are fetched: what they need beyond the
/// approved revision waits for approval then.
pub(crate) fn examine_komposer(object: &DynamicObject) -> Examined {
    let document = serde_json::to_value(object).unwrap_or_default();
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    caught(|| {
        let source = Source::from_object(&document)?;
        let (komposer, warnings) = read_komposer(&source)?;
        let composition = Composition::of_komposer(&komposer, Base::Cluster { namespace });
        merge(&composition, &Artifacts::new())?;
        Ok(Diagnostics(warnings))
    })
}

/// Checks a Motif's object, and compiles the Katalogs of its namespace that use it, as they would be with it.
///
/// # Errors
/// Katalogs or Motifs cannot be read.
pub(crate) async fn examine_motif(
    context: &Context,
    object: &DynamicObject,
) -> Result<Examined, ClusterError> {
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    let document = serde_json::to_value(object).unwrap_or_default();
    let mut examined = check_motif(&document);
    if examined.problems.has_errors() || examined.panicked {
        return Ok(examined);
    }
    let mut motifs = all(&context.cluster, "Motif", "motifs", &namespace).await?;
    motifs.retain(|motif| motif["metadata"]["name"] != *name);
    motifs.push(Arc::new(document));
    for katalog in all(&context.cluster, "Katalog", "katalogs", &namespace).await? {
        let Ok(object) = serde_json::from_value((*katalog).clone()) else {
            continue;
        };
        let object = KatalogObject::new(object);
        let (reference, document) = (object.reference(), object.document.tree());
        if uses(&document, &motifs, &name) {
            let compiled = compile(context, &reference, &document, &motifs).await;
            // A Katalog that the Motif breaks keeps its last good revision: it gets no permissions from this one.
            examined.plans.extend(compiled.plans);
        }
    }
    Ok(examined)
}

fn unread(why: &str) -> orkestra_core::diagnostics::Diagnostic {
    use orkestra_core::diagnostics::{Code, Diagnostic, FieldPath};
    Diagnostic::error(
        Code::Unreadable,
        FieldPath::root(),
        format!("it cannot be read: {why}"),
    )
}

/// Returns the problems of a Motif by itself; what it imports is not known here.
fn check_motif(document: &Value) -> Examined {
    let check = || {
        let source = Source::from_object(document)?;
        let (motif, warnings) = read_motif(&source)?;
        let mut problems = if motif.spec.imports.is_empty() {
            compile::check_motif(&motif.spec, &Library::default())
        } else {
            Diagnostics::default()
        };
        problems.extend(warnings);
        Ok::<_, Diagnostics>(problems)
    };
    caught(check)
}

/// Returns the problems that a check finds.
fn caught(check: impl FnOnce() -> Result<Diagnostics, Diagnostics>) -> Examined {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok(problems) | Err(problems)) => Examined {
            problems,
            ..Examined::default()
        },
        Err(_) => Examined {
            panicked: true,
            ..Examined::default()
        },
    }
}

/// True if a Katalog uses the Motif of that name, directly or not.
fn uses(document: &Value, motifs: &[Arc<Value>], name: &str) -> bool {
    let taken = take(document, &Artifacts::new(), &|wanted| motif(motifs, wanted));
    taken.asked.iter().any(|(asked, _)| asked == name)
}

fn motif(motifs: &[Arc<Value>], name: &str) -> Result<Arc<Value>, String> {
    let found = motifs
        .iter()
        .find(|motif| motif["metadata"]["name"] == name);
    found
        .cloned()
        .ok_or_else(|| format!("there is no Motif `{name}` in this namespace"))
}

async fn compile(
    context: &Context,
    reference: &KatalogRef,
    document: &Value,
    motifs: &[Arc<Value>],
) -> Examined {
    let taken: UsedMotifs = take(document, &Artifacts::new(), &|name| motif(motifs, name));
    let mut kinds = kinds_named(document);
    let asked = taken.asked.iter().filter_map(|(_, motif)| motif.as_deref());
    kinds.extend(asked.flat_map(kinds_named));
    let schemas = whole_schemas(&context.cluster, &known(&context.crds, &kinds)).await;
    let compile = || compile_document(reference, document, &taken, &schemas);
    match catch_unwind(AssertUnwindSafe(compile)) {
        Ok(Ok((plan, problems))) => Examined {
            plans: plan.into_iter().collect(),
            problems,
            panicked: false,
        },
        Ok(Err(problems)) => Examined {
            problems,
            ..Examined::default()
        },
        Err(_) => Examined {
            panicked: true,
            ..Examined::default()
        },
    }
}

/// Lists the objects of one of our kinds in a namespace.
async fn all(
    cluster: &Cluster,
    kind: &str,
    plural: &str,
    namespace: &str,
) -> Result<Vec<Arc<Value>>, ClusterError> {
    let served = own_kind(kind, plural);
    let scope = Scope {
        namespace: Some(namespace.to_owned()),
        ..Scope::default()
    };
    let (mut objects, mut next) = (Vec::new(), None::<String>);
    loop {
        let page = cluster
            .list_page(&served, &scope, PAGE, next.as_deref())
            .await?;
        objects.extend(page.items.iter().map(|item| {
            let mut object = item.to_json();
            object["apiVersion"] = served.api_version().into();
            object["kind"] = kind.into();
            Arc::new(object)
        }));
        next = page.next;
        if next.is_none() {
            return Ok(objects);
        }
    }
}
