//! Fields that a version does not have, kept in an annotation for the way back.
//!
//! The annotation is JSON: by version, the values by path, such as `{"v1":{"spec.tier":"gold"}}`.

use super::{ConversionError, prune};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node, Path, nesting, set};
use orkestra_plan::ConversionStep;

/// The most bytes of the annotation. The API server accepts 256 KiB of annotations in total.
const MOST_BYTES: usize = 128 * 1024;

fn path() -> Path {
    Path::of_fields(["metadata", "annotations", names::ANNOTATION_CONVERSION])
}

/// Returns how deeply the values in the annotation of an object are nested.
pub(crate) fn levels(object: &Node) -> usize {
    text(object).map_or(0, nesting::levels)
}

fn text(object: &Node) -> Option<&str> {
    object.at(&path())?.as_str()
}

/// Returns the content of the annotation; empty if it has another form.
fn read(object: &Node) -> Map {
    let node = text(object).and_then(|text| nesting::read(text).ok());
    match node {
        Some(Node::Map(map)) => map,
        _ => Map::default(),
    }
}

/// Restores the fields of `version` that were kept, and removes them from the annotation. Fields that the object has are not
/// changed.
pub(crate) fn restore(object: &mut Node, version: &str) {
    let mut kept = read(object);
    let Some(Node::Map(fields)) = kept.remove(version) else {
        return;
    };
    for (key, value) in fields {
        let Ok(field) = Path::parse(&key) else {
            continue;
        };
        // The annotation is input: it sets fields of the spec, and nothing else.
        let is_spec = field.starts_with(&Path::of_fields(["spec"])) && field.steps().len() > 1;
        if is_spec && object.at(&field).is_none() {
            set(object, &field, value);
        }
    }
    write(object, kept);
}

/// Keeps the fields that a step lost.
pub(crate) fn keep(
    object: &mut Node,
    step: &ConversionStep,
    lost: Vec<(Path, Node)>,
) -> Result<(), ConversionError> {
    if lost.is_empty() {
        return Ok(());
    }
    let mut kept = read(object);
    let fields = lost.into_iter();
    let fields = fields.map(|(path, value)| (Key::from(&*path.to_string()), value));
    kept.insert(Key::from(&*step.from), Node::Map(fields.collect::<Map>()));
    let bytes = Node::Map(kept.clone()).to_text().len();
    if bytes > MOST_BYTES {
        return Err(ConversionError::TooLarge {
            version: step.to.to_string(),
            bytes,
            limit: MOST_BYTES,
        });
    }
    write(object, kept);
    Ok(())
}

fn write(object: &mut Node, kept: Map) {
    if !kept.is_empty() {
        let text = Node::Map(kept).to_text().into_owned();
        return set(object, &path(), Node::from(text));
    }
    prune::remove_annotation(object, &path());
}
