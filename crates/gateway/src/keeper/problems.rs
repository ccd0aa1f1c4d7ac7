//! What Katalogs declare and is not in place, for their status and the log.

use std::collections::BTreeSet;

use super::{Desired, Gateway, definitions, desired};
use orkestra_operator::context::enforcement::NotEnforced;

/// The problem of an object that is not in place.
pub(crate) fn lacking(desired: &Desired, why: String) -> NotEnforced {
    NotEnforced {
        of: desired.owners(),
        object: desired.title(),
        why,
    }
}

/// A problem that no Katalog causes.
pub(crate) fn general(why: String) -> NotEnforced {
    NotEnforced {
        of: BTreeSet::new(),
        object: "the gateway".to_owned(),
        why,
    }
}

/// Returns all problems, for the log.
pub(crate) fn text(problems: &[NotEnforced]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

impl Gateway {
    /// Reports to the Katalogs that declare something that calls the webhooks, or whose policies follow them, that it is not in
    /// place.
    pub(crate) fn report_without_certificate(&self, why: &str) {
        self.refresh();
        let catalogue = self.catalogue.load();
        let mut all = desired::desired(&self.options, &catalogue, "", None);
        all.extend(definitions::declared(&self.options, &catalogue, ""));
        let problems = all.iter().map(|desired| NotEnforced {
            of: desired.owners(),
            object: desired.title(),
            why: format!("the webhooks have no certificate yet: {why}"),
        });
        let problems: Vec<_> = problems.collect();
        self.context.enforcement.set(&problems);
    }
}
