//! The field that a template's value is written to, with its coercion and its schema.

use orkestra_language::schema::{Kinds, NestedSchema, Schema, Type, with_article};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, Whole};

/// A field that takes a value.
#[derive(Clone, Copy)]
pub(crate) struct Target<'s> {
    pub(crate) coerce: Coerce,
    pub(crate) schema: Option<Schema<'s>>,
}

impl<'s> Target<'s> {
    /// Returns the kinds of values that it accepts.
    pub(crate) fn takes(&self) -> Kinds {
        match (self.coerce, self.schema) {
            (Coerce::Native | Coerce::Auto, schema) => {
                schema.map_or(Kinds::ANY, |schema| schema.kinds_of_type())
            }
            (Coerce::Whole(whole), _) => whole.takes(),
            (coerce, _) => Kinds::that(|sample| coerce.apply(sample).is_ok()),
        }
    }

    /// Describes a part of a value that never fits, if the value is passed on as it is.
    pub(crate) fn mismatch_inside(&self, gives: &Type<'_>) -> Option<String> {
        let is_passed_on = matches!(
            self.coerce,
            Coerce::Native | Coerce::Whole(Whole::Map | Whole::List)
        );
        let field = self.schema.filter(|_| is_passed_on)?;
        mismatch(gives.schema()?, field, "", 0)
    }

    /// Returns a word as coerced for the field.
    pub(crate) fn spelled(&self, word: &Node) -> Node {
        let made = match self.coerce {
            Coerce::Word(_) => self.coerce.apply(word.clone()).ok().flatten(),
            _ => None,
        };
        made.unwrap_or_else(|| word.clone())
    }

    pub(crate) fn words(&self) -> Option<&'s [Node]> {
        self.schema?.words()
    }

    /// Describes it in words: `an integer`.
    pub(crate) fn describe(&self) -> String {
        match self.coerce {
            Coerce::Int => "an integer".to_owned(),
            Coerce::Port => "a port's number".to_owned(),
            Coerce::Float => "a number".to_owned(),
            Coerce::Bool => "true or false".to_owned(),
            Coerce::IntOrText => "an integer or text".to_owned(),
            Coerce::Base64 => "text".to_owned(),
            Coerce::Whole(whole) => whole.describe().to_owned(),
            _ => match self.schema {
                Some(schema) => with_article(&schema.describe()),
                None if matches!(self.coerce, Coerce::Native | Coerce::Auto) => {
                    "anything".to_owned()
                }
                None => "text".to_owned(),
            },
        }
    }

    pub(crate) fn given(&self, gives: &Type<'_>) -> String {
        let reads = !matches!(
            self.coerce,
            Coerce::Native | Coerce::Auto | Coerce::Whole(_)
        );
        if reads && gives.may.within(Kinds::TEXT) {
            "text that is never one".to_owned()
        } else {
            with_article(&gives.to_string())
        }
    }
}

/// The parts of values that are compared are this deep at most.
const MOST_LEVELS: usize = 8;

/// Returns the first part below `at` whose type is never the wanted one.
fn mismatch(given: Schema<'_>, wanted: Schema<'_>, at: &str, depth: usize) -> Option<String> {
    let (returned, accepted) = (given.kinds(), wanted.kinds_of_type());
    if returned != Kinds::NONE && !returned.meets(accepted) {
        return Some(format!(
            "expected {} at `{}` of the value, but the template returns {}",
            with_article(&wanted.describe()),
            at.trim_start_matches('.'),
            with_article(&given.describe()),
        ));
    }
    if depth == MOST_LEVELS {
        return None;
    }
    let below = |given, wanted, at: &str| match (given, wanted) {
        (NestedSchema::Schema(given), NestedSchema::Schema(wanted)) => {
            mismatch(given, wanted, at, depth + 1)
        }
        _ => None,
    };
    if returned == Kinds::LIST {
        return below(given.item(), wanted.item(), &format!("{at}[]"));
    }
    if returned != Kinds::MAP {
        return None;
    }
    let mut fields = given.fields();
    let found = fields.find_map(|name| {
        let at = format!("{at}.{name}");
        below(given.field(name), wanted.field(name), &at)
    });
    found.or_else(|| below(given.any_value(), wanted.any_value(), &format!("{at}.*")))
}

/// Returns the kinds of values that a coercion produces.
pub(crate) fn made_by(coerce: Coerce) -> Kinds {
    let mut made = Kinds::NONE;
    for (_, sample) in Kinds::samples() {
        if let Ok(Some(node)) = coerce.apply(sample) {
            made = made | Kinds::of(&node);
        }
    }
    made
}
