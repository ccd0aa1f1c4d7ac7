//! Constraints: `^1.2`, `>=1, <3 || 1.x`.
//!
//! `||` separates alternatives. Within one, commas or spaces separate comparisons, all of which must hold.
//!
//! Source: Masterminds/semver 3.4, "Checking Version Constraints".

use semver::Version;

use super::{parse, read_number};

/// The maximum length of a constraint.
pub(crate) const LONGEST: usize = 1024;

/// True if a version satisfies a constraint. No version satisfies a malformed one.
///
/// A prerelease satisfies only an alternative that itself names a prerelease.
pub(crate) fn holds(constraint: &str, version: &Version) -> bool {
    check(constraint, version).unwrap_or(false)
}

/// Returns whether a version satisfies a constraint; `None` if it is malformed.
pub(crate) fn check(constraint: &str, version: &Version) -> Option<bool> {
    if constraint.len() > LONGEST {
        return None;
    }
    let mut found = false;
    for alternative in constraint.split("||") {
        found |= all_hold(&read_alternative(alternative)?, version);
    }
    Some(found)
}

fn all_hold(comparisons: &[Comparison], version: &Version) -> bool {
    let prereleases = comparisons.iter().any(|c| !c.with.pre.is_empty());
    (prereleases || version.pre.is_empty()) && comparisons.iter().all(|c| c.holds(version))
}

#[derive(Clone, Copy)]
enum Op {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// An operator precedes those that are a prefix of it.
const OPS: [(&str, Op); 11] = [
    ("!=", Op::NotEqual),
    (">=", Op::GreaterEqual),
    ("=>", Op::GreaterEqual),
    ("<=", Op::LessEqual),
    ("=<", Op::LessEqual),
    ("~>", Op::Tilde),
    ("=", Op::Equal),
    (">", Op::Greater),
    ("<", Op::Less),
    ("~", Op::Tilde),
    ("^", Op::Caret),
];

/// One comparison with a version.
struct Comparison {
    op: Op,
    with: Version,
    /// The number of numbers that are written: 0 in `*`, 2 in `1.2` and `1.2.x`.
    written: usize,
}

/// Parses the comparisons of an alternative; `None` if it is malformed or empty.
fn read_alternative(text: &str) -> Option<Vec<Comparison>> {
    let mut words = Vec::new();
    for list in text.split(',') {
        let before = words.len();
        words.extend(list.split_whitespace());
        // A comma must separate two comparisons.
        if words.len() == before {
            return None;
        }
    }
    let mut comparisons = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let (op, rest) = read_op(word);
        let text = match rest {
            // The sign may be separated from its version.
            "" => words.next()?,
            rest => rest,
        };
        let mut comparison = Comparison::read(op.unwrap_or(Op::Equal), text)?;
        if words.next_if_eq(&"-").is_some() {
            if op.is_some() {
                return None;
            }
            comparison.op = Op::GreaterEqual;
            comparisons.push(Comparison::read(Op::LessEqual, words.next()?)?);
        }
        comparisons.push(comparison);
    }
    Some(comparisons)
}

fn read_op(word: &str) -> (Option<Op>, &str) {
    let found = OPS
        .iter()
        .find_map(|(sign, op)| Some((Some(*op), word.strip_prefix(sign)?)));
    found.unwrap_or((None, word))
}

impl Comparison {
    /// Parses the version of a comparison. `x`, `X` and `*` stand for any number.
    fn read(op: Op, text: &str) -> Option<Comparison> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let end = bare.find(['-', '+']).unwrap_or(bare.len());
        let (core, suffix) = bare.split_at(end);
        let wildcard = |part: &str| matches!(part, "x" | "X" | "*");
        let parts: Vec<&str> = core.split('.').collect();
        let written = parts
            .iter()
            .position(|part| wildcard(part))
            .unwrap_or(parts.len());
        let sound = |part: &str| wildcard(part) || read_number(part).is_some();
        if parts.len() > 3 || !parts.iter().all(|part| sound(part)) {
            return None;
        }
        let core = match parts.get(..written)? {
            [] => "0".to_owned(),
            numbers => numbers.join("."),
        };
        Some(Comparison {
            op,
            with: parse(&format!("{core}{suffix}"))?,
            written,
        })
    }

    fn holds(&self, version: &Version) -> bool {
        let with = &self.with;
        let order = version.cmp_precedence(with);
        let same_major = version.major == with.major;
        let same_minor = same_major && version.minor == with.minor;
        match (self.op, self.written) {
            (Op::NotEqual | Op::Greater | Op::Less, 0) => false,
            (_, 0) => true,
            (Op::Equal, 3) => order.is_eq(),
            (Op::NotEqual, 3) => order.is_ne(),
            (Op::NotEqual, 2) => !same_minor,
            (Op::NotEqual, _) => !same_major,
            // `>1.2` excludes every 1.2.x.
            (Op::Greater, 2) => order.is_gt() && !same_minor,
            (Op::Greater, 1) => order.is_gt() && !same_major,
            (Op::Greater, _) => order.is_gt(),
            (Op::Less, _) => order.is_lt(),
            (Op::GreaterEqual, _) => order.is_ge(),
            (Op::LessEqual, 2) => order.is_le() || same_minor,
            (Op::LessEqual, 1) => order.is_le() || same_major,
            (Op::LessEqual, _) => order.is_le(),
            (Op::Equal | Op::Tilde, 1) => order.is_ge() && same_major,
            (Op::Equal | Op::Tilde, _) => order.is_ge() && same_minor,
            (Op::Caret, written) => order.is_ge() && self.same_leading(version, written),
        }
    }

    /// True if a version has the same numbers up to the first that is not 0.
    fn same_leading(&self, version: &Version, written: usize) -> bool {
        let numbers = |v: &Version| [v.major, v.minor, v.patch];
        let with = numbers(&self.with);
        let leading = with.iter().position(|n| *n > 0).unwrap_or(2);
        let compared = (leading + 1).min(written);
        with[..compared] == numbers(version)[..compared]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfies(version: &str, constraint: &str) -> bool {
        holds(constraint, &parse(version).unwrap())
    }

    // Over 60 lines: a table of constraints and versions.
    #[test]
    fn constraints_hold_as_in_masterminds() {
        let cases = [
            ("=2.0.0", "1.2.3", false),
            ("=2.0.0", "2.0.0", true),
            ("2.0", "2.0.7", true),
            ("=2.0", "2.1.0", false),
            ("4.1", "4.1.0", true),
            ("!=4.1.0", "4.1.1", true),
            ("!=4.1", "4.1.1", false),
            ("!=4.x", "4.1.1", false),
            ("!=4.x", "5.0.0", true),
            (">1.1", "4.1.0", true),
            (">1.1", "1.1.1", false),
            (">11", "11.1.0", false),
            (">11", "12.0.0", true),
            ("<1.1", "0.1.0", true),
            ("<1.1", "1.1.0", false),
            ("<1.1", "1.1.1", false),
            ("<=1.1", "1.1.1", true),
            ("<=1", "1.9.0", true),
            ("<=1.1.0", "1.1.1", false),
            (">=1.1", "4.1.0", true),
            (">=1.1", "1.1.0", true),
            (">=1.1", "0.0.9", false),
            ("=>1.1", "1.1.0", true),
            ("^1", "1.8.9", true),
            ("^1", "2.0.0", false),
            ("^1.2.3", "1.2.2", false),
            ("^0.2.3", "0.2.9", true),
            ("^0.2.3", "0.3.0", false),
            ("^0.0.3", "0.0.4", false),
            ("^0.0", "0.0.9", true),
            ("^0.0", "0.1.0", false),
            ("^0", "0.7.0", true),
            ("^0", "1.0.0", false),
            ("~1", "1.3.5", true),
            ("~1.1", "1.1.1", true),
            ("~1.1", "1.3.5", false),
            ("~>1.1.7", "1.1.6", false),
            ("~1.1.7", "1.1.9", true),
            ("*", "4.5.6", true),
            ("x", "0.0.0", true),
            ("1.x", "1.99.0", true),
            ("1.2.*", "1.3.0", false),
            ("1.2 - 1.4.5", "1.4.5", true),
            ("1.2 - 1.4.5", "1.4.6", false),
            ("1.2 - 1.4", "1.4.9", true),
            (">=1, <2", "1.9.9", true),
            (">= 1 < 2", "2.0.0", false),
            (">=1,<2 || ^3.1", "3.2.0", true),
            ("v1.2.3", "1.2.3", true),
            ("1.2.3+build", "1.2.3", true),
        ];
        for (constraint, version, expected) in cases {
            assert_eq!(
                satisfies(version, constraint),
                expected,
                "{version} {constraint}"
            );
        }
    }

    #[test]
    fn prereleases_are_only_for_those_who_ask() {
        let cases = [
            (">=1.0", "1.1.0-beta.1", false),
            (">=1.0-0", "1.1.0-beta.1", true),
            (">=1.0-0, <2", "1.1.0-beta.1", true),
            (">=1 || >=1.0-0", "1.1.0-beta.1", true),
            ("*", "1.0.0-rc.1", false),
            ("~1.1.0-alpha.1", "1.1.0-alpha.2", true),
            ("^1.1.0-beta", "1.1.0-alpha", false),
        ];
        for (constraint, version, expected) in cases {
            assert_eq!(
                satisfies(version, constraint),
                expected,
                "{version} {constraint}"
            );
        }
    }

    #[test]
    fn malformed_constraints_hold_for_nothing() {
        for bad in [
            "", " ", "a", "^", ">", "1.2.3.4", ">=1,", ",1", "1,,2", "1 ||", "|| 1", ">>1", "1 - ",
            "- 1", ">1 - 2", "1.2.3-", "x.y", "1.a", "==1", "1 - >2",
        ] {
            assert!(!satisfies("1.2.3", bad), "{bad}");
        }
    }
}
