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

/// Every target with its word, the key that it adds, and the kinds that it is added to.
const TARGETS: [(EnrichTarget, &str, &str, &[(&str, &str)]); 3] = [
    (
        EnrichTarget::Pods,
        "pods",
        "_pods",
        &[
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
            ("apps", "ReplicaSet"),
            ("batch", "Job"),
        ],
    ),
    (
        EnrichTarget::ReplicaSets,
        "replicasets",
        "_replicaSets",
        &[("apps", "Deployment")],
    ),
    (
        EnrichTarget::Endpoints,
        "endpoints",
        "_endpoints",
        &[("", "Service")],
    ),
];

impl EnrichTarget {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TARGETS.iter().map(|(target, ..)| *target)
    }

    fn row(
        self,
    ) -> &'static (
        EnrichTarget,
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ) {
        match self {
            Self::Pods => &TARGETS[0],
            Self::ReplicaSets => &TARGETS[1],
            Self::Endpoints => &TARGETS[2],
        }
    }

    /// The word for it in a Katalog.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// The key that it adds to a child.
    pub fn key(self) -> &'static str {
        self.row().2
    }

    /// Whether it is added to children of that kind.
    pub fn is_of(self, kind: &GroupKind) -> bool {
        let kinds = self.row().3;
        kinds.contains(&(&*kind.group, &*kind.kind))
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
        return EnrichTarget::all().map(plan).collect();
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
    let Some(target) = EnrichTarget::all().find(|target| target.word() == lower) else {
        let words: Vec<_> = EnrichTarget::all().map(EnrichTarget::word).collect();
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
