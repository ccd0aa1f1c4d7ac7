//! Versions and version constraints.

mod constraint;

use std::cmp::Ordering;

use semver::{BuildMetadata, Prerelease, Version};

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

/// The maximum length of a version.
const LONGEST: usize = 256;

/// Parsing a version costs as much as several expressions.
const STEPS_A_VERSION: u64 = 8;

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "semverMajor",
        doc: "The major number of a version, as text; empty if it is not a version.",
        example: (r#"{{ semverMajor "v4.5.6" }}"#, "4"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| part(call, |version| version.major)),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverMinor",
        doc: "The minor number of a version, as text; empty if it is not a version.",
        example: (r#"{{ semverMinor "v4.5.6" }}"#, "5"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| part(call, |version| version.minor)),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverPatch",
        doc: "The patch number of a version, as text; empty if it is not a version.",
        example: (r#"{{ semverPatch "v4.5.6-rc.1" }}"#, "6"),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(|call| part(call, |version| version.patch)),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverValid",
        doc: "True if the text is a version: `1.2.3`, with or without a `v`, a prerelease and a build; minor and patch are optional.",
        example: (
            r#"{{ semverValid "v1.2.3-rc.1" }} {{ semverValid "1.x" }}"#,
            "true false",
        ),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok(version(call, 0)?.is_some().into())),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverCompare",
        doc: "-1, 0 or 1 if the first version is lower than, equal to or higher than the second; 0 if either is not a version.",
        example: (r#"{{ semverCompare "1.10.0" "1.9.0" }}"#, "1"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Int,
        run: NoteBody::Eager(compare),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverBump",
        doc: "The next version by its `major`, `minor` or `patch` number, without `v`, prerelease and build; a text that is not a version is returned unchanged.",
        example: (
            r#"{{ semverBump "1.9.4" "minor" }} {{ semverBump "2.0.0-rc.1" "patch" }}"#,
            "1.10.0 2.0.0",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(bump),
        ..PLAIN
    },
    BuiltInNote {
        name: "semverConstraint",
        doc: "True if a version satisfies a constraint, such as `^1.2`, `~1.4 || >=2, !=2.3.1`, `1.x` or `1.2 - 2.0`; false if either is malformed.",
        example: (
            r#"{{ semverConstraint "1.4.2" "^1.2" }} {{ semverConstraint "2.0.0" ">=1, <2" }}"#,
            "true false",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(satisfies),
        ..PLAIN
    },
];

fn part<'d>(
    call: &mut NoteCall<'_, 'd>,
    part: fn(&Version) -> u64,
) -> Result<Value<'d>, EvalFailure> {
    let number = version(call, 0)?.map(|version| part(&version).to_string());
    Ok(Node::from(number.unwrap_or_default()).into())
}

fn compare<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let versions = version(call, 0)?.zip(version(call, 1)?);
    let order = match versions.map(|(a, b)| a.cmp_precedence(&b)) {
        Some(Ordering::Less) => -1,
        Some(Ordering::Greater) => 1,
        Some(Ordering::Equal) | None => 0,
    };
    Ok(i64::from(order).into())
}

fn bump<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let next = version(call, 0)?.and_then(|version| next(&version, call.text(1)));
    Ok(match next {
        Some(next) => Node::from(next.to_string()).into(),
        None if call.node(0).is_empty_value() => Node::from("").into(),
        None => call.take(0),
    })
}

fn satisfies<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let Some(version) = version(call, 0)? else {
        return Ok(false.into());
    };
    // Every other byte may hold a version.
    let bytes = call.text(1).len().min(constraint::LONGEST);
    call.budget.step(STEPS_A_VERSION / 2 * bytes as u64)?;
    Ok(constraint::holds(call.text(1), &version).into())
}

/// Returns whether a version satisfies a constraint; `None` if the constraint is malformed.
pub(crate) fn check(constraint: &str, version: &Version) -> Option<bool> {
    constraint::check(constraint, version)
}

/// Parses an argument as a version.
fn version(call: &mut NoteCall<'_, '_>, position: usize) -> Result<Option<Version>, EvalFailure> {
    call.budget.step(STEPS_A_VERSION)?;
    Ok(parse(call.text(position)))
}

/// Returns the next version. The next version of a prerelease is its release.
fn next(version: &Version, part: &str) -> Option<Version> {
    let Version {
        major,
        minor,
        patch,
        ..
    } = *version;
    Some(match part {
        "major" => Version::new(major.checked_add(1)?, 0, 0),
        "minor" => Version::new(major, minor.checked_add(1)?, 0),
        "patch" if version.pre.is_empty() => Version::new(major, minor, patch.checked_add(1)?),
        "patch" => Version::new(major, minor, patch),
        _ => return None,
    })
}

/// Parses a version. A leading `v` is permitted, minor and patch are optional, and numbers may start with zeros, as in
/// dates: `v1`, `2026.05`.
///
/// Source: Semantic Versioning 2.0.0; the additional forms are those of Masterminds/semver's `NewVersion`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    if text.len() > LONGEST {
        return None;
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let (text, build) = match text.split_once('+') {
        // A sign without anything after it is not a build, so this is not a version.
        Some((_, "")) => return None,
        Some((text, build)) => (text, BuildMetadata::new(build).ok()?),
        None => (text, BuildMetadata::EMPTY),
    };
    let (core, pre) = match text.split_once('-') {
        Some((_, "")) => return None,
        Some((core, pre)) => (core, Prerelease::new(pre).ok()?),
        None => (text, Prerelease::EMPTY),
    };
    let mut numbers = [0; 3];
    let mut parts = core.split('.');
    for (at, number) in numbers.iter_mut().enumerate() {
        match parts.next() {
            Some(part) => *number = read_number(part)?,
            None if at > 0 => break,
            None => return None,
        }
    }
    let [major, minor, patch] = numbers;
    parts.next().is_none().then_some(Version {
        major,
        minor,
        patch,
        pre,
        build,
    })
}

fn read_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_may_be_partial_and_have_a_v() {
        let cases = [
            ("1.2.3", "1.2.3"),
            ("v1.2.3", "1.2.3"),
            ("1", "1.0.0"),
            ("v1.2", "1.2.0"),
            ("2026.05.08", "2026.5.8"),
            ("1.2-rc.1", "1.2.0-rc.1"),
            ("1.2.3-a-b.7+x-y.01", "1.2.3-a-b.7+x-y.01"),
        ];
        for (text, version) in cases {
            assert_eq!(parse(text).map(|v| v.to_string()).as_deref(), Some(version));
        }
        let long = format!("1.2.3-{}", "a".repeat(300));
        for bad in [
            "",
            "v",
            "V1.2.3",
            "x",
            "1.x",
            "1.",
            ".1",
            "1.2.3.4",
            "1..3",
            "-1.2.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3+",
            "1.2.3 ",
            "+1",
            "1.2.99999999999999999999",
            &long,
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn precedence_is_that_of_the_specification() {
        let ordered = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.9.0",
            "1.10.0",
            "2.0.0",
        ];
        for pair in ordered.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|v| parse(v).unwrap());
            assert_eq!(a.cmp_precedence(&b), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn the_next_version_has_neither_prerelease_nor_build() {
        let cases = [
            ("1.2.3", "patch", "1.2.4"),
            ("1.2.3", "major", "2.0.0"),
            ("1.2.3+b", "patch", "1.2.4"),
            ("1.2.3-rc.1", "patch", "1.2.3"),
            ("1.2.3-rc.1", "minor", "1.3.0"),
        ];
        for (version, part, expected) in cases {
            let next = next(&parse(version).unwrap(), part).unwrap();
            assert_eq!(next.to_string(), expected, "{version} {part}");
        }
        let largest = Version::new(u64::MAX, 0, 0);
        assert_eq!(next(&largest, "major"), None);
        assert_eq!(next(&largest, "epoch"), None);
    }
}
