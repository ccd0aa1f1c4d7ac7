//! Where each rule applies, and why.

use crate::plan::{OperatorPlan, Plan};

/// Where a rule applies when an object is written; passes apply it in any case, unless it is for admission only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Where {
    /// A policy of the API server.
    Policy,
    /// The webhook of the gateway.
    Webhook,
    /// Passes only.
    Passes,
}

impl Where {
    /// Returns the word for it: `policy`, `webhook` or `passes`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Webhook => "webhook",
            Self::Passes => "passes",
        }
    }
}

/// The place of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operator.
    pub operator: String,
    /// `normalize`, `mutation` or `validation`.
    pub block: &'static str,
    /// The rule: its name, or its field.
    pub rule: String,
    /// Where it applies.
    pub place: Where,
    /// The reason.
    pub why: String,
}

/// Returns where each rule of the plan applies, in the order of declaration.
pub fn explain(plan: &Plan) -> Vec<Row> {
    plan.operators
        .iter()
        .flat_map(|operator| of_operator(operator))
        .collect()
}

fn of_operator(_plan: &OperatorPlan) -> Vec<Row> {
    Vec::new()
}
