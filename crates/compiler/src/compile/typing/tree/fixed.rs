//! Checks literal values against a schema.

use super::{TreePosition, keys};
use crate::resources::amount::{self, shortened};
use orkestra_language::{
    diagnostics::Code,
    schema::{Kinds, NestedSchema, Schema, with_article},
};
use orkestra_object::value::Node;
use orkestra_template::explain_word;

/// Checks a value and everything in it.
pub(crate) fn check(node: &Node, schema: Schema<'_>, place: &TreePosition<'_>) {
    if *node == Node::Null {
        return;
    }
    let takes = schema.kinds_of_type();
    if !takes.meets(Kinds::of(node)) {
        wrong_type(node, schema, place);
        return;
    }
    check_text(node, schema, place);
    match node {
        Node::List(items) => {
            keys::check(items, schema, place);
            if let NestedSchema::Schema(below) = schema.item() {
                for (index, item) in items.iter().enumerate() {
                    check(item, below, &place.index(index));
                }
            }
        }
        Node::Map(fields) => {
            place.missing(schema, |name| fields.get(name).is_some());
            for (key, value) in fields.iter() {
                match schema.field(key) {
                    NestedSchema::Schema(below) => check(value, below, &place.field(key)),
                    NestedSchema::Anything => {}
                    NestedSchema::Nowhere => place.unknown_field(key, schema),
                }
            }
        }
        _ => {}
    }
}

/// Reports a value of another type than the schema has.
fn wrong_type(node: &Node, schema: Schema<'_>, place: &TreePosition<'_>) {
    let is_text_missing = schema.kinds_of_type().within(Kinds::TEXT)
        && Kinds::of(node).within(Kinds::BOOL | Kinds::NUMBER);
    let message = format!(
        "`{}` takes {}, not {}",
        place.path,
        with_article(&schema.describe()),
        format_value(node)
    );
    if is_text_missing {
        let hint = "put it into quotes";
        place.at.error_hint(Code::WrongValue, message, hint);
    } else {
        place.at.error(Code::WrongValue, message);
    }
}

/// Checks a text against the words that the schema lists, and a quantity.
fn check_text(node: &Node, schema: Schema<'_>, place: &TreePosition<'_>) {
    if let Some(words) = schema.words()
        && !node.is_empty_value()
        && !words.contains(node)
    {
        let (message, hint) = explain_word(node, words);
        match hint {
            Some(hint) => place.at.error_hint(Code::NotInEnum, message, hint),
            None => place.at.error(Code::NotInEnum, message),
        }
    }
    if schema.is_quantity()
        && let Some((message, hint)) = amount::explain(node)
    {
        match hint {
            Some(hint) => place.at.error_hint(Code::WrongValue, message, hint),
            None => place.at.error(Code::WrongValue, message),
        }
    }
}

/// Formats a value for a message.
fn format_value(node: &Node) -> String {
    match node {
        Node::List(_) => "a list".to_owned(),
        Node::Map(_) => "a map".to_owned(),
        Node::Str(text) => format!("the text `{}`", shortened(text)),
        node => format!("`{}`", node.to_text()),
    }
}
