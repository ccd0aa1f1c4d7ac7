//! Prints an answer for a terminal.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Explained, Manager, Next, OriginWord, Overview, Place, ShownInput};
use crate::plan::change_lines;
use orkestra_object::message::cut;

/// The most bytes of a value.
const MOST_VALUE: usize = 200;
/// The width of the first column.
const WIDTH: usize = 14;

impl Place {
    /// `katalog.yaml:12:9, spec.crds.shop.…`, as far as the place is known.
    fn text(&self) -> String {
        let mut text = self.file.clone().unwrap_or_default();
        for number in [self.line, self.column].into_iter().flatten() {
            // Writing to a String cannot fail.
            let _ = write!(text, ":{number}");
        }
        if !text.is_empty() && !self.path.is_empty() {
            text += ", ";
        }
        text + &self.path
    }
}

/// Returns the explanation of a field.
pub fn text(explained: &Explained) -> String {
    let mut lines = Lines::default();
    let field = match &*explained.field {
        "" => "all of it".to_owned(),
        field => field.to_owned(),
    };
    lines.0 = format!("{}, child of {}\n", explained.child, explained.resource);
    lines.put("field", &field);
    lines.put("value", &value(explained.value.as_ref()));
    lines.put("in the cluster", &in_cluster(explained));
    match explained.origin {
        OriginWord::Expressions => {
            for one in &explained.expressions {
                lines.put("rendered by", one.source.trim());
                lines.put("", &one.place.text());
            }
        }
        OriginWord::Entry => {
            lines.put(
                "rendered by",
                "no expression: the entry or its kind fixes it",
            );
        }
        OriginWord::Copy => lines.put("rendered by", "the object that the child is a copy of"),
        OriginWord::Generated => lines.put("rendered by", "Orkestra: generated once and kept"),
        OriginWord::Mark => {
            lines.put("rendered by", "Orkestra, for itself");
        }
    }
    lines.put("entry", &explained.entry.text());
    let (exists, decides): (Vec<_>, Vec<_>) =
        (explained.inputs.iter()).partition(|input| input.decides_existence);
    if decides.is_empty() {
        lines.put("depends on", "nothing that can change");
    }
    for input in decides {
        lines.put("depends on", &shown(input));
    }
    for input in exists {
        lines.put("exists by", &shown(input));
    }
    if explained.created_once {
        lines.put(
            "note",
            "the child is created once: its fields are not rendered again",
        );
    }
    if explained.partial {
        lines.put("note", "not every value was tried: there are too many");
    }
    lines.0
}

/// Returns why a custom resource is as it is.
pub fn overview(overview: &Overview) -> String {
    let mut lines = Lines(format!("{}\n", overview.resource));
    match &overview.ready {
        None => lines.put("Ready", "no pass has reported yet"),
        Some(ready) => {
            lines.put("Ready", &format!("{} ({})", ready.status, ready.reason));
            lines.put("", &ready.message);
            if let Some(remedy) = ready.remedy {
                lines.put("remedy", remedy);
            }
        }
    }
    for failure in &overview.failures {
        lines.put("failed", &failure.message);
        lines.put("", &failure.place.text());
    }
    for child in overview.children.iter().filter(|child| !child.ready) {
        let detail = child.detail.as_deref().unwrap_or_default();
        lines.put("waits for", &format!("{}: {detail}", child.child));
    }
    let ready = overview.children.iter().filter(|child| child.ready).count();
    lines.put(
        "children",
        &format!("{ready} of {} ready", overview.children.len()),
    );
    for one in &overview.left_out {
        lines.put("left out", &format!("{}: {}", one.kind, one.reason));
        lines.put("", &one.entry.text());
    }
    if overview.next.is_empty() {
        lines.put("next pass", "changes nothing");
    }
    for change in &overview.next {
        for line in change_lines(change) {
            lines.put("next pass", &line);
        }
    }
    lines.0
}

/// Lines of two columns; a title stands only in the first line of several.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn put(&mut self, title: &str, text: &str) {
        let mut title = title;
        for line in text.lines() {
            // Writing to a String cannot fail.
            let _ = writeln!(self.0, "  {title:WIDTH$}  {line}");
            title = "";
        }
    }
}

fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "none: the pass leaves it out".to_owned(), json)
}

fn json(value: &Value) -> String {
    cut(&value.to_string(), MOST_VALUE)
}

fn in_cluster(explained: &Explained) -> String {
    let live = match &explained.live {
        None => "none".to_owned(),
        Some(live) => json(live),
    };
    let by: Vec<String> = explained.managers.iter().map(manager).collect();
    let next = match explained.next {
        Next::Creates => "the next pass creates the child",
        Next::Writes => "the next pass writes it",
        Next::Keeps => "the next pass leaves it",
        Next::Refused => "the next pass is refused: `ork why` of the custom resource says why",
    };
    let by = match &by[..] {
        [] => String::new(),
        by => format!(", held by {}", by.join(" and ")),
    };
    format!("{live}{by}\n{next}")
}

fn manager(manager: &Manager) -> String {
    let how = if manager.applies { "apply" } else { "update" };
    match &manager.time {
        Some(time) => format!("`{}` ({how}, {time})", manager.name),
        None => format!("`{}` ({how})", manager.name),
    }
}

fn shown(input: &ShownInput) -> String {
    match &input.value {
        Some(value) => format!("{} = {}", input.from, json(value)),
        None => format!("{}, which is not set", input.from),
    }
}
