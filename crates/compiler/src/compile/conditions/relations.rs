//! Compiles the tests of conditions.

use crate::scope::At;
use orkestra_language::{
    api::{
        GateCondition, GateOperator, ValueType,
        scalar::{Scalar, Text, Texts},
    },
    diagnostics::{Code, did_you_mean},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    Coerce, JsonType, Leaf, Members, OperandRelation, Order, Pattern, Test, gate::regex,
};

/// True if the test reads other custom resources.
pub(crate) fn is_unique(test: &Test) -> bool {
    matches!(test.relation, OperandRelation::Unique)
}

/// The path of the right side of a test, and its text.
type RightPath<'a> = (At<'a>, Texts);

/// Compiles the tests of the condition at `at`, at least one unless it asks for the time; `None` if one is invalid, which
/// is reported.
pub(crate) fn of_condition(at: &At<'_>, declared: &GateCondition) -> Option<Box<[Test]>> {
    let value_type = declared.value_type.unwrap_or_default();
    if declared.operator.is_none() && declared.value.is_some() {
        at.field("value").error_hint(
            Code::ValueWithoutOperator,
            "a `value` without an operator",
            "write `equals`, or `operator: equals` beside `value`",
        );
        return None;
    }
    let asked = operators(declared);
    if asked.is_empty() && declared.field.is_some() {
        at.error_hint(
            Code::AsksNothing,
            "the condition has no test",
            "add `equals`, `notEquals`, `exists: true` or another operator",
        );
        return None;
    }
    let typed = asked.iter().any(|(operator, _)| {
        use GateOperator as Op;
        matches!(operator, Op::Equals | Op::NotEquals | Op::In | Op::NotIn)
    });
    if declared.value_type.is_some() && !typed {
        let message = "`valueType` applies only to `equals`, `notEquals`, `in` and `notIn`";
        at.field("valueType").warn(Code::NoEffect, message);
    }
    // All of them, so that every problem is reported.
    let tests: Vec<Option<Test>> = asked
        .into_iter()
        .map(|(operator, right)| {
            let right = right.map(|(name, value)| (at.field(name), value));
            test(at, operator, right, value_type)
        })
        .collect();
    tests.into_iter().collect()
}

/// Returns the operators of a condition, each with the key and the value that it compares with: first those that are keys
/// of their own, then `operator`.
fn operators(declared: &GateCondition) -> Vec<(GateOperator, Option<(&'static str, Texts)>)> {
    use GateOperator as Op;
    let d = declared;
    let scalars = [
        ("equals", Op::Equals, &d.equals),
        ("notEquals", Op::NotEquals, &d.not_equals),
        ("contains", Op::Contains, &d.contains),
        ("notContains", Op::NotContains, &d.not_contains),
        ("prefix", Op::Prefix, &d.prefix),
        ("notPrefix", Op::NotPrefix, &d.not_prefix),
        ("suffix", Op::Suffix, &d.suffix),
        ("notSuffix", Op::NotSuffix, &d.not_suffix),
        ("regex", Op::Regex, &d.regex),
        ("greaterThan", Op::Gt, &d.greater_than),
        ("lessThan", Op::Lt, &d.less_than),
        ("greaterThanOrEqual", Op::Gte, &d.greater_than_or_equal),
        ("lessThanOrEqual", Op::Lte, &d.less_than_or_equal),
        ("min", Op::Gte, &d.min),
        ("max", Op::Lte, &d.max),
    ];
    let lists = [
        ("between", Op::Between, &d.between),
        ("notBetween", Op::NotBetween, &d.not_between),
        ("in", Op::In, &d.in_),
        ("notIn", Op::NotIn, &d.not_in),
    ];
    let unary = [
        (Op::Exists, Op::NotExists, d.exists),
        (Op::NotExists, Op::Exists, d.not_exists),
    ];
    let text = |scalar: &Scalar| Texts::Template(Text::from(scalar.to_string()));
    let scalars = scalars
        .into_iter()
        .filter_map(|(name, operator, value)| Some((name, operator, text(value.as_ref()?))));
    let lists = lists
        .into_iter()
        .filter_map(|(name, operator, value)| Some((name, operator, value.clone()?)));
    let valued = scalars
        .chain(lists)
        .map(|(name, operator, value)| (operator, Some((name, value))));
    let unary = unary
        .into_iter()
        .filter_map(|(yes, no, flag)| Some((if flag? { yes } else { no }, None)));
    let named = d.operator.map(|operator| {
        let value = d.value.clone();
        (operator, value.map(|value| ("value", value)))
    });
    valued.chain(unary).chain(named).collect()
}

/// Returns the operators of a condition, each with the value that it compares with.
pub(crate) fn comparisons(declared: &GateCondition) -> Vec<(GateOperator, Option<Texts>)> {
    let all = operators(declared).into_iter();
    all.map(|(operator, right)| (operator, right.map(|(_, value)| value)))
        .collect()
}

fn test(
    at: &At<'_>,
    operator: GateOperator,
    right: Option<RightPath<'_>>,
    value_type: ValueType,
) -> Option<Test> {
    use GateOperator as Op;
    let is = |relation| Test {
        relation,
        not: false,
    };
    let unary = match operator {
        Op::Exists | Op::NotExists => Some(OperandRelation::Exists),
        Op::Unique => Some(OperandRelation::Unique),
        Op::TypeMap => Some(OperandRelation::Type(JsonType::Map)),
        Op::TypeList => Some(OperandRelation::Type(JsonType::List)),
        Op::TypeString => Some(OperandRelation::Type(JsonType::String)),
        Op::TypeNumber => Some(OperandRelation::Type(JsonType::Number)),
        Op::TypeBool => Some(OperandRelation::Type(JsonType::Bool)),
        Op::TypeNull => Some(OperandRelation::Type(JsonType::Null)),
        _ => None,
    };
    if let Some(relation) = unary {
        if let Some((at, _)) = right {
            at.warn(Code::NoEffect, "the operator takes no `value`");
        }
        let not = operator == Op::NotExists;
        return Some(Test { relation, not });
    }
    let Some(right) = right else {
        at.field("operator")
            .error(Code::OperatorWithoutValue, "the operator needs a `value`");
        return None;
    };
    Some(match operator {
        Op::NotEquals | Op::NotContains | Op::NotPrefix | Op::NotSuffix => Test {
            relation: of_one(opposite(operator), right, value_type)?,
            not: true,
        },
        Op::NotIn | Op::NotBetween => Test {
            relation: of_many(opposite(operator), &right, value_type)?,
            not: true,
        },
        Op::In | Op::Between => is(of_many(operator, &right, value_type)?),
        Op::TypeOf => is(OperandRelation::Type(json_type(&right)?)),
        _ => is(of_one(operator, right, value_type)?),
    })
}

/// Returns the operator that one beginning with `not` negates.
fn opposite(operator: GateOperator) -> GateOperator {
    use GateOperator as Op;
    match operator {
        Op::NotContains => Op::Contains,
        Op::NotPrefix => Op::Prefix,
        Op::NotSuffix => Op::Suffix,
        Op::NotIn => Op::In,
        Op::NotBetween => Op::Between,
        _ => Op::Equals,
    }
}

/// Compiles an operator that compares with one value.
fn of_one(
    operator: GateOperator,
    right: RightPath<'_>,
    value_type: ValueType,
) -> Option<OperandRelation> {
    use GateOperator as Op;
    let (at, texts) = right;
    let Texts::Template(text) = texts else {
        at.error(
            Code::WrongShape,
            "the operator compares with a single value",
        );
        return None;
    };
    let leaf = at.leaf(&text, Coerce::OptionalText)?;
    let number = |order| {
        literal_of(&at, &leaf, ValueType::Float)?;
        Some(OperandRelation::Is(order, leaf.clone()))
    };
    match operator {
        Op::Contains => Some(OperandRelation::Contains(leaf)),
        Op::Prefix => Some(OperandRelation::Prefix(leaf)),
        Op::Suffix => Some(OperandRelation::Suffix(leaf)),
        Op::Regex => Some(OperandRelation::Matches(pattern(&at, leaf)?)),
        Op::Gt => number(Order::Greater),
        Op::Gte => number(Order::GreaterOrEqual),
        Op::Lt => number(Order::Less),
        Op::Lte => number(Order::LessOrEqual),
        _ => {
            literal_of(&at, &leaf, value_type)?;
            Some(OperandRelation::Equals(leaf, value_type))
        }
    }
}

/// Compiles an operator that compares with several values.
fn of_many(
    operator: GateOperator,
    right: &RightPath<'_>,
    value_type: ValueType,
) -> Option<OperandRelation> {
    let (at, texts) = right;
    let members = members(at, texts)?;
    if operator == GateOperator::In {
        for_each(at, &members, value_type)?;
        return Some(OperandRelation::In(members, value_type));
    }
    for_each(at, &members, ValueType::Float)?;
    if let Some(bounds) = written(&members) {
        let message = match bounds.as_slice() {
            [from, to] => {
                let (from, to) = (number_of(from)?, number_of(to)?);
                (from > to).then_some("the first number is greater than the second")
            }
            _ => Some("two numbers are needed, such as `1,5`"),
        };
        if let Some(message) = message {
            at.error(Code::BadBounds, message);
            return None;
        }
    }
    Some(OperandRelation::Between(members))
}

fn number_of(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0.0);
    }
    text.parse().ok()
}

fn members(at: &At<'_>, texts: &Texts) -> Option<Members> {
    Some(match texts {
        Texts::List(items) if items.is_empty() => {
            at.error(Code::Empty, "the list is empty");
            return None;
        }
        Texts::List(items) => {
            let leaf =
                |(index, item): (usize, &Text)| at.index(index).leaf(item, Coerce::OptionalText);
            let leaves: Vec<Option<Leaf>> = items.iter().enumerate().map(leaf).collect();
            Members::Each(leaves.into_iter().collect::<Option<_>>()?)
        }
        Texts::Template(text) => Members::Split(at.leaf(text, Coerce::Native)?),
    })
}

/// Returns the values if all are literal.
fn written(members: &Members) -> Option<Vec<String>> {
    match members {
        Members::Each(leaves) => leaves
            .iter()
            .map(|leaf| leaf.template.literal().map(str::to_owned))
            .collect(),
        Members::Split(leaf) => {
            let text = leaf.template.literal()?;
            Some(text.split(',').map(str::to_owned).collect())
        }
    }
}

/// Checks the literal values.
fn for_each(at: &At<'_>, members: &Members, value_type: ValueType) -> Option<()> {
    match members {
        Members::Each(leaves) => {
            let checked: Vec<_> = leaves
                .iter()
                .map(|leaf| literal_of(&at.place(&leaf.path), leaf, value_type))
                .collect();
            checked.into_iter().collect()
        }
        Members::Split(leaf) => {
            let Some(text) = leaf.template.literal() else {
                return Some(());
            };
            let checked: Vec<_> = text
                .split(',')
                .map(|item| is_of(at, item, value_type))
                .collect();
            checked.into_iter().collect()
        }
    }
}

/// Checks that a literal leaf has the type.
fn literal_of(at: &At<'_>, leaf: &Leaf, value_type: ValueType) -> Option<()> {
    match leaf.template.literal() {
        Some(literal) => is_of(at, literal, value_type),
        None => Some(()),
    }
}

fn is_of(at: &At<'_>, text: &str, value_type: ValueType) -> Option<()> {
    let coerce = match value_type {
        ValueType::String => return Some(()),
        ValueType::Int => Coerce::Int,
        ValueType::Float => Coerce::Float,
        ValueType::Bool => Coerce::Bool,
    };
    match coerce.apply(Node::from(text)) {
        Ok(_) => Some(()),
        Err(mismatch) => {
            at.error(Code::WrongValue, mismatch.to_string());
            None
        }
    }
}

fn pattern(at: &At<'_>, leaf: Leaf) -> Option<Pattern> {
    let Some(literal) = leaf.template.literal() else {
        return Some(Pattern::Rendered(leaf));
    };
    match regex(literal.trim()) {
        Ok(regex) => Some(Pattern::Fixed(regex)),
        Err(why) => {
            let message = format!("this is not a valid regular expression: {why}");
            at.error(Code::BadRegex, message);
            None
        }
    }
}

/// Returns the type that `typeOf` asks for.
fn json_type((at, texts): &RightPath<'_>) -> Option<JsonType> {
    let names = || JsonType::ALL.map(|(name, _)| name).into_iter();
    let known = |text: &str| {
        let is_it = |(name, _): &&(&str, JsonType)| *name == text.trim();
        Some(JsonType::ALL.iter().find(is_it)?.1)
    };
    let text = match texts {
        Texts::Template(text) => text.as_str(),
        Texts::List(_) => "",
    };
    let found = known(text);
    if found.is_none() {
        let message = format!(
            "`typeOf` takes one of {}",
            names().collect::<Vec<_>>().join(", ")
        );
        match did_you_mean(text, names()) {
            Some(hint) => at.error_hint(Code::UnknownWord, message, hint),
            None => at.error(Code::UnknownWord, message),
        }
    }
    found
}
