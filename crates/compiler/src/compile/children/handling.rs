//! How the object of an entry is handled: whether drift is corrected, and what happens when its conditions do not hold.

use super::blocks::Block;
use crate::scope::At;
use orkestra_language::{
    api::children::{self, Control, OnImmutable},
    diagnostics::Code,
};
use orkestra_plan::{Gate, GroupKind, Mode, OnFalsePlan};

/// Returns the mode of an entry's object.
pub(crate) fn mode(at: &At<'_>, block: Block, kind: &GroupKind, control: &Control) -> Mode {
    if block == Block::Delete {
        if control.reconcile.is_some() {
            let message = "`reconcile` has no effect in `onDelete`: each step runs once";
            at.field("reconcile").warn(Code::NoEffect, message);
        }
        return Mode::Once;
    }
    let is_job = *kind == GroupKind::parse("Job.batch");
    let wanted = match (block, control.reconcile) {
        // The declared value takes effect, so there is no warning.
        (Block::Reconcile, Some(false)) if is_job => Mode::Once,
        (Block::Reconcile, Some(false)) => {
            at.field("reconcile").warn_hint(
                Code::NoEffect,
                "`reconcile: false` has no effect in `onReconcile`: the entry is reconciled",
                "move the entry to `onCreate`, or remove `reconcile`",
            );
            Mode::Reconciled
        }
        (Block::Reconcile, _) | (Block::Create, Some(true)) => Mode::Reconciled,
        (Block::Create | Block::Delete, _) => Mode::Once,
    };
    if wanted == Mode::Reconciled && is_job {
        at.warn(
            Code::NoEffect,
            "a Job cannot be changed: it is created once and not reconciled",
        );
        return Mode::Once;
    }
    wanted
}

/// Returns the `onFalse` that the entry itself declares.
pub(crate) fn on_false(
    at: &At<'_>,
    mode: Mode,
    control: &Control,
    block: &Gate,
) -> Option<OnFalsePlan> {
    let declared = control.on_false?;
    let at = at.field("onFalse");
    let gates = [
        control.when.is_empty(),
        control.or.is_empty(),
        block.is_empty(),
    ];
    if gates == [true; 3] && control.for_each.is_none() {
        at.warn(Code::NoEffect, "without `when` this has no effect");
    } else if mode == Mode::Once {
        at.warn(
            Code::NoEffect,
            "a child that is created once is kept: this has no effect",
        );
    }
    Some(match declared {
        children::OnFalse::Delete => OnFalsePlan::Delete,
        children::OnFalse::Keep => OnFalsePlan::Keep,
    })
}

/// Kinds whose data is lost with the object.
const WITH_DATA: [&str; 3] = ["Namespace", "PersistentVolume", "PersistentVolumeClaim"];

/// True if the object is recreated when an immutable field changes.
pub(crate) fn recreates(at: &At<'_>, mode: Mode, kind: &GroupKind, control: &Control) -> bool {
    let Some(declared) = control.on_immutable else {
        return false;
    };
    let at = at.field("onImmutable");
    if mode == Mode::Once && declared != OnImmutable::Report {
        let message = "a child that is created once is never changed: this has no effect";
        at.warn(Code::NoEffect, message);
    }
    let has_data = kind.group.is_empty() && WITH_DATA.contains(&&*kind.kind);
    if declared == OnImmutable::Recreate && has_data {
        at.error_hint(
            Code::LosesData,
            format!("recreating a {} loses its data", kind.kind),
            "if that is intended, write `onImmutable: recreateAndLoseData`",
        );
    }
    mode == Mode::Reconciled && declared != OnImmutable::Report
}
