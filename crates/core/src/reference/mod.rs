//! The reference of every field, from the shapes of the API types: a page, what `ork explain` prints, and a schema for
//! editors.

mod explain;
mod page;
mod schema;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use explain::{NoSuchField, explain};
pub use page::{BLOCKS, Block, katalog_page, motif_page};
pub use schema::json_schema;

use crate::api::shape::{Field, ObjectShape, Shape, Support};

/// The maps that a value may be: itself, an item of it, or one of several forms.
fn maps(shape: &Shape) -> Vec<&Arc<ObjectShape>> {
    match shape {
        Shape::Object(object) => vec![object],
        Shape::List(item) => maps(item),
        Shape::OneOf(shapes) => shapes.iter().flat_map(maps).collect(),
        _ => Vec::new(),
    }
}

/// The maps that a value holds in the end: of a map of the user's own keys, what those hold.
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

/// What a value looks like, in a word or a few: `list of Deployment`.
fn type_of(shape: &Shape) -> String {
    type_with(shape, &str::to_owned)
}

/// As [`type_of`], with the names of maps as `name` gives them.
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
    }
}

/// The words of an enum: those that work, then those that are not built yet.
fn words(shape: &Shape) -> Option<(&[String], &[String])> {
    match shape {
        Shape::Enum { values, later } => Some((values, later)),
        Shape::List(item) => words(item),
        Shape::OneOf(shapes) => shapes.iter().find_map(words),
        _ => None,
    }
}

/// How far a field is supported, for people; nothing when it works.
fn support_note(field: &Field) -> Option<String> {
    match &field.support {
        Support::Works => None,
        Support::Later => Some("not supported yet".to_owned()),
        Support::Ignored(why) if why.is_empty() => Some("accepted, no effect".to_owned()),
        Support::Ignored(why) => Some(format!("accepted, no effect: {why}")),
        Support::Refused(why) => Some(format!("refused: {why}")),
    }
}

/// The fields in the order that readers want: those that must be there, those that work, the others.
fn in_order(fields: &BTreeMap<String, Field>) -> Vec<(&String, &Field)> {
    let mut list: Vec<(&String, &Field)> = fields.iter().collect();
    list.sort_by_key(|(_, field)| (!field.required, !field.works()));
    list
}
