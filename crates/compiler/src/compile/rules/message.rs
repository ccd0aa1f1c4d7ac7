//! The default message of a rule, derived from its condition.

use crate::compile::conditions::relations;
use orkestra_language::api::{GateCondition, GateOperator, scalar::Texts};

/// Returns the sentence for `condition`, such as `must be at least 3`, to follow the label of the rule. The label is the
/// field itself, unless `names_field`, which adds the field to the sentence: `spec.depth must be at least 3`.
///
/// Templates in the field and in the compared value stay templates: they are rendered when the rule fails.
pub(crate) fn of(condition: &GateCondition, names_field: bool, immutable: bool) -> String {
    let field = condition.field.as_deref().map(str::trim);
    let Some(field) = field.filter(|field| !field.is_empty()) else {
        return "does not hold at this time".to_owned();
    };
    let asked = relations::comparisons(condition);
    let clauses: Vec<String> = asked
        .iter()
        .map(|(operator, value)| clause(*operator, value.as_ref()))
        .collect();
    let immutable = immutable.then(|| "cannot be changed".to_owned());
    let clauses: Vec<String> = clauses.into_iter().chain(immutable).collect();
    let demand = clauses.join(" and ");
    let negated = if condition.negate == Some(true) {
        "must not satisfy: "
    } else {
        ""
    };
    let subject = if names_field {
        format!("{} ", field.trim_start_matches('.'))
    } else {
        String::new()
    };
    format!("{subject}{negated}{demand}")
}

fn clause(operator: GateOperator, value: Option<&Texts>) -> String {
    use GateOperator as Op;
    let value = match value {
        Some(Texts::List(items)) => {
            let items: Vec<&str> = items.iter().map(|item| &**item).collect();
            items.join(", ")
        }
        Some(Texts::Template(text)) => text.to_string(),
        None => String::new(),
    };
    let words = match operator {
        Op::Exists => return "is required".to_owned(),
        Op::NotExists => return "must be empty".to_owned(),
        Op::Unique => return "must be unique".to_owned(),
        Op::TypeMap => return "must be a map".to_owned(),
        Op::TypeList => return "must be a list".to_owned(),
        Op::TypeString => return "must be text".to_owned(),
        Op::TypeNumber => return "must be a number".to_owned(),
        Op::TypeBool => return "must be a boolean".to_owned(),
        Op::TypeNull => return "must be null".to_owned(),
        Op::Equals => "must be",
        Op::NotEquals => "must not be",
        Op::Contains => "must contain",
        Op::NotContains => "must not contain",
        Op::Prefix => "must start with",
        Op::NotPrefix => "must not start with",
        Op::Suffix => "must end with",
        Op::NotSuffix => "must not end with",
        Op::Regex => "must match",
        Op::Gt => "must be greater than",
        Op::Lt => "must be less than",
        Op::Gte => "must be at least",
        Op::Lte => "must be at most",
        Op::Between => "must be within",
        Op::NotBetween => "must not be within",
        Op::In => "must be one of",
        Op::NotIn => "must not be one of",
        Op::TypeOf => "must be of type",
    };
    format!("{words} {value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_language::api::scalar::{Scalar, Text};

    fn about(condition: GateCondition) -> String {
        let condition = GateCondition {
            field: Some(Text::from(".spec.depth")),
            ..condition
        };
        let (short, long) = (of(&condition, false, false), of(&condition, true, false));
        assert_eq!(long, format!("spec.depth {short}"));
        short
    }

    #[test]
    fn the_message_says_what_the_field_must_be() {
        let text = |text: &str| Some(Scalar::from(text));
        let cases = [
            (
                GateCondition {
                    exists: Some(true),
                    ..GateCondition::default()
                },
                "is required",
            ),
            (
                GateCondition {
                    min: text("1"),
                    max: text("9"),
                    ..GateCondition::default()
                },
                "must be at least 1 and must be at most 9",
            ),
            (
                GateCondition {
                    operator: Some(GateOperator::In),
                    value: Some(Texts::Template(Text::from("1,{{ .spec.most }}"))),
                    ..GateCondition::default()
                },
                "must be one of 1,{{ .spec.most }}",
            ),
            (
                GateCondition {
                    equals: text("0"),
                    negate: Some(true),
                    ..GateCondition::default()
                },
                "must not satisfy: must be 0",
            ),
        ];
        for (condition, expected) in cases {
            assert_eq!(about(condition), expected);
        }
    }
}
