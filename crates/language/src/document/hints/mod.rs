//! Hints for fields that are not valid in their position.

mod conditions;
mod elsewhere;

use crate::api::shape::{Field, ObjectShape, Shape};
use crate::diagnostics::{FieldPath, Segment, did_you_mean};
use crate::tree::{Tree, TreeValue};

/// The maximum number of fields that a hint lists.
const FIELDS_NAMED: usize = 10;

/// A map around the current value.
pub(crate) struct EnclosingMap<'a> {
    /// Its path.
    pub(crate) path: FieldPath,
    /// Its fields.
    pub(crate) object: &'a ObjectShape,
}

/// Returns a hint for the field `name`, which the last map of `around` does not have.
pub(crate) fn unknown(name: &str, around: &[EnclosingMap<'_>]) -> Option<String> {
    let (here, outer) = around.split_last()?;
    let fields = &here.object.fields;
    if let Some(hint) = elsewhere::instead(name, here.object) {
        return Some(hint);
    }
    if let Some(hint) = below(name, here.object).or_else(|| beside(name, outer, &here.path)) {
        return Some(hint);
    }
    did_you_mean(name, fields.keys().map(String::as_str))
        .or_else(|| listed(here.object).map(|fields| format!("known fields: {fields}")))
}

/// Returns a hint for a word that is not one of `known`, if it is one of other languages.
pub(crate) fn word(text: &str, known: &[String]) -> Option<String> {
    elsewhere::word(text, known)
}

/// The field belongs one level deeper, in the only map there that has it.
fn below(name: &str, object: &ObjectShape) -> Option<String> {
    let mut having = object.fields.iter().filter(|(_, field)| {
        let inner = map(&field.shape).and_then(|map| map.fields.get(name));
        field.works() && inner.is_some_and(Field::works)
    });
    let (only, _) = having.next()?;
    having
        .next()
        .is_none()
        .then(|| format!("it belongs under `{only}`"))
}

/// The field belongs further out, next to one of the enclosing maps.
fn beside(name: &str, outer: &[EnclosingMap<'_>], here: &FieldPath) -> Option<String> {
    let owner = outer
        .iter()
        .rev()
        .find(|around| around.object.fields.get(name).is_some_and(Field::works))?;
    match here.segments().get(owner.path.segments().len())? {
        Segment::Field(inner) => Some(format!(
            "reduce its indentation: it belongs next to `{inner}`"
        )),
        Segment::Index(_) => None,
    }
}

fn map(shape: &Shape) -> Option<&ObjectShape> {
    match shape {
        Shape::Object(object) => Some(object),
        Shape::OneOf(shapes) => shapes.iter().find_map(map),
        Shape::OrTemplate(written) => map(written),
        _ => None,
    }
}

/// Lists the fields of a map, if they are few.
fn listed(object: &ObjectShape) -> Option<String> {
    let fields = object.fields.iter().filter(|(_, field)| field.works());
    let named: Vec<String> = fields.map(|(name, _)| format!("`{name}`")).collect();
    (!named.is_empty() && named.len() <= FIELDS_NAMED).then(|| named.join(", "))
}

/// Returns a hint for a text, a number or a boolean in the place of `shape`.
pub(crate) fn instead_of_scalar(shape: &Shape, tree: &Tree) -> Option<String> {
    if let Some(hint) = tree
        .as_str()
        .and_then(|text| instead_of_text(shape, text.trim()))
    {
        return Some(hint);
    }
    match shape {
        Shape::Bool => truth(tree).map(|flag| format!("write `{flag}`")),
        Shape::Object(object) if object.rest.is_some() => Some("write `key: value`".to_owned()),
        Shape::Object(object) => listed(object).map(|fields| format!("its fields are {fields}")),
        Shape::List(_) => Some("begin each item with `- `".to_owned()),
        _ => None,
    }
}

/// Returns the boolean that a word or a number means in other tools.
fn truth(tree: &Tree) -> Option<bool> {
    match &tree.value {
        TreeValue::Int(number) => [false, true].get(usize::try_from(*number).ok()?).copied(),
        TreeValue::Str(text) => match &*text.trim().to_ascii_lowercase() {
            "yes" | "y" | "on" | "enabled" | "enable" | "true" | "1" => Some(true),
            "no" | "n" | "off" | "disabled" | "disable" | "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a hint for a text in the place of a map or a list that other tools accept there.
fn instead_of_text(shape: &Shape, text: &str) -> Option<String> {
    let object = match shape {
        Shape::Object(object) => object,
        Shape::List(item) => match &**item {
            Shape::Object(object) if object.fields.contains_key("notEquals") => {
                return Some(format!("write `- {{ {} }}`", conditions::meant(text)?));
            }
            _ => return None,
        },
        _ => return None,
    };
    let has = |name: &str| object.fields.contains_key(name);
    if has("notEquals") {
        return Some(format!("write `{{ {} }}`", conditions::meant(text)?));
    }
    if has("nodePort") && has("targetPort") {
        let (port, target) = text.split_once(':')?;
        let is_number = |text: &str| text.parse::<u16>().is_ok();
        return (is_number(port) && is_number(target))
            .then(|| format!("write `{{ port: {port}, targetPort: {target} }}`"));
    }
    if has("valueFrom") {
        let (name, _) = text.split_once('=')?;
        return Some(format!("write `env` as a map, `{name}: …`"));
    }
    None
}
