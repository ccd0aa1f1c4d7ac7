//! Whole documents: the fields next to `spec`. The types exist only for their schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;

use super::info::Info;
use super::later::Accepted;
use super::scalar::Text;
use super::shape::Shape;

/// A document.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{S}Document")]
#[expect(dead_code, reason = "only the schema is used")]
struct Envelope<S> {
    /// `orkestra.orkspace.io/v1`.
    api_version: Option<String>,
    /// The document's kind.
    kind: Option<String>,
    /// Name, namespace, labels and annotations, and descriptive metadata.
    metadata: Option<Metadata>,
    /// The specification of the document.
    spec: S,
    /// Written by Orkestra.
    status: Option<serde_json::Value>,
}

/// Metadata of a document.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Accepted(&[
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
    "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
]))]
#[expect(dead_code, reason = "only the schema is used")]
struct Metadata {
    /// Name of the document. Default: the name of the file, or of its folder.
    name: Option<String>,
    /// The document's namespace.
    namespace: Option<String>,
    /// Labels of the document.
    labels: Option<BTreeMap<String, Text>>,
    /// Annotations of the document.
    annotations: Option<BTreeMap<String, Text>>,
    /// Author, version and other descriptive metadata.
    #[serde(flatten)]
    info: Info,
}

/// The shape of a document that declares `S`. The `blocks` are fields of `spec` that may stand beside it.
pub(crate) fn shape<S: JsonSchema>(blocks: &[&str]) -> Shape {
    let mut shape = Shape::of::<Envelope<S>>();
    if let Shape::Object(root) = &mut shape
        && let Some(Shape::Object(spec)) = root.fields.get("spec").map(|field| field.shape.clone())
    {
        let root = Arc::make_mut(root);
        for block in blocks {
            if let Some(field) = spec.fields.get(*block) {
                root.fields.insert((*block).to_owned(), field.clone());
            }
        }
    }
    shape
}

/// The shape of a document whose `spec` may be left out.
pub(crate) fn without_spec(mut shape: Shape) -> Shape {
    if let Shape::Object(root) = &mut shape
        && let Some(spec) = Arc::make_mut(root).fields.get_mut("spec")
    {
        spec.required = false;
    }
    shape
}
