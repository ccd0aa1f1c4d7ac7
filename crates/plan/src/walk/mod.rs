//! Visits every expression of a plan, with its purpose. Typing, read sets and checks use this walk.
//!
//! It destructures every type of a plan without `..`, so that the compiler reports a field that it leaves out.

mod parts;

use super::{
    ChildPlan, CleanupPlan, ConditionPlan, EnrichPlan, ForEachPlan, Gate, HoldPlan, Leaf,
    Normalized, OperatorPlan, RequeuePlan, RulesPlan, Stage, StatusFieldPlan, cross::CrossPlan,
};
use orkestra_object::value::Path;

pub use parts::{visit_call, visit_completion};

use parts::{
    visit_block, visit_emit, visit_hook, visit_inputs, visit_keys, visit_on_delete, visit_status,
    visit_validation,
};

/// An expression of a plan.
#[derive(Clone, Copy)]
pub enum Expression<'a> {
    /// A template, or a literal.
    Leaf(&'a Leaf),
    /// A condition of a gate.
    Condition(&'a ConditionPlan),
    /// The list that an entry is expanded for.
    ForEach(&'a ForEachPlan),
    /// The body of an entry as a whole; its leaves follow.
    Body(&'a ChildPlan),
}

impl Expression<'_> {
    /// Calls `look` with every path that the expression reads.
    pub fn each_read(self, look: &mut dyn FnMut(&Path)) {
        match self {
            Expression::Leaf(leaf) => leaf.template.reads().iter().for_each(look),
            Expression::Condition(condition) => condition.visit_reads(&mut |path| look(path)),
            Expression::ForEach(each) => look(&each.field),
            Expression::Body(_) => {}
        }
    }
}

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The value of an import's input, or the Motif's default.
    Input,
    /// Selects another operator's custom resource.
    Cross,
    /// Finds the custom resource of a watched object or Event; it reads only that object.
    Key,
    /// A name or a namespace of an object.
    Name,
    /// Part of a gate.
    Gate,
    /// A part of an object that is created once.
    Once,
    /// A part of an object that is reconciled.
    Reconciled,
    /// A field of the custom resource's status, or other data reported there.
    Status,
    /// A value of the custom resource itself, set by `normalize` or `mutation`.
    Prepared,
    /// A part of an external request.
    Call,
    /// A label of the custom resource.
    Label,
}

/// The context of an expression.
#[derive(Clone, Copy)]
pub struct ExprContext<'a> {
    /// Its purpose.
    pub purpose: Purpose,
    /// The import whose inputs it reads, as an index into [`OperatorPlan::imports`].
    pub import: Option<usize>,
    /// The element that it reads, if its entry is expanded for a list.
    pub each: Option<&'a ForEachPlan>,
    /// The minimum number of calls made before it is evaluated.
    pub made: usize,
    /// True in rules and calls that admission evaluates: they read `.old` and `.operation`.
    pub in_rules: bool,
    /// The field of the custom resource that its result is written to.
    pub destination: Option<Destination<'a>>,
}

/// A field of the custom resource that an expression sets.
#[derive(Clone, Copy)]
pub enum Destination<'a> {
    /// A field that a rule sets, from the root.
    Resource(&'a Path),
    /// A declared field of the status.
    Status(&'a StatusFieldPlan),
}

/// Receives the expressions of a plan.
pub(crate) type Visitor<'v, 'a> = &'v mut dyn FnMut(Expression<'a>, ExprContext<'a>);

impl<'a> ExprContext<'a> {
    /// Returns a place in the Katalog itself, evaluated after all calls.
    pub(crate) fn of(purpose: Purpose) -> Self {
        Self {
            purpose,
            import: None,
            each: None,
            made: usize::MAX,
            in_rules: false,
            destination: None,
        }
    }

    /// Returns the same place inside of an import.
    pub(crate) fn inside(self, import: Option<usize>) -> Self {
        Self { import, ..self }
    }

    /// Returns the same place with a destination.
    fn into_field(self, destination: Option<Destination<'a>>) -> Self {
        Self {
            destination,
            ..self
        }
    }

    /// Returns the same place for an element.
    fn each(self, each: Option<&'a ForEachPlan>) -> Self {
        Self { each, ..self }
    }
}

/// Wraps `visit` for expressions evaluated after `made` calls.
fn when_made<'a>(
    made: usize,
    visit: Visitor<'_, 'a>,
) -> impl FnMut(Expression<'a>, ExprContext<'a>) {
    move |expression, place| visit(expression, ExprContext { made, ..place })
}

/// Wraps `visit` for expressions of rules.
fn in_rules<'a>(visit: Visitor<'_, 'a>) -> impl FnMut(Expression<'a>, ExprContext<'a>) {
    move |expression, place| {
        let in_rules = true;
        visit(expression, ExprContext { in_rules, ..place });
    }
}

impl OperatorPlan {
    /// Calls `visit` with every expression of the plan, in the order in which a pass evaluates them.
    // Over 60 lines: a table, a line for each field of a plan.
    pub fn visit<'a>(&'a self, visit: Visitor<'_, 'a>) {
        let Self {
            imports,
            cross,
            observe,
            enrich,
            hold,
            requeue,
            rules,
            calls,
            hooks,
            blocks,
            labels,
            children,
            on_delete,
            status,
            emits,
            cleanup,
            // It reads only metrics, outside of passes.
            autoscale: _,
            // Values without expressions.
            katalog: _,
            source: _,
            name: _,
            resource: _,
            workers: _,
            most_workers: _,
            resync: _,
            watched: _,
            targets: _,
            roots: _,
            cross_access: _,
            pages: _,
            queue: _,
            depends_on: _,
            finalizer: _,
            admission: _,
            other_finalizers: _,
            reads: _,
            children_names: _,
            hash: _,
        } = self;
        // Values of inputs may be rendered before any hook is called.
        let (without_hooks, for_children) = (calls.len(), self.made_for_children());
        for import in imports {
            visit_inputs(import, &mut when_made(without_hooks, visit));
        }
        let leaves = cross.iter().flat_map(CrossPlan::leaves);
        visit_leaves(leaves, ExprContext::of(Purpose::Cross), visit);
        visit_keys(observe, visit);
        for EnrichPlan { target: _, gate } in enrich {
            visit_own_gate(gate, &mut when_made(0, visit));
        }
        self.visit_hold(hold, visit);
        for RequeuePlan { after, gate } in requeue {
            let visit = &mut when_made(for_children, visit);
            visit(Expression::Leaf(after), ExprContext::of(Purpose::Gate));
            visit_own_gate(gate, visit);
        }
        self.visit_rules(rules, visit);
        for (made, call) in calls.iter().enumerate() {
            visit_call(call, made, visit);
        }
        for (position, block) in blocks.iter().enumerate() {
            let hook = self.hook_of(position);
            let made = hook.map_or(for_children, |hook| without_hooks + hook);
            visit_block(block, &mut when_made(made, visit));
        }
        for (position, hook) in hooks.iter().enumerate() {
            visit_hook(hook, &mut when_made(without_hooks + position, visit));
        }
        let leaves = labels.iter().map(|(_, label)| label);
        let place = ExprContext::of(Purpose::Label);
        visit_leaves(leaves, place, &mut when_made(for_children, visit));
        for child in children {
            visit_child(child, true, &mut when_made(for_children, visit));
        }
        if let Some(on_delete) = on_delete {
            // `onDelete` makes no calls.
            visit_on_delete(on_delete, &mut when_made(0, visit));
        }
        visit_status(status, visit);
        emits.iter().for_each(|emit| visit_emit(emit, visit));
        if let Some(cleanup) = cleanup {
            let CleanupPlan {
                gate,
                after: _,
                path: _,
            } = &**cleanup;
            visit_own_gate(gate, &mut when_made(without_hooks, visit));
        }
    }

    fn visit_hold<'a>(&'a self, hold: &'a HoldPlan, visit: Visitor<'_, 'a>) {
        let HoldPlan {
            enqueue,
            reconcile,
            children,
            on_false: _,
        } = hold;
        for (gate, stage) in [
            (enqueue, Stage::EnqueueGate),
            (reconcile, Stage::ReconcileGate),
        ] {
            visit_own_gate(gate, &mut when_made(self.calls_until(stage), visit));
        }
        // The gate of the box is that of hooks, too.
        visit_own_gate(children, &mut when_made(self.calls.len(), visit));
    }

    fn visit_rules<'a>(&'a self, rules: &'a RulesPlan, visit: Visitor<'_, 'a>) {
        let RulesPlan {
            normalize,
            mutation,
            validation,
            persist: _,
            audit: _,
            late: _,
        } = rules;
        for one in normalize {
            let Normalized {
                path,
                value,
                is_known: _,
                moments: _,
            } = one;
            let place = ExprContext::of(Purpose::Prepared);
            let place = place.into_field(Some(Destination::Resource(path)));
            when_made(0, visit)(Expression::Leaf(value), place);
        }
        let made = self.calls_until(Stage::Mutation);
        for one in mutation {
            visit_completion(one, &mut in_rules(&mut when_made(made, visit)));
        }
        let made = self.calls_until(Stage::Validation);
        for one in validation {
            visit_validation(one, &mut in_rules(&mut when_made(made, visit)));
        }
    }
}

fn visit_leaves<'a>(
    leaves: impl IntoIterator<Item = &'a Leaf>,
    place: ExprContext<'a>,
    visit: Visitor<'_, 'a>,
) {
    for leaf in leaves {
        visit(Expression::Leaf(leaf), place);
    }
}

/// Visits the conditions of a gate that the Katalog itself declares.
fn visit_own_gate<'a>(gate: &'a Gate, visit: Visitor<'_, 'a>) {
    visit_gate(gate, (None, None), visit);
}

fn visit_gate<'a>(
    gate: &'a Gate,
    (import, each): (Option<usize>, Option<&'a ForEachPlan>),
    visit: Visitor<'_, 'a>,
) {
    for condition in gate.iter() {
        let place = ExprContext::of(Purpose::Gate).inside(import).each(each);
        visit(Expression::Condition(condition), place);
    }
}

/// Visits the expressions of one entry; those of the body only if `with_body`.
pub fn visit_child<'a>(child: &'a ChildPlan, with_body: bool, visit: Visitor<'_, 'a>) {
    let ChildPlan {
        import,
        for_each,
        gate,
        name,
        namespace,
        body,
        scale,
        // `upkeep` destructures them, and the leaves of `scale`.
        generated: _,
        copy: _,
        path: _,
        block: _,
        kind: _,
        mode: _,
        on_false: _,
        name_rule: _,
        reach: _,
        whole_lists: _,
        list_keys: _,
        force_conflict: _,
        adopt: _,
        recreates: _,
        bound_roles: _,
        rolls: _,
        spread: _,
        // It follows from the expressions.
        shows_secrets: _,
    } = child;
    let (import, each) = (*import, for_each.as_deref());
    if let Some(each) = each {
        let place = ExprContext::of(Purpose::Gate).inside(import);
        visit(Expression::ForEach(each), place);
    }
    let place = |purpose| ExprContext::of(purpose).inside(import).each(each);
    // The source of a copy, and the names of a certificate, must be the same in each pass.
    let names = std::iter::once(name).chain(namespace).chain(child.upkeep());
    visit_leaves(names, place(Purpose::Name), visit);
    if with_body {
        let purpose = if child.draws_once() {
            Purpose::Once
        } else {
            Purpose::Reconciled
        };
        visit(Expression::Body(child), place(purpose));
        body.visit(&mut |leaf| visit(Expression::Leaf(leaf), place(purpose)));
    }
    visit_gate(gate, (import, each), visit);
    for gate in scale.iter().flat_map(|plan| plan.gates()) {
        visit_gate(gate, (import, each), visit);
    }
}
