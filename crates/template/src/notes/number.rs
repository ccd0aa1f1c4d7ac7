//! Numbers. Integers are exact.

use std::cmp::Ordering;

use orkestra_object::value::Node;

/// An integer that results from 64-bit integers, or a float.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// Returns the number that a value is; `None` for other types.
    pub(crate) fn of(node: &Node) -> Option<Number> {
        match node {
            Node::Int(n) => Some(Number::Int(i128::from(*n))),
            Node::UInt(n) => Some(Number::Int(i128::from(*n))),
            Node::Float(n) => Some(Number::Float(*n)),
            _ => None,
        }
    }

    /// Converts a value to a number: null is 0, true 1, false 0, text the number that it contains. `None` for other values
    /// and for numbers that are not finite.
    pub fn read(node: &Node) -> Option<Number> {
        match node {
            Node::Null => Some(Number::Int(0)),
            Node::Bool(b) => Some(Number::Int(i128::from(*b))),
            Node::Str(text) => Number::spelled(text.trim()),
            node => Number::of(node),
        }
        .filter(|number| number.float().is_finite())
    }

    fn spelled(text: &str) -> Option<Number> {
        let whole = text.parse::<i64>().map(i128::from);
        let whole = whole.or_else(|_| text.parse::<u64>().map(i128::from));
        match whole {
            Ok(n) => Some(Number::Int(n)),
            Err(_) => text.parse().ok().map(Number::Float),
        }
    }

    /// Returns the nearest float.
    #[expect(clippy::cast_precision_loss, reason = "floats are not exact")]
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(n) => n,
        }
    }

    /// Truncates the decimals; `None` beyond 64 bits.
    pub(crate) fn truncated(self) -> Option<i128> {
        const LOWEST: f64 = -9_223_372_036_854_775_808.0; // -2^63
        const BEYOND: f64 = 18_446_744_073_709_551_616.0; // 2^64
        match self {
            Number::Int(n) => Some(n),
            Number::Float(n) => {
                let whole = n.trunc();
                #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
                (LOWEST..BEYOND).contains(&whole).then_some(whole as i128)
            }
        }
    }

    /// Returns the value: an integer if the number is whole and fits in 64 bits, else a float.
    pub(crate) fn into_node(self) -> Node {
        let whole = match self {
            Number::Float(n) if n.fract() != 0.0 => None,
            number => number.truncated(),
        };
        let integer = whole.and_then(|n| {
            let signed = i64::try_from(n).ok().map(Node::Int);
            signed.or_else(|| u64::try_from(n).ok().map(Node::UInt))
        });
        integer.unwrap_or(Node::Float(self.float()))
    }

    /// Compares two numbers; `None` if one is NaN.
    pub fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Int(a), Number::Float(b)) => order_mixed(a, b),
            (Number::Float(a), Number::Int(b)) => order_mixed(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares a 64-bit integer and a float exactly, without rounding the integer.
fn order_mixed(a: i128, b: f64) -> Option<Ordering> {
    const BEYOND: f64 = 1e30;
    if b.is_nan() {
        return None;
    }
    if b.abs() > BEYOND {
        return Some(if b > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    #[expect(clippy::cast_possible_truncation, reason = "the whole part, in range")]
    let whole = b.trunc() as i128;
    Some(
        a.cmp(&whole)
            .then_with(|| 0.0f64.total_cmp(&(b.fract() + 0.0))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_without_rounding() {
        let big = (1_i128 << 53) + 1;
        let cases = [
            (3, 3.0, Ordering::Equal),
            (3, 3.5, Ordering::Less),
            (-3, -3.5, Ordering::Greater),
            (0, -0.0, Ordering::Equal),
            (0, -0.5, Ordering::Greater),
            (big, 9_007_199_254_740_992.0, Ordering::Greater),
            (i128::from(u64::MAX), f64::INFINITY, Ordering::Less),
            (i128::from(i64::MIN), f64::NEG_INFINITY, Ordering::Greater),
        ];
        for (a, b, expected) in cases {
            assert_eq!(order_mixed(a, b), Some(expected), "{a} {b}");
        }
        assert_eq!(order_mixed(0, f64::NAN), None);
    }
}
