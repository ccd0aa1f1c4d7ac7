//! Converts custom resources between the versions of their kind.
//!
//! ```text
//!  source ── copy ──► spec ── fields of the path, over the source ──► ── without fields that the version lacks ──► result
//!                                                                       └── `preserve`: kept in an annotation for the way back
//! ```
//!
//! Metadata and status stay as they are. Versions without a declared path are converted through the storage version.

mod kept;
mod prune;

use crate::{
    api::names,
    plan::{ConversionPlan, ConversionStep, ObjectKey},
    reconcile::{
        gate::GateEffects,
        render::{Frame, RenderError, Renderer},
        sources::Sources,
    },
    schema::Schema,
    template::{Budget, Data},
    value::{Key, Node, Path, set},
};

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

/// Converts `object` to the version `desired`, an `apiVersion` such as `demo.example.org/v2`.
///
/// # Errors
/// [`ConversionError`]; the budget of templates is one for the whole object.
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
    let version_of = |api_version: &str| -> Option<String> {
        let (group, version) = api_version.split_once('/')?;
        (group == &*plan.kind.group).then(|| version.to_owned())
    };
    let from = version_of(text("apiVersion"));
    let Some(from) = from.filter(|_| text("kind") == &*plan.kind.kind) else {
        return Err(wrong(format!("{} {}", text("apiVersion"), text("kind"))));
    };
    let to = version_of(desired).ok_or_else(|| wrong(desired.to_owned()))?;
    let Some(route) = plan.route(&from, &to) else {
        return Err(ConversionError::NoPath { from, to });
    };
    let mut budget = Budget::default();
    let mut object = object;
    for step in route {
        object = follow(plan, step, &object, &mut budget)?;
    }
    Ok(object)
}

/// Converts along one declared path.
fn follow(
    plan: &ConversionPlan,
    step: &ConversionStep,
    source: &Node,
    budget: &mut Budget,
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
    let (sources, effects) = (Sources::default(), GateEffects::default());
    let data = Data::of(source);
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
    let name = object.get("metadata").and_then(|meta| meta.get("name"));
    name.and_then(Node::as_str).unwrap_or_default()
}

/// The annotation with the fields that a version does not have.
pub const ANNOTATION: &str = names::ANNOTATION_CONVERSION;
