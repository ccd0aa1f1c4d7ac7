//! Prints a plan, as text and as Markdown.

use std::fmt::Write as _;

use orkestra_object::message::cut;
use serde_json::Value;

use super::{PlanGroup, Planned, PlannedChange, PlannedField, Severity};

/// The most bytes of a value in a line.
const MOST_VALUE: usize = 80;

impl Severity {
    /// The sign and the words of an action.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Delete => ("-", "is deleted"),
            Self::Replace => ("±", "is deleted and created again"),
            Self::Immutable => ("!", "cannot change: the API server refuses it"),
            Self::Refuse => ("!", "is refused"),
            Self::Adopt => ("~", "is taken over"),
            Self::Update => ("~", "changes"),
            Self::Create => ("+", "is created"),
        }
    }
}

/// Returns the plan as text, deletions first.
pub fn text(planned: &Planned) -> String {
    let mut text = String::new();
    for group in &planned.groups {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", heading(group));
        for line in group.changes.iter().flat_map(change_lines) {
            let _ = writeln!(text, "  {line}");
        }
        text.push('\n');
    }
    text + &total(planned) + "\n"
}

/// Returns what happens to a child, and then its changed fields, one in a line.
pub(crate) fn change_lines(change: &PlannedChange) -> Vec<String> {
    let (sign, words) = change.action.words();
    let why = change
        .reason
        .map_or(String::new(), |why| format!(": {why}"));
    let mut lines = vec![format!("{sign} {} {words}{why}", change.object)];
    lines.extend(
        change
            .fields
            .iter()
            .map(|field| format!("    {}", line(field))),
    );
    lines
}

/// Returns the plan as Markdown, for a comment of a pull request.
pub fn markdown(planned: &Planned) -> String {
    let mut text = format!("{}\n", total(planned));
    for group in &planned.groups {
        let _ = write!(
            text,
            "\n### {}\n\n| | Object | Change |\n|---|---|---|\n",
            cell(&heading(group))
        );
        for change in &group.changes {
            let (sign, words) = change.action.words();
            let mut what = vec![match change.reason {
                Some(why) => format!("{words}: {why}"),
                None => words.to_owned(),
            }];
            what.extend(
                change
                    .fields
                    .iter()
                    .map(|field| format!("`{}`", line(field).replace('`', "'"))),
            );
            let what: Vec<String> = what.iter().map(|line| cell(line)).collect();
            let _ = writeln!(
                text,
                "| {sign} | {} | {} |",
                cell(&change.object),
                what.join("<br>")
            );
        }
    }
    text
}

/// Returns one line about a group: `12 of shop: Shop a/north, Shop a/south, …`.
fn heading(group: &PlanGroup) -> String {
    let more = if group.count > group.examples.len() {
        ", …"
    } else {
        ""
    };
    format!(
        "{} of {}: {}{more}",
        group.count,
        group.operator,
        group.examples.join(", ")
    )
}

fn total(planned: &Planned) -> String {
    let Planned {
        instances,
        changed,
        deletions,
        children,
        ..
    } = planned;
    format!(
        "{changed} of {instances} custom resources change; {deletions} of {children} children are deleted or replaced"
    )
}

fn line(field: &PlannedField) -> String {
    let PlannedField {
        path,
        before,
        after,
        differs,
    } = field;
    let others = if *differs {
        " (other values for others)"
    } else {
        ""
    };
    match (before, after) {
        (Some(before), Some(after)) => {
            format!("{path}: {} → {}{others}", short(before), short(after))
        }
        (None, Some(after)) => format!("{path}: added {}{others}", short(after)),
        (Some(before), None) => format!("{path}: removed, was {}{others}", short(before)),
        (None, None) => path.clone(),
    }
}

/// Returns a value in one line, cut if it is long.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cut(&text.replace(char::is_control, " "), MOST_VALUE)
}

/// Returns a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::PlannedChange;

    fn planned() -> Planned {
        let field = |before: Option<Value>, after: Option<Value>, differs| PlannedField {
            path: "data.colour".to_owned(),
            before,
            after,
            differs,
        };
        let change = |action, object: &str, fields| PlannedChange {
            action,
            object: object.to_owned(),
            declared: None,
            reason: (action == Severity::Refuse).then_some("the name is taken"),
            fields,
        };
        let group = PlanGroup {
            operator: "pond".to_owned(),
            count: 12,
            examples: vec!["Pond shop/north".to_owned(), "Pond shop/south".to_owned()],
            changes: vec![
                change(Severity::Delete, "Secret shop/north", Vec::new()),
                change(Severity::Refuse, "Role shop/a|b", Vec::new()),
                change(
                    Severity::Update,
                    "ConfigMap shop/north",
                    vec![
                        field(Some(json!("green")), Some(json!("red\u{1b}[2J")), true),
                        field(None, Some(json!({ "long": "x".repeat(200) })), false),
                        field(Some(json!(1)), None, false),
                    ],
                ),
            ],
        };
        Planned {
            groups: vec![group],
            instances: 50,
            changed: 12,
            deletions: 12,
            children: 100,
            ..Planned::default()
        }
    }

    #[test]
    fn a_group_has_its_size_its_first_members_and_a_line_for_each_change() {
        let text = text(&planned());
        let cut = format!("data.colour: added {{\"long\":\"{}...", "x".repeat(68));
        let expected = [
            "12 of pond: Pond shop/north, Pond shop/south, …",
            "  - Secret shop/north is deleted",
            "  ! Role shop/a|b is refused: the name is taken",
            "  ~ ConfigMap shop/north changes",
            "      data.colour: green → red [2J (other values for others)",
            &format!("      {cut}"),
            "      data.colour: removed, was 1",
            "",
            "12 of 50 custom resources change; 12 of 100 children are deleted or replaced",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_table_holds_what_a_value_may_contain() {
        let text = markdown(&planned());
        assert!(
            text.contains("| ! | Role shop/a\\|b | is refused: the name is taken |"),
            "{text}"
        );
        assert!(
            text.contains("changes<br>`data.colour: green → red [2J"),
            "{text}"
        );
        assert!(
            text.starts_with("12 of 50 custom resources change"),
            "{text}"
        );
    }
}
