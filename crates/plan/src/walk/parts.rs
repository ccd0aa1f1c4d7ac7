//! The parts of an operator's plan, for the walk.

use super::{
    Destination, ExprContext, Expression, Purpose, Visitor, visit_child, visit_gate, visit_leaves,
    visit_own_gate,
};
use crate::{
    BlockPlan, CallPlan, Completion, CompletionTarget, EmitPlan, HookEndpoint, HookPlan,
    ImportPlan, InputPlan, ObservePlan, OnDeletePlan, OnDeleteStep, OwnCondition, Stage,
    StatusFieldPlan, StatusPlan, TokenPlan, ValidationRulePlan,
    observe::{EventPlan, KeyPlan, WatchPlan},
};

/// Visits the values of an import's inputs. A default reads no inputs.
pub(crate) fn visit_inputs<'a>(import: &'a ImportPlan, visit: Visitor<'_, 'a>) {
    let ImportPlan {
        motif: _,
        outer,
        inputs,
    } = import;
    for input in inputs {
        let InputPlan {
            name: _,
            given,
            default,
            coerce: _,
            is_intent: _,
            path: _,
        } = input;
        for (tree, import) in [(given, *outer), (default, None)] {
            let place = ExprContext::of(Purpose::Input).inside(import);
            if let Some(tree) = tree {
                tree.visit(&mut |leaf| visit(Expression::Leaf(leaf), place));
            }
        }
    }
}

pub(crate) fn visit_keys<'a>(observe: &'a ObservePlan, visit: Visitor<'_, 'a>) {
    let ObservePlan { watches, events } = observe;
    let watches = watches.iter().map(|watch| {
        let WatchPlan {
            path: _,
            kind: _,
            namespace: _,
            name: _,
            on: _,
            key,
            reads: _,
        } = watch;
        key
    });
    let events = events.iter().map(|event| {
        let EventPlan {
            path: _,
            name: _,
            filter: _,
            on: _,
            reads: _,
            key,
        } = event;
        key
    });
    let leaves = watches.chain(events).flat_map(KeyPlan::leaves);
    visit_leaves(leaves, ExprContext::of(Purpose::Key), visit);
}

/// Visits the expressions of a mutation rule.
pub fn visit_completion<'a>(one: &'a Completion, visit: Visitor<'_, 'a>) {
    let Completion {
        import,
        target,
        value,
        always: _,
        gate,
        moments: _,
        cel: _,
    } = one;
    let place = ExprContext::of(Purpose::Prepared).inside(*import);
    let destination = match target {
        CompletionTarget::Path(path) => Some(Destination::Resource(path)),
        CompletionTarget::Rendered(leaf) => {
            visit(Expression::Leaf(leaf), place);
            None
        }
    };
    visit(Expression::Leaf(value), place.into_field(destination));
    visit_gate(gate, (*import, None), visit);
}

pub(crate) fn visit_validation<'a>(one: &'a ValidationRulePlan, visit: Visitor<'_, 'a>) {
    let ValidationRulePlan {
        import,
        label: _,
        test,
        // It asks for the operands of `test`.
        present: _,
        message,
        warns: _,
        gate,
        moments: _,
        cel: _,
    } = one;
    for gate in [test, gate] {
        visit_gate(gate, (*import, None), visit);
    }
    let place = ExprContext::of(Purpose::Status).inside(*import);
    visit(Expression::Leaf(message), place);
}

/// Visits the expressions of a call, made after `made` others.
pub fn visit_call<'a>(call: &'a CallPlan, made: usize, visit: Visitor<'_, 'a>) {
    let CallPlan {
        name: _,
        path: _,
        import,
        stage,
        block: _,
        moments: _,
        gate,
        method: _,
        url,
        headers,
        body,
        token,
        expected_status: _,
        continue_on_error: _,
        timeout: _,
        retry: _,
        cache_for: _,
    } = call;
    let place = |purpose| ExprContext {
        made,
        in_rules: [Stage::Mutation, Stage::Validation].contains(stage),
        ..ExprContext::of(purpose).inside(*import)
    };
    let token = token.as_ref().and_then(TokenPlan::template);
    let headers = headers.iter().map(|(_, value)| value);
    let leaves = std::iter::once(url).chain(headers).chain(body).chain(token);
    visit_leaves(leaves, place(Purpose::Call), visit);
    for condition in gate.iter() {
        visit(Expression::Condition(condition), place(Purpose::Gate));
    }
}

/// Visits the expressions of a hook; its gate is that of its block.
pub(crate) fn visit_hook<'a>(hook: &'a HookPlan, visit: Visitor<'_, 'a>) {
    let HookPlan {
        name: _,
        path: _,
        at: _,
        block: _,
        http:
            HookEndpoint {
                url,
                finalize_url,
                headers,
                token,
            },
        protocol: _,
        args,
        managed: _,
        entries: _,
        timeout: _,
        retry: _,
        cache_for: _,
    } = hook;
    let place = ExprContext::of(Purpose::Call);
    let headers = headers.iter().map(|(_, value)| value);
    let token = token.as_ref().and_then(TokenPlan::template);
    let leaves = std::iter::once(url).chain(finalize_url).chain(headers);
    // The context of the caller limits the hooks that they may read.
    for leaf in leaves.chain(token) {
        visit(Expression::Leaf(leaf), place);
    }
    args.visit(&mut |leaf| visit(Expression::Leaf(leaf), place));
}

pub(crate) fn visit_block<'a>(block: &'a BlockPlan, visit: Visitor<'_, 'a>) {
    let BlockPlan {
        path: _,
        import,
        gate,
    } = block;
    visit_gate(gate, (*import, None), visit);
}

pub(crate) fn visit_on_delete<'a>(on_delete: &'a OnDeletePlan, visit: Visitor<'_, 'a>) {
    let OnDeletePlan {
        block,
        ordered: _,
        timeout: _,
        steps,
    } = on_delete;
    visit_block(block, visit);
    for step in steps {
        let OnDeleteStep {
            name: _,
            gate,
            made,
            deleted,
        } = step;
        visit_own_gate(gate, visit);
        made.iter()
            .for_each(|child| visit_child(child, true, visit));
        deleted
            .iter()
            .for_each(|child| visit_child(child, false, visit));
    }
}

pub(crate) fn visit_status<'a>(status: &'a StatusPlan, visit: Visitor<'_, 'a>) {
    let StatusPlan {
        conditions: _,
        own,
        ready_when,
        fields,
    } = status;
    for field in fields {
        let StatusFieldPlan {
            import,
            path: _,
            value,
            kind: _,
            gate,
            clear: _,
        } = field;
        let place = ExprContext::of(Purpose::Status).inside(*import);
        let place = place.into_field(Some(Destination::Status(field)));
        visit(Expression::Leaf(value), place);
        visit_gate(gate, (*import, None), visit);
    }
    for own in own {
        let OwnCondition {
            name: _,
            status,
            reason,
            message,
            gate,
            path: _,
        } = own;
        let leaves = [status, reason, message].into_iter().flatten();
        visit_leaves(leaves, ExprContext::of(Purpose::Status), visit);
        visit_own_gate(gate, visit);
    }
    visit_own_gate(ready_when, visit);
}

pub(crate) fn visit_emit<'a>(emit: &'a EmitPlan, visit: Visitor<'_, 'a>) {
    let EmitPlan {
        name: _,
        warns: _,
        on: _,
        reason,
        message,
        gate,
    } = emit;
    visit_leaves([reason, message], ExprContext::of(Purpose::Status), visit);
    visit_own_gate(gate, visit);
}
