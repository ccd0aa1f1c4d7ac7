//! The fields of a child that another client changed and that a pass corrects, as text. Pure.
//!
//! ```text
//!  live object, rendered object, drifted fields, their last writers ──► spec.replicas 5 → 2 (set by kubectl-scale)
//! ```

use std::fmt::Write as _;

use orkestra_object::{
    message::cut,
    value::{MASK, Node, Path},
};

/// How many fields are named.
const MOST_NAMED: usize = 3;
/// The bytes of a value.
const VALUE_BYTES: usize = 60;
/// The bytes of the name of a field manager.
const MANAGER_BYTES: usize = 128;
/// What is shown of a field that is absent.
const ABSENT: &str = "absent";

/// Describes the corrected fields. Values are JSON, so that no character of theirs is a line break; with `hides`, none is shown.
/// `writer` returns the field manager that set a field; none if it is unknown, as of a field that was removed.
pub fn describe(
    live: &Node,
    rendered: &Node,
    drift: &[Path],
    writer: impl Fn(&Path) -> Option<String>,
    hides: bool,
) -> String {
    let value = |node: Option<&Node>| match node {
        None => ABSENT.to_owned(),
        Some(_) if hides => MASK.to_owned(),
        Some(node) => cut(&node.to_json().to_string(), VALUE_BYTES),
    };
    let mut text = String::new();
    for (at, path) in drift.iter().take(MOST_NAMED).enumerate() {
        let (before, after) = (value(live.at(path)), value(rendered.at(path)));
        let comma = if at > 0 { ", " } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{path} {before} → {after}");
        if let Some(manager) = writer(path) {
            let manager: String = manager.chars().filter(|c| !c.is_control()).collect();
            let _ = write!(text, " (set by {})", cut(&manager, MANAGER_BYTES));
        }
    }
    let more = drift.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    #[test]
    fn fields_are_named_with_their_values_and_the_last_writer() {
        let live = Node::from(&json!({ "spec": { "replicas": 5 }, "data": { "a": "x\ny" } }));
        let rendered = Node::from(
            &json!({ "spec": { "replicas": 2 }, "data": { "a": "b", "gone": "c", "d": "e" } }),
        );
        let writer = |path: &Path| {
            (path.to_string() == "spec.replicas").then(|| "kubectl\u{1b}-scale".to_owned())
        };
        let of = |paths: &[&str], hides| {
            let drift: Vec<Path> = paths.iter().map(|text| path(text)).collect();
            describe(&live, &rendered, &drift, writer, hides)
        };
        assert_eq!(
            of(&["spec.replicas"], false),
            "spec.replicas 5 → 2 (set by kubectl-scale)"
        );
        assert_eq!(
            of(&["data.a", "data.gone", "spec.replicas", "data.d"], false),
            r#"data.a "x\ny" → "b", data.gone absent → "c", spec.replicas 5 → 2 (set by kubectl-scale) and 1 more"#
        );
        assert_eq!(
            of(&["data.a", "data.gone"], true),
            "data.a *** → ***, data.gone absent → ***"
        );
        assert_eq!(of(&[], false), "");
    }

    #[test]
    fn long_values_are_cut() {
        let live = Node::from(&json!({ "a": "x".repeat(500) }));
        let text = describe(&live, &Node::Null, &[path("a")], |_| None, false);
        assert!(text.len() < 100 && text.ends_with("... → absent"), "{text}");
    }
}
