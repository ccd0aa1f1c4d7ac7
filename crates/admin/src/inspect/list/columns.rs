//! The columns of lists: each is a function of a document.

use jiff::Timestamp;
use orkestra_object::{GroupKind, value::Node};
use serde_json::Value;

use super::Subject;
use crate::inspect::{Health, HealthStatus};

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// Whether it is shown only in wide lists.
    pub is_wide: bool,
    /// Its content for a document.
    pub content: fn(&Value) -> Content,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text.
    Text(String),
    /// A moment, which is printed as an age.
    Since(Timestamp),
    /// A state and how it is to be taken.
    State(String, HealthStatus),
}

const NAMESPACE: Column = column("NAMESPACE", |document| {
    let own = text(document, "/metadata/namespace");
    Content::Text(
        own.or_else(|| text(document, "/katalog/namespace"))
            .unwrap_or_default(),
    )
});
const NAME: Column = column("NAME", |document| texts(document, "/metadata/name"));
const AGE: Column = column("AGE", |document| {
    let created = text(document, "/metadata/creationTimestamp");
    let created = created.and_then(|text| text.parse().ok());
    created.map_or_else(|| Content::Text(String::new()), Content::Since)
});
const READY: Column = column("READY", |document| {
    let ready = condition(document, "Ready", "status").unwrap_or_else(|| "Unknown".to_owned());
    let health = match &*ready {
        "True" => HealthStatus::Current,
        "False" => HealthStatus::Failed,
        _ => HealthStatus::InProgress,
    };
    Content::State(ready, health)
});
const REASON: Column = column("REASON", |document| {
    Content::Text(condition(document, "Ready", "reason").unwrap_or_default())
});
const OPERATORS: Column = column("OPERATORS", |document| texts(document, "/status/ready"));
const INSTANCES: Column = column("INSTANCES", |document| {
    texts(document, "/status/instancesReady")
});
const SOURCES: Column = wide("SOURCES", |document| {
    let sources = document
        .pointer("/status/sources")
        .and_then(Value::as_array);
    Content::Text(sources.map_or(0, Vec::len).to_string())
});
const REVISION: Column = wide("REVISION", |document| texts(document, "/status/revision"));
const MESSAGE: Column = wide("MESSAGE", |document| {
    Content::Text(condition(document, "Ready", "message").unwrap_or_default())
});

const KATALOGS: &[Column] = &[
    NAMESPACE, NAME, READY, REASON, OPERATORS, INSTANCES, AGE, REVISION, MESSAGE,
];
const KOMPOSERS: &[Column] = &[
    NAMESPACE, NAME, READY, REASON, OPERATORS, INSTANCES, AGE, SOURCES, REVISION, MESSAGE,
];
const ROWS: &[Column] = &[
    NAMESPACE,
    column("KATALOG", |document| {
        let kind = text(document, "/katalog/kind").unwrap_or_default();
        let name = text(document, "/katalog/name").unwrap_or_default();
        Content::Text(format!("{}/{name}", kind.to_lowercase()))
    }),
    column("NAME", |document| texts(document, "/name")),
    column("KIND", |document| {
        let kind = GroupKind {
            group: text(document, "/group").unwrap_or_default().into(),
            kind: text(document, "/kind").unwrap_or_default().into(),
        };
        Content::Text(kind.to_string())
    }),
    column("STATE", |document| {
        let state = text(document, "/state").unwrap_or_default();
        let health = match &*state {
            "Running" | "Disabled" => HealthStatus::Current,
            "Degraded" | "Stopped" => HealthStatus::Failed,
            _ => HealthStatus::InProgress,
        };
        Content::State(state, health)
    }),
    column("WORKERS", |document| numbers(document, &["/workers"])),
    column("READY", |document| {
        numbers(document, &["/ready", "/instances"])
    }),
    column("REASON", |document| texts(document, "/reason")),
    wide("REVISION", |document| texts(document, "/revision")),
    wide("MESSAGE", |document| texts(document, "/message")),
];
const OBJECTS: &[Column] = &[
    NAMESPACE,
    column("KIND", |document| texts(document, "/kind")),
    NAME,
    column("HEALTH", |document| {
        let health = health(document);
        Content::State(health.status.word().to_owned(), health.status)
    }),
    REASON,
    AGE,
    column("MESSAGE", |document| {
        Content::Text(health(document).message.unwrap_or_default())
    }),
    wide("VERSION", |document| texts(document, "/apiVersion")),
];

/// Returns the columns of a list, that of the namespace first.
pub fn columns(subject: &Subject) -> &'static [Column] {
    match subject {
        Subject::Katalogs => KATALOGS,
        Subject::Komposers => KOMPOSERS,
        Subject::Operators => ROWS,
        Subject::Instances | Subject::Kind(_) => OBJECTS,
    }
}

const fn column(title: &'static str, content: fn(&Value) -> Content) -> Column {
    Column {
        title,
        is_wide: false,
        content,
    }
}

const fn wide(title: &'static str, content: fn(&Value) -> Content) -> Column {
    Column {
        title,
        is_wide: true,
        content,
    }
}

fn text(document: &Value, pointer: &str) -> Option<String> {
    document.pointer(pointer)?.as_str().map(str::to_owned)
}

fn texts(document: &Value, pointer: &str) -> Content {
    Content::Text(text(document, pointer).unwrap_or_default())
}

/// Returns numbers in the form `1/2`.
fn numbers(document: &Value, pointers: &[&str]) -> Content {
    let number = |pointer: &&str| {
        let number = document.pointer(pointer).and_then(Value::as_i64);
        number.unwrap_or_default().to_string()
    };
    Content::Text(pointers.iter().map(number).collect::<Vec<_>>().join("/"))
}

/// Returns a field of the condition of that type.
fn condition(document: &Value, type_: &str, field: &str) -> Option<String> {
    let conditions = document.pointer("/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == type_)?;
    found[field].as_str().map(str::to_owned)
}

fn health(document: &Value) -> Health {
    let group = text(document, "/apiVersion").unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let kind = GroupKind {
        group: group.into(),
        kind: text(document, "/kind").unwrap_or_default().into(),
    };
    Health::of(&kind, &Node::from(document))
}
