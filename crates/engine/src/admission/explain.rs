//! Where each rule applies, and why.

use std::fmt;

use super::policies::{in_mutating_policy, in_policy};
use orkestra_plan::{CompletionTarget, Moment, Moments, OnScale, OperatorPlan, Plan};

/// Why a rule is for the mutating webhook.
const CHANGES: &str = "it changes the object";
/// Where else it applies.
const ALSO: &str =
    "while the webhook is unreachable, an API server with MutatingAdmissionPolicies applies it too";
/// Where a rule applies that no webhook applies.
const WHEN_WRITTEN: &str =
    "an API server with MutatingAdmissionPolicies applies it when the object is written";
/// What makes the webhook enforce a rule that policies cannot express.
const ASK: &str = "`security.webhooks.admission.enabled: true` makes the webhook apply it";

/// Why a rule is a policy.
const EVALUATED: &str = "the API server can evaluate it";
/// What policies do not see of a rule that reads the number of replicas and more.
const SCALED: &str =
    "not when `kubectl scale` or an autoscaler changes the number of replicas that it reads";

/// Where a rule applies when an object is written; passes apply it in any case, unless it is for admission only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enforcement {
    /// A policy of the API server.
    Policy,
    /// The webhook of the gateway.
    Webhook,
    /// Passes only.
    Passes,
    /// At no moment: it is for admission only, and nothing enforces it there.
    Nowhere,
}

impl Enforcement {
    /// Returns the word for it: `policy`, `webhook`, `passes` or `nowhere`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Webhook => "webhook",
            Self::Passes => "passes",
            Self::Nowhere => "nowhere",
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
    /// Whether passes apply it, too.
    pub in_passes: bool,
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
            in_passes: _,
        } = self;
        let place = place.as_str();
        write!(f, "{operator}: {block} of {rule}: {place}: {why}")
    }
}

/// Returns where each rule of the plan applies, in the order of declaration.
pub fn explain(plan: &Plan) -> Vec<RulePlace> {
    let operators = plan.operators.iter();
    operators
        .flat_map(|operator| explain_operator(operator))
        .collect()
}

// Over 60 lines: the three blocks of rules, one after the other.
/// Returns where each rule of an operator applies, in the order of declaration.
pub fn explain_operator(plan: &OperatorPlan) -> Vec<RulePlace> {
    let row =
        |block, rule: String, (place, why): (Enforcement, String), moments: &Moments| RulePlace {
            operator: plan.name.clone(),
            block,
            rule,
            place,
            why,
            in_passes: moments.includes(Moment::Pass),
        };
    let by_webhook = plan.admission.enabled == Some(true);
    let mutating = |moments: &Moments| {
        let why = passes_only(plan, plan.admission.mutation, "mutation", moments);
        match why {
            Some(why) => (without(moments), why),
            None if by_webhook => (Enforcement::Webhook, CHANGES.to_owned()),
            None => (without(moments), format!("{CHANGES}; {ASK}")),
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
        rows.push(row("normalize", one.path.to_string(), place, &one.moments));
    }
    for one in &plan.rules.mutation {
        let field = match &one.target {
            CompletionTarget::Path(path) => path.to_string(),
            CompletionTarget::Rendered(leaf) => leaf.template.source().to_owned(),
        };
        let (place, mut why) = mutating(&one.moments);
        match (&one.cel, in_mutating_policy(plan, one)) {
            (Ok(_), Some(_)) if place == Enforcement::Webhook => {
                why = format!("{CHANGES}; {ALSO}");
            }
            (Ok(_), Some(_)) => why = format!("{why}; {WHEN_WRITTEN}"),
            (Err(reason), _) if place == Enforcement::Webhook => {
                why = format!("{CHANGES}; in no policy: {reason}");
            }
            _ => {}
        }
        rows.push(row("mutation", field, (place, why), &one.moments));
    }
    for one in &plan.rules.validation {
        let why = passes_only(plan, plan.admission.validation, "validation", &one.moments);
        let place = match (why, &one.cel) {
            (Some(why), _) => (without(&one.moments), why),
            (None, Err(why)) if by_webhook => (Enforcement::Webhook, why.to_string()),
            (None, Err(why)) => (without(&one.moments), format!("{why}; {ASK}")),
            (None, Ok(said)) if in_policy(plan, one).is_some() => {
                let why = match said.on_scale {
                    OnScale::Webhook if !by_webhook => format!("{EVALUATED}, but {SCALED}; {ASK}"),
                    _ => EVALUATED.to_owned(),
                };
                (Enforcement::Policy, why)
            }
            (None, Ok(_)) => (Enforcement::Webhook, String::new()),
        };
        rows.push(row(
            "validation",
            one.label.to_string(),
            place,
            &one.moments,
        ));
    }
    rows
}

/// Returns the place of a rule that nothing enforces at admission.
fn without(moments: &Moments) -> Enforcement {
    if moments.includes(Moment::Pass) {
        Enforcement::Passes
    } else {
        Enforcement::Nowhere
    }
}

/// Returns why a rule of a block applies in passes only, whatever enforces it.
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
    (plan.admission.enabled == Some(false))
        .then(|| "`security.webhooks.admission.enabled` is `false`".to_owned())
}
