//! `ork describe`

use std::fmt::Write as _;

use jiff::Timestamp;
use orkestra_admin::inspect::{self, Description, HealthStatus};
use orkestra_language::api::conditions::{ConditionStatus, READY};

use super::{
    Failure, events,
    history::age,
    object::ObjectOptions,
    output::{self, DocumentFormat},
    tree::{Frame, styled, text as tree_text, unavailable},
};

/// Describe an object: its operator, conditions, children and Events
///
/// It prints who operates the object, since when it is as it is, its conditions, everything below it as `ork tree` does, and the newest
/// Events of all of these. What you may not read is reported with the missing permission, and the rest is printed.
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
    let reading = inspect::describe(&found.reader, &found.served, &found.key);
    let description = output::progress("reading the objects", reading).await?;
    if let Some(text) = output::document(&description, args.output)? {
        return Ok(output::print(&text)?);
    }
    output::print(&text(&description, Timestamp::now()))?;
    unavailable(&description.tree.unavailable);
    Ok(())
}

/// Returns the description as text.
fn text(description: &Description, now: Timestamp) -> String {
    let mut text = facts(description, now);
    if !description.conditions.is_empty() {
        let _ = write!(text, "\n{}", heading("Conditions"));
        text.push_str(&conditions(description, now));
    }
    let width = output::terminal_width();
    let _ = write!(text, "\n{}", heading("Objects"));
    let frame = Frame::of_terminal();
    text.push_str(&tree_text(&description.tree, now, width, &frame));
    if !description.events.is_empty() {
        let _ = write!(text, "\n{}", heading("Events"));
        text.push_str(&events::table(&description.events, now));
    }
    text
}

fn heading(title: &str) -> String {
    let style = output::HEADING;
    format!("{style}{title}{style:#}\n")
}

/// Returns the first lines: one for each fact.
fn facts(description: &Description, now: Timestamp) -> String {
    let root = &description.tree.root;
    let object = &root.object;
    let name = match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    };
    let mut rows = vec![
        ["Kind", &format!("{} ({})", object.kind, object.api_version)].map(output::cell),
        ["Name", &name].map(output::cell),
    ];
    let mut fact = |title: &str, text: String| rows.push([title.to_owned(), text]);
    for operator in &description.operators {
        let katalog = &operator.katalog;
        let place = katalog.namespace.as_deref().unwrap_or_default();
        let said = format!(
            "{} of {} {place}/{}: {}",
            operator.row.name, katalog.kind, katalog.name, operator.row.state
        );
        fact("Operator", output::cell(&said));
    }
    let message = root.health.message.as_deref().unwrap_or_default();
    let health = styled(root.health.status, root.health.status.word());
    fact(
        "Health",
        format!("{health} {}", output::cell(message))
            .trim_end()
            .to_owned(),
    );
    if let Some(created) = root.created {
        fact("Created", format!("{created} ({} ago)", age(now, created)));
    }
    if let Some(generation) = description.generation {
        let observed = description.observed_generation;
        let observed = observed.map(|observed| format!(", observed {observed}"));
        fact(
            "Generation",
            format!("{generation}{}", observed.unwrap_or_default()),
        );
    }
    if description.suspended {
        fact("Suspended", "by its annotation".to_owned());
    }
    if let Some(deleted) = description.deleted {
        let finalizers = description.finalizers.join(", ");
        let waits = format!("since {deleted}; it waits for {finalizers}");
        fact("Deleted", output::cell(&waits));
    }
    output::table(&rows)
}

fn conditions(description: &Description, now: Timestamp) -> String {
    let mut rows = vec![["TYPE", "STATUS", "REASON", "AGE", "MESSAGE"].map(str::to_owned)];
    rows.extend(description.conditions.iter().map(|condition| {
        let status = condition.status.as_str();
        let health = match condition.status {
            ConditionStatus::True => HealthStatus::Current,
            ConditionStatus::False => HealthStatus::InProgress,
            ConditionStatus::Unknown => HealthStatus::Unknown,
        };
        let since = condition.last_transition_time.as_deref();
        let since: Option<Timestamp> = since.and_then(|text| text.parse().ok());
        [
            output::cell(&condition.type_),
            // A condition that is true may be good or bad: only `Ready` is known.
            match &*condition.type_ {
                READY => styled(health, status),
                _ => status.to_owned(),
            },
            output::cell(&condition.reason),
            since.map(|since| age(now, since)).unwrap_or_default(),
            output::cell(&condition.message),
        ]
    }));
    output::table(&rows)
}
