//! The reference of every field, from the shapes of the API types: pages, the output of `ork explain`, and a schema for
//! editors.

mod explain;
mod older;
mod page;
mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use explain::{NoSuchField, explain};
pub use older::older_page;
pub use page::{BLOCKS, PageBlock, katalog_page, komposer_page, motif_page};
pub use schema::json_schema;

use crate::api::shape::{Field, ObjectShape, Shape, Support};

/// Returns the maps that a value may be: itself, an item of it, or one of several forms.
fn maps(shape: &Shape) -> Vec<&Arc<ObjectShape>> {
    match shape {
        Shape::Object(object) => vec![object],
        Shape::List(item) => maps(item),
        Shape::OneOf(shapes) => shapes.iter().flat_map(maps).collect(),
        Shape::OrTemplate(written) => maps(written),
        _ => Vec::new(),
    }
}

/// Returns the maps that a value contains. For a map with the user's own keys, these are its values.
fn named_maps(shape: &Shape) -> Vec<&Arc<ObjectShape>> {
    let mut named = Vec::new();
    for object in maps(shape) {
        if !object.fields.is_empty() {
            named.push(object);
        }
        named.extend(object.rest.iter().flat_map(|rest| named_maps(rest)));
    }
    named
}

/// Describes the type of a value in a few words: `list of Deployment`.
fn type_of(shape: &Shape) -> String {
    type_with(shape, &str::to_owned)
}

/// Like [`type_of`], with the names of maps from `name`.
fn type_with(shape: &Shape, name: &dyn Fn(&str) -> String) -> String {
    match shape {
        Shape::Free => "any".to_owned(),
        Shape::Scalar => "value".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Bool => "boolean".to_owned(),
        Shape::Int { .. } => "integer".to_owned(),
        Shape::Duration => "duration".to_owned(),
        Shape::Enum { .. } => "word".to_owned(),
        Shape::List(item) => format!("list of {}", type_with(item, name)),
        Shape::Object(object) => match (&object.rest, object.fields.is_empty()) {
            (Some(rest), true) => format!("map of {}", type_with(rest, name)),
            _ => name(&object.name),
        },
        Shape::OneOf(shapes) => {
            let forms: Vec<String> = shapes.iter().map(|shape| type_with(shape, name)).collect();
            forms.join(" or ")
        }
        Shape::OrTemplate(written) => format!("{} or template", type_with(written, name)),
    }
}

/// Returns the words of an enum: those that are implemented, then those that are not yet.
fn words(shape: &Shape) -> Option<(&[String], &[String])> {
    match shape {
        Shape::Enum { values, later } => Some((values, later)),
        Shape::List(item) => words(item),
        Shape::OneOf(shapes) => shapes.iter().find_map(words),
        Shape::OrTemplate(written) => words(written),
        _ => None,
    }
}

/// Describes the support of a field; `None` if it is implemented.
fn support_note(field: &Field) -> Option<String> {
    match &field.support {
        Support::Works => None,
        Support::Later => Some("not supported yet".to_owned()),
        Support::Ignored(why) if why.is_empty() => Some("accepted, no effect".to_owned()),
        Support::Ignored(why) => Some(format!("accepted, no effect: {why}")),
        Support::Refused(why) => Some(format!("refused: {why}")),
    }
}

/// Returns the fields in reading order: required, implemented, others.
fn in_order(fields: &BTreeMap<String, Field>) -> Vec<(&String, &Field)> {
    let mut list: Vec<(&String, &Field)> = fields.iter().collect();
    list.sort_by_key(|(_, field)| (!field.required, !field.works()));
    list
}
