//! `enrich`: data added to children that templates read.

use std::collections::BTreeSet;

use super::conditions;
use crate::scope::At;
use orkestra_language::{
    api::{
        CrdEntry, EnrichTarget,
        enrich::{Enrich, EnrichAll},
    },
    diagnostics::{Code, nearest_or_all},
    enrich::{ADDITIONS, Addition},
};
use orkestra_plan::{ChildPlan, EnrichPlan, Gate, GroupKind, OperatorPlan};

/// Keeps the fields of children that their additions are looked up by.
pub(crate) fn keep_for_additions(plan: &mut OperatorPlan) {
    let read = plan.additions_read();
    let kept: Vec<_> = read
        .flat_map(|(addition, kind)| {
            let paths = addition.source.paths();
            paths.map(|path| (kind.clone(), path))
        })
        .collect();
    for (kind, path) in kept {
        let paths = plan.reads.children.entry(kind).or_default();
        if !paths.iter().any(|known| path.starts_with(known)) {
            paths.retain(|known| !known.starts_with(&path));
            paths.push(path);
            paths.sort();
        }
    }
}

/// Compiles the additions that the entry at `at` declares for `children`; invalid ones are reported and left out.
pub(crate) fn plans(at: &At<'_>, entry: &CrdEntry, children: &[ChildPlan]) -> Box<[EnrichPlan]> {
    let except = match &entry.enrich_all {
        None | Some(EnrichAll::Switch(false)) => return listed(at, entry, children),
        Some(EnrichAll::Switch(true)) => &[][..],
        Some(EnrichAll::Except(all)) => &all.except,
    };
    if !entry.enrich.is_empty() {
        let message = "`enrichAll` already adds everything: remove one of the two";
        at.field("enrich").error(Code::Exclusive, message);
    }
    let plan = |target| EnrichPlan {
        target,
        gate: Gate::default(),
    };
    let all = EnrichTarget::ALL.into_iter();
    all.filter(|target| !except.contains(target))
        .map(plan)
        .collect()
}

fn listed(at: &At<'_>, entry: &CrdEntry, children: &[ChildPlan]) -> Box<[EnrichPlan]> {
    let mut plans: Vec<EnrichPlan> = Vec::new();
    for (index, declared) in entry.enrich.iter().enumerate() {
        let at = at.field("enrich").index(index);
        let Some(plan) = compile_entry(&at, declared) else {
            continue;
        };
        if plans.iter().any(|other| other.target == plan.target) {
            let message = format!("`{}` is listed twice", plan.target.word());
            at.error(Code::SetTwice, message);
            continue;
        }
        report_no_children(&at, plan.target, children);
        plans.push(plan);
    }
    plans.into()
}

/// Warns about an addition that applies to no declared child.
fn report_no_children(at: &At<'_>, target: EnrichTarget, children: &[ChildPlan]) {
    let is_of_one = |addition: &Addition| {
        let mut kinds = children.iter().map(|child| child.kind.group_kind());
        kinds.any(|kind| addition.is_of(&kind))
    };
    if target.additions().any(is_of_one) {
        return;
    }
    let word = target.word();
    let kinds: BTreeSet<&str> = target.additions().flat_map(Addition::kinds).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let message = if kinds.is_empty() {
        format!("`{word}` is added to children, but no child is declared")
    } else {
        let kinds = kinds.join(", ");
        format!("`{word}` is added to children of kind {kinds}, but none is declared")
    };
    at.warn_hint(Code::NoEffect, message, "remove it, or declare one");
}

fn compile_entry(at: &At<'_>, declared: &Enrich) -> Option<EnrichPlan> {
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
        let hint = "write each key as its own list item, with its own `-`";
        at.error_hint(Code::WrongShape, "expected exactly one key", hint);
        return None;
    };
    let Some(target) = EnrichTarget::ALL
        .into_iter()
        .find(|target| target.word().eq_ignore_ascii_case(word))
    else {
        let words = EnrichTarget::ALL.map(EnrichTarget::word);
        let message = format!("`{word}` cannot be added");
        let hint = nearest_or_all(&word.to_ascii_lowercase(), "", words);
        at.key(word).error_hint(Code::UnknownWord, message, hint);
        return None;
    };
    Some(EnrichPlan {
        target,
        gate: conditions::gate(&at.field(word), &gates.when, &gates.or),
    })
}

/// The reader of a key that `enrich` may add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The author of the Katalog, explicitly.
    Author,
    /// A note that has no other use.
    Note,
    /// A note that reads something else if the key is missing.
    NoteWithout,
}

/// Returns why the key that is read of children of that kind is always missing, and the hint for a fix.
pub(crate) fn never_added(
    enrich: &[EnrichTarget],
    kind: &GroupKind,
    key: &str,
    reader: Reader,
) -> Option<(String, String)> {
    if let Some(addition) = Addition::find(key, kind) {
        let word = addition.target.word();
        if enrich.contains(&addition.target) || reader == Reader::NoteWithout {
            return None;
        }
        return Some((
            format!("`{key}` is always empty: nothing adds it to {}", kind.kind),
            format!("add `{word}` to `enrich` of the entry"),
        ));
    }
    let others = ADDITIONS.iter().filter(|addition| addition.key == key);
    let kinds: Vec<&str> = others.flat_map(Addition::kinds).collect();
    // A note may serve several kinds.
    (reader == Reader::Author && !kinds.is_empty()).then(|| {
        let message = format!(
            "`{key}` is always empty: children of kind {} have none",
            kind.kind
        );
        (message, format!("it is added to {}", kinds.join(", ")))
    })
}
