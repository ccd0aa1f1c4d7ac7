//! How the object of an entry is handled: whether it is kept as declared, and what becomes of it when its conditions do not hold.

use super::Block;
use crate::{
    api::children::{self, Control},
    diagnostics::Code,
    plan::{Gate, GroupKind, Mode, OnFalse},
    resources::scope::At,
};

/// How an entry's object is kept.
pub(super) fn mode(at: &At<'_>, block: Block, kind: &GroupKind, control: &Control) -> Mode {
    if block == Block::Delete {
        if control.reconcile.is_some() {
            let message = "what is done before the end is done once";
            at.field("reconcile").warn(Code::NoEffect, message);
        }
        return Mode::Once;
    }
    let wanted = match (block, control.reconcile) {
        (Block::Reconcile, Some(false)) => {
            at.field("reconcile").error_hint(
                Code::NoEffect,
                "what stands in `onReconcile` is reconciled",
                "move the entry to `onCreate`",
            );
            Mode::Reconciled
        }
        (Block::Reconcile, _) | (Block::Create, Some(true)) => Mode::Reconciled,
        (Block::Create | Block::Delete, _) => Mode::Once,
    };
    if wanted == Mode::Reconciled && *kind == GroupKind::parse("Job.batch") {
        at.warn(
            Code::NoEffect,
            "a Job cannot be changed: it is made once and not reconciled",
        );
        return Mode::Once;
    }
    wanted
}

/// What the entry itself declares.
pub(super) fn on_false(
    at: &At<'_>,
    mode: Mode,
    control: &Control,
    block: &Gate,
) -> Option<OnFalse> {
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
            "a child that is made once is kept: this has no effect",
        );
    }
    Some(match declared {
        children::OnFalse::Delete => OnFalse::Delete,
        children::OnFalse::Keep => OnFalse::Keep,
    })
}
