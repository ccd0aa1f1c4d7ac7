//! Describes what a custom resource that is being deleted waits for, for its conditions.

use super::{deletion::DeletionStep, failure::Failure, reason::Reason, record::ObservedChild};
use orkestra_language::api::{
    conditions::{MESSAGE_BYTES, fit},
    names,
};
use orkestra_plan::GroupKind;

/// Why children of a kind cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// A permission is missing, with the API server's message.
    Forbidden(String),
    /// The API server does not answer, or with this error.
    Unavailable(String),
}

/// Returns the reason and message for a custom resource that waits for these children to be deleted.
pub fn waiting(children: &[ObservedChild]) -> (Reason, String) {
    let lines: Vec<String> = children.iter().map(line).collect();
    let hint = skip();
    let message = fit(&lines, MESSAGE_BYTES.saturating_sub(hint.len() + 2));
    (Reason::Terminating, format!("{message}; {hint}"))
}

fn line(child: &ObservedChild) -> String {
    let finalizers = child.record.finalizers();
    let key = &child.key;
    match finalizers {
        [] => format!("waiting for {key} to be deleted"),
        [one] => format!("waiting for {key}, which has the finalizer {one}, to be deleted"),
        several => format!(
            "waiting for {key}, which has the finalizers {}, to be deleted",
            several.join(", ")
        ),
    }
}

/// The condition of a custom resource that waits for its `onDelete`.
pub fn awaits(deletion: &DeletionStep) -> (Reason, String) {
    let made = deletion.make.iter().map(|job| &job.key);
    let deleted = deletion.delete.iter().map(|deletion| &deletion.key);
    let keys = deletion.awaited.iter().chain(made).chain(deleted);
    let keys: Vec<String> = keys.map(ToString::to_string).collect();
    let step = match &deletion.step {
        Some(step) => format!("`{step}` of `onDelete`"),
        None => "`onDelete`".to_owned(),
    };
    if deletion.late {
        let left = if keys.is_empty() {
            "with steps remaining".to_owned()
        } else {
            format!("while waiting for {}", keys.join(", "))
        };
        let message = format!("{step} exceeded its timeout {left}; {}", skip());
        return (Reason::EndTimedOut, message);
    }
    let message = format!("{step} waits for {}", keys.join(", "));
    (Reason::Ending, message)
}

/// The failure of a deletion that cannot tell whether children of a kind are left.
pub fn unread(kind: &GroupKind, why: &Unread) -> Failure {
    let (reason, why) = match why {
        Unread::Forbidden(message) => (Reason::Forbidden, format!("missing permission: {message}")),
        Unread::Unavailable(message) => (Reason::Unavailable, message.clone()),
    };
    Failure {
        reason,
        at: kind.to_string(),
        message: format!(
            "children of this kind cannot be listed, so some may still exist: {why}; {}",
            skip()
        ),
    }
}

fn skip() -> String {
    format!(
        "the annotation {}: \"true\" removes the finalizer without waiting",
        names::ANNOTATION_SKIP_ON_DELETE
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::reconcile::record::ChildRecord;
    use orkestra_object::value::Node;
    use orkestra_plan::{ChildKey, ObjectKey};

    fn child(name: &str, finalizers: &[&str]) -> ObservedChild {
        let finalizers: Vec<Node> = finalizers.iter().map(|name| Node::from(*name)).collect();
        let object = Node::object([(
            "metadata",
            Node::object([
                ("name", Node::from(name)),
                ("namespace", Node::from("far")),
                ("uid", Node::from("u")),
                ("resourceVersion", Node::from("1")),
                ("deletionTimestamp", Node::from("2026-03-02T09:00:00Z")),
                ("finalizers", Node::from(finalizers)),
            ]),
        )]);
        let kind = GroupKind::parse("ConfigMap");
        let record = ChildRecord::read(&kind, &object, &[]).unwrap();
        ObservedChild {
            key: ChildKey {
                kind,
                object: ObjectKey {
                    namespace: Some("far".into()),
                    name: name.into(),
                },
            },
            record: Arc::new(record),
        }
    }

    #[test]
    fn the_condition_names_each_child_and_the_finalizers_that_hold_it() {
        let children = [
            child("a", &["example.org/hold", "example.org/keep"]),
            child("b", &[]),
        ];
        let (reason, message) = waiting(&children);
        assert_eq!(reason, Reason::Terminating);
        assert!(
            message.contains(
                "ConfigMap far/a, which has the finalizers example.org/hold, example.org/keep, to be deleted"
            ) && message.contains("ConfigMap far/b to be deleted")
                && message.contains("skip-on-delete"),
            "{message}"
        );
    }

    #[test]
    fn thousands_of_children_fit_into_one_condition() {
        let long = "example.org/".to_owned() + &"f".repeat(240);
        let children: Vec<_> = (0..3000)
            .map(|number| child(&format!("c{number}"), &[&long]))
            .collect();
        let (_, message) = waiting(&children);
        assert!(message.len() <= MESSAGE_BYTES, "{}", message.len());
        assert!(message.ends_with("without waiting"));
    }

    #[test]
    fn a_missing_permission_is_named_as_such() {
        let failure = unread(
            &GroupKind::parse("Deployment.apps"),
            &Unread::Forbidden("deployments.apps is forbidden".to_owned()),
        );
        assert_eq!(failure.reason, Reason::Forbidden);
        assert!(
            failure
                .message
                .contains("missing permission: deployments.apps is forbidden")
        );
    }
}
