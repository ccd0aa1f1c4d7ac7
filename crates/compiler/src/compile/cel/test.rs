//! Compiles comparisons to CEL.

use super::{
    CelContext, CelResult, pattern,
    side::{CelType, ObjectValue, plain_path},
};
use orkestra_language::api::ValueType;
use orkestra_object::value::{Path, PathStep, float_text};
use orkestra_plan::{
    JsonType, Leaf, Members, OLD, OperandRelation, Order, Pattern, Test, cel::quoted,
};

/// Numbers beyond this are not exact in every comparison.
const EXACT: i128 = 1 << 53;
/// Decimals beyond this are written with exponents.
const PLAIN: f64 = 1e15;

/// The right side of a comparison.
enum RightSide {
    Literal(String),
    Side(ObjectValue),
}

impl CelContext<'_> {
    /// Returns the expression of a test.
    pub(crate) fn test(&self, left: &ObjectValue, test: &Test) -> CelResult<String> {
        let said = self.relation(left, &test.relation)?;
        Ok(if test.not { format!("!({said})") } else { said })
    }

    // Over 60 lines: a table, an arm for each relation.
    fn relation(&self, left: &ObjectValue, relation: &OperandRelation) -> CelResult<String> {
        let text = |right: &Leaf, function: &str| {
            let right = match self.right(right)? {
                RightSide::Literal(text) => quoted(&text),
                RightSide::Side(side) => only(&side, CelType::Text)?.text(),
            };
            Ok(format!(
                "{}.{function}({right})",
                only(left, CelType::Text)?.text()
            ))
        };
        match relation {
            OperandRelation::Exists => Ok(exists(left)),
            OperandRelation::Equals(right, ValueType::String) => match self.right(right)? {
                RightSide::Literal(text) => equals_text(left, &text),
                RightSide::Side(right) => same_text(left, &right),
            },
            OperandRelation::Equals(right, of) => self.equals_typed(left, right, *of),
            OperandRelation::Contains(right) => text(right, "contains"),
            OperandRelation::Prefix(right) => text(right, "startsWith"),
            OperandRelation::Suffix(right) => text(right, "endsWith"),
            OperandRelation::Matches(Pattern::Fixed(regex)) => {
                let pattern = regex.as_str();
                if !pattern::is_common(pattern) {
                    return Err(format!("`{pattern}` may have another meaning in CEL"));
                }
                let left = only(left, CelType::Text)?.text();
                Ok(format!("{left}.matches({})", quoted(pattern)))
            }
            OperandRelation::Matches(Pattern::Rendered(right)) => Err(computed(right)),
            OperandRelation::Is(order, right) => {
                let right = self.number(right)?;
                Ok(format!(
                    "{} {} {right}",
                    numeric(left)?.number(),
                    sign(*order)
                ))
            }
            OperandRelation::Between(bounds) => {
                let bounds = literals(bounds)?;
                let [from, to] = &bounds[..] else {
                    return Err("the bounds are not two numbers".to_owned());
                };
                let (from, to) = (literal_number(from)?, literal_number(to)?);
                let left = numeric(left)?.number();
                Ok(format!("({left} >= {from} && {left} <= {to})"))
            }
            OperandRelation::In(members, of) => {
                let members = literals(members)?;
                let equal = members.iter().map(|member| match of {
                    ValueType::String => equals_text(left, member),
                    of => equals_literal(left, member, *of),
                });
                let equal = equal.collect::<CelResult<Vec<String>>>()?;
                Ok(format!("({})", equal.join(" || ")))
            }
            OperandRelation::Unique => Err("`unique` reads other custom resources".to_owned()),
            OperandRelation::Type(of) => Ok(json_type(left, *of)),
            OperandRelation::Unchanged => self.unchanged(left),
        }
    }

    fn right(&self, leaf: &Leaf) -> CelResult<RightSide> {
        if let Some(literal) = leaf.template.literal() {
            return Ok(RightSide::Literal(literal.trim().to_owned()));
        }
        let path = plain_path(&leaf.template).ok_or_else(|| computed(leaf))?;
        self.side(&path).map(RightSide::Side)
    }

    /// Returns a number on the right side.
    fn number(&self, leaf: &Leaf) -> CelResult<String> {
        match self.right(leaf)? {
            RightSide::Literal(text) => literal_number(&text),
            RightSide::Side(side) => {
                // Two decimals, or large integers and decimals, compare as the evaluator does only if both are integers.
                Ok(only(&side, CelType::Int)?.number())
            }
        }
    }

    fn equals_typed(&self, left: &ObjectValue, right: &Leaf, of: ValueType) -> CelResult<String> {
        match self.right(right)? {
            RightSide::Literal(text) => equals_literal(left, &text, of),
            RightSide::Side(right) if of == ValueType::Int => Ok(format!(
                "{} == {}",
                only(left, CelType::Int)?.number(),
                only(&right, CelType::Int)?.number()
            )),
            RightSide::Side(right) => Err(format!("`{}` is compared as another type", right.path)),
        }
    }

    fn unchanged(&self, left: &ObjectValue) -> CelResult<String> {
        let path = Path::parse(&left.path).map_err(|why| why.to_string())?;
        let old = std::iter::once(PathStep::Field(OLD.into()));
        let old = self.side(&old.chain(path.steps().iter().cloned()).collect())?;
        let was_given = match left.kind {
            CelType::Text => format!("{} && {} != \"\"", old.present, old.value),
            CelType::Int | CelType::Number | CelType::Bool => old.present.clone(),
            CelType::List | CelType::Map => return Err(whole(left)),
        };
        Ok(format!(
            "(!({was_given}) || ({} && {} == {}))",
            left.present, left.value, old.value
        ))
    }
}

fn computed(leaf: &Leaf) -> String {
    format!("`{}` is computed", leaf.template.source())
}

fn whole(side: &ObjectValue) -> String {
    format!("`{}` is a list or a map", side.path)
}

fn only(side: &ObjectValue, kind: CelType) -> CelResult<&ObjectValue> {
    if side.kind == kind {
        return Ok(side);
    }
    Err(format!("`{}` is compared as another type", side.path))
}

fn numeric(side: &ObjectValue) -> CelResult<&ObjectValue> {
    match side.kind {
        CelType::Int | CelType::Number => Ok(side),
        CelType::Text => Err(format!("the text `{}` is compared as a number", side.path)),
        _ => Err(format!("`{}` is compared as another type", side.path)),
    }
}

fn exists(left: &ObjectValue) -> String {
    let ObjectValue { present, value, .. } = left;
    match left.kind {
        CelType::Text => format!("{} != \"\"", left.text()),
        CelType::Int | CelType::Number | CelType::Bool => present.clone(),
        CelType::List | CelType::Map => format!("({present} && size({value}) > 0)"),
    }
}

/// Compares as text with a literal.
fn equals_text(left: &ObjectValue, text: &str) -> CelResult<String> {
    let ObjectValue { present, value, .. } = left;
    if left.kind == CelType::Text {
        return Ok(format!("{} == {}", left.text(), quoted(text)));
    }
    if matches!(left.kind, CelType::List | CelType::Map) {
        return Err(whole(left));
    }
    if text.is_empty() {
        return Ok(format!("!{present}"));
    }
    let same = match left.kind {
        CelType::Bool => ["true", "false"].contains(&text).then(|| text.to_owned()),
        CelType::Int => canonical_integer(text)?,
        _ => match canonical_integer(text)? {
            Some(integer) => Some(integer),
            None => canonical_decimal(text)?,
        },
    };
    Ok(same.map_or_else(
        || "false".to_owned(),
        |same| format!("({present} && {value} == {same})"),
    ))
}

/// Returns the integer whose text this is; `None` if it is of no integer.
fn canonical_integer(text: &str) -> CelResult<Option<String>> {
    let Some(number) = text.parse::<i128>().ok().filter(|n| n.to_string() == text) else {
        return Ok(None);
    };
    if number.abs() >= EXACT {
        return Err(format!("`{text}` is too large to be compared exactly"));
    }
    Ok(Some(text.to_owned()))
}

/// Returns the decimal whose text this is; `None` if it is of no decimal.
fn canonical_decimal(text: &str) -> CelResult<Option<String>> {
    let Some(number) = text.parse::<f64>().ok().filter(|n| float_text(*n) == text) else {
        return Ok(None);
    };
    if !number.is_finite() || number.abs() >= PLAIN {
        return Err(format!("`{text}` is too large to be compared exactly"));
    }
    Ok(Some(format!("{number:?}")))
}

/// Compares the texts of two values.
fn same_text(left: &ObjectValue, right: &ObjectValue) -> CelResult<String> {
    match (left.kind, right.kind) {
        (CelType::Text, CelType::Text) => Ok(format!("{} == {}", left.text(), right.text())),
        (CelType::Int, CelType::Int) | (CelType::Bool, CelType::Bool) => Ok(format!(
            "(({0} && {1} && {2} == {3}) || (!{0} && !{1}))",
            left.present, right.present, left.value, right.value
        )),
        _ => Err(format!(
            "`{}` and `{}` are compared as text",
            left.path, right.path
        )),
    }
}

/// Compares with a literal as values of a type other than text.
fn equals_literal(left: &ObjectValue, text: &str, of: ValueType) -> CelResult<String> {
    match of {
        ValueType::Bool => {
            let left = only(left, CelType::Bool)?;
            let right = match text {
                "true" => true,
                "false" | "" => false,
                _ => return Err(format!("`{text}` is neither true nor false")),
            };
            Ok(format!(
                "({} ? {} : false) == {right}",
                left.present, left.value
            ))
        }
        ValueType::Int => Ok(format!(
            "{} == {}",
            only(left, CelType::Int)?.number(),
            whole_number(text)?
        )),
        _ => Ok(format!(
            "{} == {}",
            numeric(left)?.number(),
            literal_number(text)?
        )),
    }
}

fn whole_number(text: &str) -> CelResult<String> {
    let number = literal_number(text)?;
    match number.strip_suffix(".0").unwrap_or(&number) {
        whole
            if whole
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-') =>
        {
            Ok(whole.to_owned())
        }
        _ => Err(format!("`{text}` is not an integer")),
    }
}

/// Returns a number as a literal of CEL; empty text is 0.
fn literal_number(text: &str) -> CelResult<String> {
    if text.is_empty() {
        return Ok("0".to_owned());
    }
    if let Ok(number) = text.parse::<i128>() {
        return if number.abs() < EXACT {
            Ok(number.to_string())
        } else {
            Err(format!("`{text}` is too large to be compared exactly"))
        };
    }
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|number| number.abs() < PLAIN);
    number
        .map(|number| format!("{number:?}"))
        .ok_or_else(|| format!("`{text}` is not a number that CEL compares exactly"))
}

/// Returns the literal values of a list, trimmed.
fn literals(members: &Members) -> CelResult<Vec<String>> {
    match members {
        Members::Each(leaves) => {
            let literal = |leaf: &Leaf| {
                let text = leaf.template.literal().ok_or_else(|| computed(leaf))?;
                Ok(text.trim().to_owned())
            };
            leaves.iter().map(literal).collect()
        }
        Members::Split(leaf) => {
            let text = leaf.template.literal().ok_or_else(|| computed(leaf))?;
            Ok(text.split(',').map(|item| item.trim().to_owned()).collect())
        }
    }
}

fn sign(order: Order) -> &'static str {
    match order {
        Order::Greater => ">",
        Order::GreaterOrEqual => ">=",
        Order::Less => "<",
        Order::LessOrEqual => "<=",
    }
}

fn json_type(left: &ObjectValue, of: JsonType) -> String {
    let is = match left.kind {
        CelType::Text => JsonType::String,
        CelType::Int | CelType::Number => JsonType::Number,
        CelType::Bool => JsonType::Bool,
        CelType::List => JsonType::List,
        CelType::Map => JsonType::Map,
    };
    if of == JsonType::Null {
        format!("!{}", left.present)
    } else if of == is {
        left.present.clone()
    } else {
        "false".to_owned()
    }
}
