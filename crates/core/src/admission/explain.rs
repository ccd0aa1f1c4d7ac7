//! Where each rule applies, and why.

use std::fmt;

use super::policies::{in_mutating_policy, in_policy};
use crate::plan::{CompletionTarget, Moment, Moments, OperatorPlan, Plan};

/// Why a rule is for the mutating webhook.
const CHANGES: &str = "it changes the object";
/// Where else it applies.
const ALSO: &str =
    "while the webhook is unreachable, an API server with MutatingAdmissionPolicies applies it too";

/// Where a rule applies when an object is written; passes apply it in any case, unless it is for admission only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enforcement {
    /// A policy of the API server.
    Policy,
    /// The webhook of the gateway.
    Webhook,
    /// Passes only.
    Passes,
}

impl Enforcement {
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
pub struct RulePlace {
    /// The operator.
    pub operator: String,
    /// `normalize`, `mutation` or `validation`.
    pub block: &'static str,
    /// The rule: its name, or its field.
    pub rule: String,
    /// Where it applies.
    pub place: Enforcement,
    /// The reason.
    pub why: String,
}

/// Displays on one line: `pond: validation of spec.image: policy: the API server can evaluate it`.
impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operator,
            block,
            rule,
            place,
            why,
        } = self;
        let place = place.as_str();
        write!(f, "{operator}: {block} of {rule}: {place}: {why}")
    }
}

/// Returns where each rule of the plan applies, in the order of declaration.
pub fn explain(plan: &Plan) -> Vec<RulePlace> {
    let operators = plan.operators.iter();
    operators
        .flat_map(|operator| of_operator(operator))
        .collect()
}

fn of_operator(plan: &OperatorPlan) -> Vec<RulePlace> {
    let row = |block, rule: String, (place, why): (Enforcement, String)| RulePlace {
        operator: plan.name.clone(),
        block,
        rule,
        place,
        why,
    };
    let mutating = |moments: &Moments| {
        let why = passes_only(plan, plan.admission.mutation, "mutation", moments);
        match why {
            Some(why) => (Enforcement::Passes, why),
            None => (Enforcement::Webhook, CHANGES.to_owned()),
        }
    };
    let mut rows = Vec::new();
    for one in &plan.rules.normalize {
        let in_memory = (!plan.rules.persist).then(|| "`persist: false`".to_owned());
        let unknown = (!one.is_known).then(|| "the definition has no such field".to_owned());
        let place = match in_memory.or(unknown) {
            Some(why) => (Enforcement::Passes, why),
            None => mutating(&one.moments),
        };
        rows.push(row("normalize", one.path.to_string(), place));
    }
    for one in &plan.rules.mutation {
        let field = match &one.target {
            CompletionTarget::Path(path) => path.to_string(),
            CompletionTarget::Rendered(leaf) => leaf.template.source().to_owned(),
        };
        let (place, mut why) = mutating(&one.moments);
        if place == Enforcement::Webhook {
            why = match (&one.cel, in_mutating_policy(plan, one)) {
                (Ok(_), Some(_)) => format!("{CHANGES}; {ALSO}"),
                (Ok(_), None) => why,
                (Err(reason), _) => format!("{CHANGES}; in no policy: {reason}"),
            };
        }
        rows.push(row("mutation", field, (place, why)));
    }
    for one in &plan.rules.validation {
        let why = passes_only(plan, plan.admission.validation, "validation", &one.moments);
        let place = match (why, &one.cel) {
            (Some(why), _) => (Enforcement::Passes, why),
            (None, Err(why)) => (Enforcement::Webhook, why.to_string()),
            (None, Ok(_)) if in_policy(plan, one).is_some() => (
                Enforcement::Policy,
                "the API server can evaluate it".to_owned(),
            ),
            (None, Ok(_)) => (Enforcement::Webhook, String::new()),
        };
        rows.push(row("validation", one.label.to_string(), place));
    }
    rows
}

/// Returns why a rule of a block applies in passes only.
fn passes_only(
    plan: &OperatorPlan,
    is_asked: bool,
    block: &str,
    moments: &Moments,
) -> Option<String> {
    if let Some(why) = moments
        .not_at_admission
        .as_deref()
        .filter(|_| !moments.includes(Moment::Admission))
    {
        return Some(why.to_owned());
    }
    if !is_asked {
        return Some(format!("`webhooks.{block}` is `false`"));
    }
    match plan.admission.enabled {
        Some(true) => None,
        Some(false) => Some("`security.webhooks.admission.enabled` is `false`".to_owned()),
        None => Some("`security.webhooks.admission.enabled` is not declared".to_owned()),
    }
}
