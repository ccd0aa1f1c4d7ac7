//! The result of preparing a custom resource, and its conditions.

use super::failure::Failure;
use orkestra_language::{
    api::conditions::{self, Condition, ConditionStatus},
    reasons::Remark,
};
use orkestra_object::value::{Node, Path};

/// The result of preparing a custom resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// The differences from the custom resource as read, in the order in which they were set.
    pub changes: Vec<(Path, Node)>,
    /// The result of `normalize`; none if nothing is declared, or it could not be evaluated.
    pub normalization: Option<Normalization>,
    /// The fields that rules of `mutation` completed, sorted.
    pub completed: Vec<Path>,
    /// Why the custom resource is not reconciled: rules that it violates, or that could not be evaluated.
    pub failures: Vec<Failure>,
    /// Violated rules that only warn.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Adds a failure; one that several rules share, such as a failed input, is reported once.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Returns the conditions about it. Failures are reported with those of the children.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = Condition> {
        let of = |kind, reason, message: &str| {
            Condition::new(kind, ConditionStatus::True, reason, message)
        };
        let normalized = self.normalization.as_ref().map(|normalization| {
            let reason = if normalization.is_stored() {
                Remark::Persisted.as_str()
            } else {
                Remark::InMemory.as_str()
            };
            of(conditions::NORMALIZED, reason, &normalization.message())
        });
        let completed = (!self.completed.is_empty()).then(|| {
            let message = format!("{} in memory: rules complete it", listed(&self.completed));
            of(conditions::MUTATED, Remark::InMemory.as_str(), &message)
        });
        let warned = (!self.warnings.is_empty()).then(|| {
            let message = self.warnings.join("; ");
            of(
                conditions::VALIDATION_WARNING,
                Remark::ValidationFailed.as_str(),
                &message,
            )
        });
        normalized.into_iter().chain(completed).chain(warned)
    }
}

/// The result of `normalize`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Normalization {
    /// The JSON merge patch of `spec` that stores the differences; none if nothing has to be written.
    pub patch: Option<Node>,
    /// The fields that the patch writes.
    pub stored: Vec<Path>,
    /// The fields that are normalized in memory only, and why.
    pub held: Vec<(Path, Box<str>)>,
}

impl Normalization {
    /// Cancels the write: its fields are normalized in memory only.
    pub fn withhold(&mut self, why: &str) {
        self.patch = None;
        let stored = std::mem::take(&mut self.stored);
        let stored = stored.into_iter().map(|path| (path, why.into()));
        self.held.extend(stored);
        self.held.sort();
    }

    /// True if all fields of the resource are stored in normalized form.
    pub fn is_stored(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the message for a condition.
    pub fn message(&self) -> String {
        if self.is_stored() {
            return "the custom resource stores all normalized fields in normalized form"
                .to_owned();
        }
        let mut whys: Vec<&str> = Vec::new();
        for (_, why) in &self.held {
            if !whys.contains(&&**why) {
                whys.push(why);
            }
        }
        let reported = whys.into_iter().map(|why| {
            let paths = self.held.iter().filter(|(_, other)| &**other == why);
            format!("{} in memory: {why}", listed(paths.map(|(path, _)| path)))
        });
        reported.collect::<Vec<_>>().join("; ")
    }
}

/// Formats fields for messages: `spec.port, spec.replicas`.
fn listed<'a>(paths: impl IntoIterator<Item = &'a Path>) -> String {
    let texts: Vec<String> = paths.into_iter().map(ToString::to_string).collect();
    texts.join(", ")
}
