//! Stored objects that cannot be converted: marked in the version in which they are read, and not converted back.

use super::{ConversionError, prune, version_of};
use orkestra_language::{api::names, schema::Schema};
use orkestra_object::value::{Node, Path, set};
use orkestra_plan::ConversionPlan;

/// The most bytes of the annotation.
const MOST_BYTES: usize = 1024;

fn path() -> Path {
    Path::of_fields([
        "metadata",
        "annotations",
        names::ANNOTATION_CONVERSION_FAILED,
    ])
}

/// Refuses a marked object of a version other than the stored one; in the stored one, the annotation means nothing and is removed.
pub(crate) fn check(
    plan: &ConversionPlan,
    from: &str,
    object: &mut Node,
) -> Result<(), ConversionError> {
    let Some(why) = object.at(&path()) else {
        return Ok(());
    };
    if from != &*plan.storage {
        return Err(ConversionError::Incomplete {
            version: from.to_owned(),
            why: why.as_str().unwrap_or_default().to_owned(),
            storage: plan.storage.to_string(),
        });
    }
    prune::remove_annotation(object, &path());
    Ok(())
}

/// Returns `object` in the desired version, marked with `error`: without the fields that the path sets, and without those that
/// the version does not have.
///
/// # Errors
/// `error`, unless the object is of the storage version. Nothing else may be marked: it may be a write, which is to be refused.
pub(crate) fn marked(
    plan: &ConversionPlan,
    mut object: Node,
    desired: &str,
    error: ConversionError,
) -> Result<Node, ConversionError> {
    let version = |api_version: &str| version_of(plan, api_version);
    let from = object.get("apiVersion").and_then(Node::as_str);
    let (true, Some(to)) = (
        from.and_then(version).as_deref() == Some(&*plan.storage),
        version(desired),
    ) else {
        return Err(error);
    };
    let fields = plan.step(&plan.storage, &to).into_iter();
    for (path, _) in fields.flat_map(|step| &step.fields) {
        prune::remove(&mut object, path);
    }
    if let Some(schema) = plan.schemas.get(&*to) {
        prune::spec(
            &mut object,
            Schema::of_objects(schema, None),
            &mut Vec::new(),
        );
    }
    set(
        &mut object,
        &Path::of_fields(["apiVersion"]),
        Node::from(desired),
    );
    let mut why = error.to_string();
    why.truncate(why.floor_char_boundary(MOST_BYTES));
    set(&mut object, &path(), Node::from(why));
    Ok(object)
}
