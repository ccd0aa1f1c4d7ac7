//! `ork tree`

use std::fmt::Write as _;

use jiff::Timestamp;
use orkestra_admin::inspect::{self, HealthStatus, Tree, TreeNode, Unavailable};
use textwrap::core::display_width;

use super::{
    Failure,
    history::age,
    object::ObjectOptions,
    output::{self, DocumentFormat},
};

/// The narrowest lines of a message below its object.
const MESSAGE: usize = 30;

/// Print an object and everything below it, with the health of each
///
/// Below a Katalog or Komposer are its operators and their custom resources; below a custom resource are its children, and the Pods
/// behind workloads. Children are those that the operator takes for its own, as it proves their ownership; a label alone proves
/// nothing. The health is that of kstatus, as in the conditions: Current, InProgress, Failed, Terminating or Unknown.
///
/// Objects that you may not list are reported with the missing permission, and the rest is printed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    object: ObjectOptions,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: DocumentFormat,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let found = args.object.read().await?;
    let reading = inspect::tree(&found.reader, &found.served, &found.key);
    let tree = output::progress("reading the objects", reading).await?;
    if let Some(text) = output::document(&tree, args.output)? {
        return Ok(output::print(&text)?);
    }
    let frame = Frame::of_terminal();
    let text = text(&tree, Timestamp::now(), output::terminal_width(), &frame);
    output::print(&text)?;
    unavailable(&tree.unavailable);
    Ok(())
}

/// Prints what could not be read.
pub(crate) fn unavailable(all: &[Unavailable]) {
    for one in all {
        output::note(&output::cell(&one.to_string()));
    }
}

/// The characters of the lines between objects.
pub(crate) struct Frame {
    branch: &'static str,
    last: &'static str,
    beside: &'static str,
    below: &'static str,
}

impl Frame {
    const LINES: Self = Self {
        branch: "├─ ",
        last: "└─ ",
        beside: "│  ",
        below: "   ",
    };
    const ASCII: Self = Self {
        branch: "|- ",
        last: "`- ",
        beside: "|  ",
        below: "   ",
    };

    /// Lines, but on a dumb terminal, which may not have them.
    pub(crate) fn of_terminal() -> Self {
        match std::env::var("TERM").as_deref() {
            Ok("dumb") => Self::ASCII,
            _ => Self::LINES,
        }
    }
}

/// An object as it is printed.
struct Line {
    /// The frame and the name.
    name: String,
    /// The frame of further lines.
    below: String,
    health: HealthStatus,
    age: String,
    message: String,
}

/// Returns the tree as text: columns, and if a message does not fit into the terminal, each message below its object.
pub(crate) fn text(tree: &Tree, now: Timestamp, width: Option<usize>, frame: &Frame) -> String {
    let mut lines = Vec::new();
    let frames = (String::new(), String::new());
    add(&tree.root, None, frames, (frame, now), &mut lines);
    let mut rows = vec![["NAME", "HEALTH", "AGE", "MESSAGE"].map(str::to_owned)];
    rows.extend(lines.iter().map(|line| {
        let (name, health) = (line.name.clone(), painted(line.health));
        [name, health, line.age.clone(), line.message.clone()]
    }));
    let wide = output::table(&rows);
    if width.is_none_or(|width| wide.lines().all(|line| display_width(line) <= width)) {
        return wide;
    }
    let short: Vec<&[String]> = rows.iter().map(|row| &row[..3]).collect();
    let short = output::table(&short);
    let mut text = String::new();
    for (row, line) in short
        .lines()
        .zip(std::iter::once(None).chain(lines.iter().map(Some)))
    {
        let _ = writeln!(text, "{row}");
        let Some(line) = line else {
            continue;
        };
        for part in folded(&line.message, &line.below, width) {
            let _ = writeln!(text, "{}{part}", line.below);
        }
    }
    text
}

/// Returns a message in lines that fit beside the frame.
fn folded(message: &str, frame: &str, width: Option<usize>) -> Vec<String> {
    if message.is_empty() {
        return Vec::new();
    }
    let room = width.unwrap_or(usize::MAX / 2);
    let room = room.saturating_sub(display_width(frame)).max(MESSAGE);
    let parts = textwrap::wrap(message, room).into_iter();
    parts.map(std::borrow::Cow::into_owned).collect()
}

/// Adds the lines of a node and of what is below it. `frames` are the frame of its own line and that of the lines below it.
fn add(
    node: &TreeNode,
    parent: Option<&TreeNode>,
    frames: (String, String),
    how: (&Frame, Timestamp),
    lines: &mut Vec<Line>,
) {
    let ((own, beside), (frame, now)) = (frames, how);
    let has_children = !node.children.is_empty();
    let inner = if has_children {
        frame.beside
    } else {
        frame.below
    };
    lines.push(Line {
        name: format!("{}{}", faint(&own), title(node, parent)),
        below: faint(&format!("{beside}{inner}")),
        health: node.health.status,
        age: node.created.map(|at| age(now, at)).unwrap_or_default(),
        message: output::cell(node.health.message.as_deref().unwrap_or_default()),
    });
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let (branch, below) = if at == last {
            (frame.last, frame.below)
        } else {
            (frame.branch, frame.beside)
        };
        let frames = (format!("{beside}{branch}"), format!("{beside}{below}"));
        add(child, Some(node), frames, how, lines);
    }
}

/// Returns kind and name; with the namespace, unless it is that of the object above.
fn title(node: &TreeNode, parent: Option<&TreeNode>) -> String {
    let object = &node.object;
    let above = parent.and_then(|parent| parent.object.namespace.as_deref());
    let name = match object.namespace.as_deref() {
        Some(namespace) if above != Some(namespace) => format!("{namespace}/{}", object.name),
        _ => object.name.clone(),
    };
    output::cell(&format!("{} {name}", object.kind))
}

fn faint(text: &str) -> String {
    if text.trim().is_empty() {
        return text.to_owned();
    }
    let style = output::FAINT;
    format!("{style}{text}{style:#}")
}

/// Returns the word of a health in its colour.
pub(crate) fn painted(health: HealthStatus) -> String {
    styled(health, health.word())
}

/// Returns a text in the colour of a health.
pub(crate) fn styled(health: HealthStatus, text: &str) -> String {
    let style = match health {
        HealthStatus::Current => output::GOOD,
        HealthStatus::InProgress | HealthStatus::Terminating => output::PENDING,
        HealthStatus::Failed | HealthStatus::Unknown => output::BAD,
    };
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use orkestra_admin::inspect::{Health, ObjectRef};

    use super::*;

    fn node(kind: &str, name: &str, message: &str, children: Vec<TreeNode>) -> TreeNode {
        let status = match message {
            "" => HealthStatus::Current,
            _ => HealthStatus::InProgress,
        };
        TreeNode {
            object: ObjectRef {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: Some("shop".to_owned()),
                name: name.to_owned(),
                uid: None,
            },
            created: "2026-01-01T00:00:00Z".parse().ok(),
            health: Health {
                status,
                message: (!message.is_empty()).then(|| message.to_owned()),
            },
            children,
        }
    }

    fn tree() -> Tree {
        let pod = node(
            "Pod",
            "north-db-0",
            "container db: ImagePullBackOff",
            vec![],
        );
        let database = node(
            "StatefulSet",
            "north-db",
            "0 of 1 replicas ready",
            vec![pod],
        );
        let map = node("ConfigMap", "north\u{1b}[2J\nforged", "", vec![]);
        Tree {
            root: node("Pond", "north", "", vec![database, map]),
            unavailable: Vec::new(),
        }
    }

    fn printed(width: Option<usize>, frame: &Frame) -> String {
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        anstream::adapter::strip_str(&text(&tree(), now, width, frame)).to_string()
    }

    #[test]
    fn a_wide_terminal_has_columns() {
        assert_eq!(
            printed(Some(200), &Frame::LINES),
            "NAME                             HEALTH       AGE   MESSAGE\n\
             Pond shop/north                  Current      5m\n\
             ├─ StatefulSet north-db          InProgress   5m    0 of 1 replicas ready\n\
             │  └─ Pod north-db-0             InProgress   5m    container db: ImagePullBackOff\n\
             └─ ConfigMap north [2J forged    Current      5m\n"
        );
        assert_eq!(
            printed(None, &Frame::LINES),
            printed(Some(200), &Frame::LINES)
        );
    }

    #[test]
    fn a_narrow_terminal_has_each_message_below_its_object() {
        assert_eq!(
            printed(Some(60), &Frame::ASCII),
            "NAME                             HEALTH       AGE\n\
             Pond shop/north                  Current      5m\n\
             |- StatefulSet north-db          InProgress   5m\n\
             |  |  0 of 1 replicas ready\n\
             |  `- Pod north-db-0             InProgress   5m\n\
             |        container db: ImagePullBackOff\n\
             `- ConfigMap north [2J forged    Current      5m\n"
        );
    }
}
