//! `enrich`: what is added to children that templates read.

use super::{Gate, GroupKind, Reads, conditions};
use crate::{
    api::{CrdEntry, EnrichTarget, enrich::Enrich},
    diagnostics::{Code, did_you_mean},
    resources::scope::At,
    value::Step,
};

/// Something that is added to children.
#[derive(Debug)]
pub struct EnrichPlan {
    /// What.
    pub target: EnrichTarget,
    /// What must hold for it to be added.
    pub gate: Gate,
}

impl EnrichTarget {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pods, Self::ReplicaSets, Self::Endpoints];

    /// The word for it in a Katalog.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::ReplicaSets => "replicasets",
            Self::Endpoints => "endpoints",
        }
    }

    /// The key that it adds to a child.
    pub fn key(self) -> &'static str {
        match self {
            Self::Pods => "_pods",
            Self::ReplicaSets => "_replicaSets",
            Self::Endpoints => "_endpoints",
        }
    }

    /// Whether it is added to children of that kind.
    pub fn is_of(self, kind: &GroupKind) -> bool {
        let kind = (&*kind.group, &*kind.kind);
        match self {
            Self::Pods => matches!(
                kind,
                (
                    "apps",
                    "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet"
                ) | ("batch", "Job")
            ),
            Self::ReplicaSets => kind == ("apps", "Deployment"),
            Self::Endpoints => kind == ("", "Service"),
        }
    }
}

impl EnrichPlan {
    /// Whether templates read what is added to children of that kind.
    pub fn is_read(&self, reads: &Reads, kind: &GroupKind) -> bool {
        let key = self.target.key();
        let paths = reads.children.get(kind).into_iter().flatten();
        self.target.is_of(kind)
            && paths.into_iter().any(|path| match path.steps().first() {
                Some(Step::Field(first)) => &**first == key,
                Some(Step::Index(_)) => false,
                None => true,
            })
    }
}

/// Compiles what the entry at `at` declares; what is wrong is reported and left out.
pub(crate) fn compile(at: &At<'_>, entry: &CrdEntry) -> Box<[EnrichPlan]> {
    if entry.enrich_all == Some(true) {
        if !entry.enrich.is_empty() {
            let message = "`enrichAll` adds everything already: leave one of the two out";
            at.field("enrich").error(Code::Exclusive, message);
        }
        let plan = |target| EnrichPlan {
            target,
            gate: Gate::default(),
        };
        return EnrichTarget::ALL.into_iter().map(plan).collect();
    }
    let mut plans: Vec<EnrichPlan> = Vec::new();
    for (index, declared) in entry.enrich.iter().enumerate() {
        let at = at.field("enrich").index(index);
        let Some(plan) = one(&at, declared) else {
            continue;
        };
        if plans.iter().any(|other| other.target == plan.target) {
            let message = format!("`{}` is listed twice", plan.target.word());
            at.error(Code::SetTwice, message);
            continue;
        }
        plans.push(plan);
    }
    plans.into()
}

fn one(at: &At<'_>, declared: &Enrich) -> Option<EnrichPlan> {
    let gates = match declared {
        Enrich::Target(target) => {
            return Some(EnrichPlan {
                target: *target,
                gate: Gate::default(),
            });
        }
        Enrich::Gated(gates) => gates,
    };
    let mut entries = gates.iter();
    let (Some((word, gates)), None) = (entries.next(), entries.next()) else {
        let hint = "give each a `-` of its own";
        at.error_hint(Code::WrongShape, "this takes one key", hint);
        return None;
    };
    let lower = word.to_ascii_lowercase();
    let Some(target) = EnrichTarget::ALL
        .into_iter()
        .find(|target| target.word() == lower)
    else {
        let words = EnrichTarget::ALL.map(EnrichTarget::word);
        let message = format!("`{word}` cannot be added");
        let hint = did_you_mean(&lower, words.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("there is {}", words.join(", ")));
        at.key(word).error_hint(Code::UnknownWord, message, hint);
        return None;
    };
    Some(EnrichPlan {
        target,
        gate: conditions::gate(&at.field(word), &gates.when, &gates.or),
    })
}
