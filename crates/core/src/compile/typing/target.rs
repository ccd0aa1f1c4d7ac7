//! The field that a template's value is written to, with its coercion and its schema.

use crate::{
    plan::Coerce,
    schema::{Kinds, Schema, Type, with_article},
    value::Node,
};

/// A field that takes a value.
#[derive(Clone, Copy)]
pub(super) struct Target<'s> {
    pub(super) coerce: Coerce,
    pub(super) schema: Option<Schema<'s>>,
}

impl<'s> Target<'s> {
    /// Returns the kinds of values that it accepts.
    pub(super) fn takes(&self) -> Kinds {
        match (self.coerce, self.schema) {
            (Coerce::Native | Coerce::Auto, schema) => {
                schema.map_or(Kinds::ANY, |schema| schema.kinds_of_type())
            }
            (coerce, _) => Kinds::that(|sample| coerce.apply(sample).is_ok()),
        }
    }

    /// Returns a word as coerced for the field.
    pub(super) fn spelled(&self, word: &Node) -> Node {
        let made = match self.coerce {
            Coerce::Word(_) => self.coerce.apply(word.clone()).ok().flatten(),
            _ => None,
        };
        made.unwrap_or_else(|| word.clone())
    }

    pub(super) fn words(&self) -> Option<&'s [Node]> {
        self.schema?.words()
    }

    /// Describes it in words: `an integer`.
    pub(super) fn describe(&self) -> String {
        match self.coerce {
            Coerce::Int => "an integer".to_owned(),
            Coerce::Port => "a port's number".to_owned(),
            Coerce::Float => "a number".to_owned(),
            Coerce::Bool => "true or false".to_owned(),
            Coerce::IntOrText => "an integer or text".to_owned(),
            Coerce::Base64 => "text".to_owned(),
            _ => match self.schema {
                Some(schema) => with_article(&schema.describe()),
                None if matches!(self.coerce, Coerce::Native | Coerce::Auto) => {
                    "anything".to_owned()
                }
                None => "text".to_owned(),
            },
        }
    }

    pub(super) fn given(&self, gives: &Type<'_>) -> String {
        let reads = !matches!(self.coerce, Coerce::Native | Coerce::Auto);
        if reads && gives.may.within(Kinds::TEXT) {
            "text that is never one".to_owned()
        } else {
            with_article(&gives.to_string())
        }
    }
}

/// Returns the kinds of values that a coercion produces.
pub(super) fn made_by(coerce: Coerce) -> Kinds {
    let mut made = Kinds::NONE;
    for (_, sample) in Kinds::samples() {
        if let Ok(Some(node)) = coerce.apply(sample) {
            made = made | Kinds::of(&node);
        }
    }
    made
}
