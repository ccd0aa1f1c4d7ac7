//! Children that hooks return as entries of the language.

use std::sync::Arc;

use crate::scope::Library;
use orkestra_language::{
    api::names,
    diagnostics::{Diagnostic, Severity},
    document::read_stream,
};
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, OperatorPlan, ResourceType, definitions::Schemas};

/// Compiles entries that a hook returns, lists of a lifecycle block by name, as the children of custom resources of that kind.
/// Texts are literal: a template in an answer is text.
///
/// # Errors
/// The first problem, with its path below the entries.
pub(crate) fn compile(resource: &ResourceType, entries: &Node) -> Result<OperatorPlan, String> {
    let document = serde_json::json!({
        "apiVersion": names::API_VERSION,
        "kind": "Katalog",
        "metadata": { "name": "hook" },
        "spec": { "crds": { "hook": {
            "apiTypes": {
                "group": &*resource.group,
                "version": &*resource.version,
                "kind": &*resource.kind,
                "plural": resource.plural.as_deref().unwrap_or_default(),
            },
            "namespaced": resource.namespaced.unwrap_or(true),
            "operatorBox": { "onReconcile": literal(entries).to_json() },
        } } },
    });
    let first = |problems: &[Diagnostic]| {
        let errors = problems
            .iter()
            .filter(|one| one.severity == Severity::Error);
        let mut texts = errors.map(|one| {
            let path = one.path.to_string();
            let below = path.strip_prefix("spec.crds.hook.operatorBox.onReconcile.");
            format!("{}: {}", below.unwrap_or(&path), one.message)
        });
        texts.next().unwrap_or_default()
    };
    let read = read_stream("hook", &document.to_string());
    let (documents, _) = read.map_err(|problems| first(&problems.0))?;
    let spec = documents.katalogs.first().map(|one| &one.spec);
    let spec = spec.ok_or_else(|| "there are no entries".to_owned())?;
    let reference = KatalogRef::new("default".to_owned(), "hook".to_owned());
    let compiled =
        crate::compile::katalog(&reference, spec, &Schemas::default(), &Library::default());
    let (plan, _) = compiled.map_err(|problems| first(&problems.0))?;
    let operator = plan.operators.into_iter().next();
    operator
        .and_then(Arc::into_inner)
        .ok_or_else(|| "there are no entries".to_owned())
}

/// Returns a value in which texts with template actions are templates of these texts.
fn literal(node: &Node) -> Node {
    match node {
        Node::Str(text) if text.contains("{{") => {
            let quoted = serde_json::Value::from(&**text).to_string();
            Node::from(format!("{{{{ {quoted} }}}}"))
        }
        Node::List(items) => Node::List(items.iter().map(literal).collect()),
        Node::Map(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.clone(), literal(value)));
            Node::Map(fields.collect())
        }
        other => other.clone(),
    }
}
