//! Converts custom resources between the versions of their kind.
//!
//! ```text
//!  source ── copy ──► spec ── fields of the path, over the source ──► ── without fields that the version lacks ──► result
//!                                                                       └── `preserve`: kept in an annotation for the way back
//! ```
//!
//! Metadata and status stay as they are. Versions without a declared path are converted through the storage version.
//!
//! The API server fails a whole list if one of its objects cannot be converted. So a stored object whose conversion fails is returned
//! all the same, marked by an annotation, and a marked object is not converted back: its content would be lost.

mod failed;
mod kept;
mod prune;

use crate::reconcile::{
    gate_effects::GateEffects,
    render::{Frame, RenderError, Renderer},
    template_data::TemplateData,
};
use orkestra_language::{api::names, schema::Schema};
use orkestra_object::value::{Cause, Fault, Key, Node, Path, nesting, set};
use orkestra_plan::{ConversionPlan, ConversionStep, ObjectKey};
use orkestra_template::{Data, EvalBudget};

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// It is not of the kind of the plan.
    #[error("`{found}` is not a version of {wanted}")]
    WrongKind {
        /// The `apiVersion` and kind of the object, or the desired `apiVersion`.
        found: String,
        /// The kind of the plan.
        wanted: String,
    },
    /// No path leads from one version to the other.
    #[error("there is no path from {from} to {to}")]
    NoPath {
        /// The version of the object.
        from: String,
        /// The desired version.
        to: String,
    },
    /// The object cannot be decoded.
    #[error("the object cannot be read: {0}")]
    Unreadable(Fault),
    /// A template reads a part of the object that is nested too deeply for templates.
    #[error("a template of the path to {to} reads a part that cannot be read: {fault}")]
    ReadsUnreadable {
        /// The desired version.
        to: String,
        /// The part.
        fault: Fault,
    },
    /// It was read in a version to which it could not be converted, and changed there.
    #[error(
        "the object could not be converted to {version}, so that its content there is incomplete ({why}): change it in \
         {storage}, or remove the annotation `{annotation}` to replace its content",
        annotation = names::ANNOTATION_CONVERSION_FAILED
    )]
    Incomplete {
        /// The version of the object.
        version: String,
        /// Why it could not be converted to it.
        why: String,
        /// The storage version.
        storage: String,
    },
    /// A template failed.
    #[error(transparent)]
    Field(#[from] RenderError),
    /// The fields that the version lacks are too large for an annotation.
    #[error(
        "the fields that {version} does not have take {bytes} bytes, more than {limit} to preserve"
    )]
    TooLarge {
        /// The desired version.
        version: String,
        /// Their size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl ConversionError {
    /// True if the content of the object is the cause, so that other objects of its kind can be converted.
    fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::Field(_) | Self::TooLarge { .. } | Self::ReadsUnreadable { .. }
        )
    }
}

/// Converts the JSON text of an object, of any depth, as [`convert`] does. A stored object whose conversion fails because of its
/// content is marked instead: the fields that the path sets are missing, and so are those that the version does not have.
///
/// # Errors
/// As [`convert`], and [`ConversionError::Unreadable`].
pub fn convert_json(
    plan: &ConversionPlan,
    json: &str,
    desired: &str,
) -> Result<String, ConversionError> {
    let unreadable = |cause: Cause| {
        let path = Path::root();
        ConversionError::Unreadable(Fault { path, cause })
    };
    let read = || nesting::read(json).map_err(|error| unreadable(Cause::of(&error)));
    let carry = |object| {
        let converted = convert(plan, object, desired).or_else(|error| {
            if error.is_of_content() {
                failed::marked(plan, read()?, desired, error)
            } else {
                Err(error)
            }
        })?;
        Ok(converted.to_text().into_owned())
    };
    let levels = nesting::levels(json);
    let work = || {
        let object = read()?;
        // Fields that were kept may be nested more deeply than the object that keeps them.
        match kept::levels(&object) {
            more if plan.preserve && more > levels => {
                nesting::with_room(more, || carry(object)).map_err(unreadable)?
            }
            _ => carry(object),
        }
    };
    nesting::with_room(levels, work).map_err(unreadable)?
}

/// Converts `object` to the version `desired`, an `apiVersion` such as `demo.example.org/v2`.
///
/// An object of more than [`nesting::USUAL_LEVELS`], or that keeps such fields, needs the stack that [`convert_json`] provides.
///
/// # Errors
/// [`ConversionError`]; the budget of templates is one for the whole object.
///
/// ```
/// use orkestra_compiler::{compile, scope::Library};
/// use orkestra_engine::{conversion::convert};
/// use orkestra_plan::{definitions::Schemas, KatalogRef};
/// use orkestra_language::{document::read_stream};
/// use orkestra_object::value::Node;
/// use serde_json::json;
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v2, kind: Pond, plural: ponds }
///       conversion:
///         storageVersion: v2
///         paths:
///           - { from: v1, to: v2, spec: { size.depth: '{{ .spec.depth }}' } }
///           - { from: v2, to: v1, spec: { depth: '{{ .spec.size.depth }}' } }
/// ";
/// let version = |name: &str, spec: serde_json::Value| json!({
///     "name": name, "served": true, "storage": name == "v2",
///     "schema": { "openAPIV3Schema": {
///         "type": "object", "properties": { "spec": { "type": "object", "properties": spec } },
///     } },
/// });
/// let depth = json!({ "depth": { "type": "integer" } });
/// let definition = json!({
///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///     "spec": {
///         "group": "water.example", "scope": "Namespaced",
///         "names": { "kind": "Pond", "plural": "ponds" },
///         "versions": [
///             version("v1", depth.clone()),
///             version("v2", json!({ "size": { "type": "object", "properties": depth } })),
///         ],
///     },
/// });
/// let schemas = Schemas::from_crd(&Node::from(&definition))?;
///
/// let (documents, _) = read_stream("katalog.yaml", text)?;
/// let reference = KatalogRef::new("default".to_owned(), "ponds".to_owned());
/// let spec = &documents.katalogs[0].spec;
/// let (plan, _) = compile::katalog(&reference, spec, &schemas, &Library::default())?;
///
/// let pond = json!({
///     "apiVersion": "water.example/v1", "kind": "Pond",
///     "metadata": { "name": "north" }, "spec": { "depth": 3 },
/// });
/// let converted = convert(&plan.conversions[0], Node::from(&pond), "water.example/v2")?.to_json();
/// assert_eq!(converted["apiVersion"], "water.example/v2");
/// assert_eq!(converted["spec"], json!({ "size": { "depth": 3 } }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert(
    plan: &ConversionPlan,
    object: Node,
    desired: &str,
) -> Result<Node, ConversionError> {
    let wrong = |found: String| ConversionError::WrongKind {
        found,
        wanted: plan.kind.to_string(),
    };
    let text = |field: &str| object.get(field).and_then(Node::as_str).unwrap_or_default();
    let from = version_of(plan, text("apiVersion"));
    let Some(from) = from.filter(|_| text("kind") == &*plan.kind.kind) else {
        return Err(wrong(format!("{} {}", text("apiVersion"), text("kind"))));
    };
    let to = version_of(plan, desired).ok_or_else(|| wrong(desired.to_owned()))?;
    let Some(route) = plan.route(&from, &to) else {
        return Err(ConversionError::NoPath { from, to });
    };
    let mut object = object;
    failed::check(plan, &from, &mut object)?;
    let mut budget = EvalBudget::default();
    for step in route {
        object = follow(plan, step, &object, &mut budget)?;
    }
    Ok(object)
}

/// Returns the version of an `apiVersion` of the kind's group.
fn version_of(plan: &ConversionPlan, api_version: &str) -> Option<String> {
    let (group, version) = api_version.split_once('/')?;
    (group == &*plan.kind.group).then(|| version.to_owned())
}

/// Converts along one declared path.
fn follow(
    plan: &ConversionPlan,
    step: &ConversionStep,
    source: &Node,
    budget: &mut EvalBudget,
) -> Result<Node, ConversionError> {
    let mut result = source.clone();
    // Before any is set: fields of the source are never taken for those of the result.
    for (path, _) in &step.fields {
        prune::remove(&mut result, path);
    }
    let key = ObjectKey {
        namespace: None,
        name: Key::from(name_of(source)),
    };
    let (sources, effects) = (TemplateData::default(), GateEffects::default());
    // Templates have the stack of a usual thread for their values.
    let shallow = nesting::shallow(source);
    let mut faults = shallow.iter().flat_map(|(_, faults)| faults);
    if let Some(fault) = faults.find(|fault| is_read(step, &fault.path)) {
        let (to, fault) = (step.to.to_string(), fault.clone());
        return Err(ConversionError::ReadsUnreadable { to, fault });
    }
    let data = Data::of(shallow.as_ref().map_or(source, |(readable, _)| readable));
    let mut renderer = Renderer {
        data: &data,
        budget,
        frame: Frame {
            owner: (&plan.kind, &key),
            sources: &sources,
            effects: &effects,
        },
    };
    for (path, tree) in &step.fields {
        if let Some(value) = renderer.tree(tree)? {
            set(&mut result, path, value);
        }
    }
    let api_version = format!("{}/{}", plan.kind.group, step.to);
    set(
        &mut result,
        &Path::of_fields(["apiVersion"]),
        Node::from(api_version),
    );
    let mut lost = Vec::new();
    if let Some(schema) = plan.schemas.get(&step.to) {
        prune::spec(&mut result, Schema::of_objects(schema, None), &mut lost);
    }
    if plan.preserve {
        kept::restore(&mut result, &step.to);
        let mut uncarried = Vec::new();
        for (path, value) in lost {
            each_uncarried(step, path, value, &mut uncarried);
        }
        kept::keep(&mut result, step, uncarried)?;
    }
    Ok(result)
}

/// True if a template of the step reads the part at `path`, or a part above or below it.
fn is_read(step: &ConversionStep, path: &Path) -> bool {
    let mut found = false;
    for (_, tree) in &step.fields {
        tree.visit(&mut |leaf| {
            let mut reads = leaf.template.reads().iter();
            found |= reads.any(|read| path.overlaps(read));
        });
    }
    found
}

/// Adds the fields at or below `path` that no template of the step reads: those that one reads have another form in the
/// result.
fn each_uncarried(
    step: &ConversionStep,
    path: Path,
    value: Node,
    uncarried: &mut Vec<(Path, Node)>,
) {
    let (mut is_read, mut is_read_in_part) = (false, false);
    for (_, tree) in &step.fields {
        tree.visit(&mut |leaf| {
            for read in leaf.template.reads() {
                is_read |= path.starts_with(read);
                is_read_in_part |= read.starts_with(&path);
            }
        });
    }
    match value {
        _ if is_read => {}
        Node::Map(map) if is_read_in_part => {
            for (key, value) in map {
                let mut below = path.clone();
                below.push_field(key);
                each_uncarried(step, below, value, uncarried);
            }
        }
        value => uncarried.push((path, value)),
    }
}

fn name_of(object: &Node) -> &str {
    object.meta_text("name").unwrap_or_default()
}

/// The annotation with the fields that a version does not have.
pub const ANNOTATION: &str = names::ANNOTATION_CONVERSION;
