//! What is read below `.external`.

use super::{EXTERNAL, Gathered, INPUTS, Place};
use crate::{
    diagnostics::{Code, nearest},
    plan::{ImportPlan, OperatorPlan},
    value::Step,
};

/// In which order calls are made, as it is told.
const ORDER: &str = "calls are made in the order of `preReconcile`, `enqueueGate`, `reconcileGate`, `mutation`, `validation` \
                     and the blocks, and none when a resource goes";

/// The calls that one import, or the Katalog, makes.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) import: Option<usize>,
    /// How many of the plan's are made.
    pub(super) made: usize,
}

impl<'a> Calls<'a> {
    /// The names, each with whether the call is made.
    fn names(self) -> impl Iterator<Item = (&'a str, bool)> {
        let calls = self.plan.calls.iter().enumerate();
        let here = calls.filter(move |(_, call)| call.import == self.import);
        here.map(move |(position, call)| (&*call.name, position < self.made))
    }
}

impl Gathered {
    /// The answers to the calls that are declared beside what reads.
    pub(super) fn call(&mut self, below: &[Step], place: Place<'_>, calls: Calls<'_>) {
        let Some(Step::Field(name)) = below.first() else {
            return;
        };
        let names = || calls.names().map(|(known, _)| known);
        let (message, hint) = match calls.names().find(|(known, _)| *known == &**name) {
            Some((_, true)) => return,
            Some((_, false)) => {
                let message = format!("the call `{name}` is not made before this");
                (message, ORDER.to_owned())
            }
            None => {
                let hint = match nearest(name, names()) {
                    Some(near) => format!("did you mean `.{EXTERNAL}.{near}`?"),
                    None => "calls are declared under `external`, in a block of the operatorBox, beside rules and gates, or in \
                             the Motif that reads them"
                        .to_owned(),
                };
                (format!("there is no call `{name}`"), hint)
            }
        };
        let read = format!("{EXTERNAL}.{name}");
        self.unreadable(Code::UnknownData, place, &read, message, Some(hint));
    }

    /// What is given for an input is evaluated where that is read: then the calls that it depends on are made.
    pub(super) fn calls_of_input(
        &mut self,
        (import, name): (&ImportPlan, &str),
        place: Place<'_>,
        calls: Calls<'_>,
    ) {
        if calls.made >= calls.plan.calls.len() {
            return;
        }
        let outer = Calls {
            import: import.outer,
            ..calls
        };
        let mut late = None;
        import.visit_given(Some(name), &mut |leaf| {
            for path in leaf.template.reads() {
                if let [Step::Field(root), Step::Field(call), ..] = path.steps()
                    && root.as_str() == EXTERNAL
                    && outer
                        .names()
                        .any(|(known, made)| known == call.as_str() && !made)
                {
                    late = Some(call.clone());
                }
            }
        });
        if let Some(call) = late {
            let read = format!("{INPUTS}.{name}");
            let message = format!(
                "the input `{name}` depends on the call `{call}`, which is not made before this"
            );
            self.unreadable(
                Code::UnknownData,
                place,
                &read,
                message,
                Some(ORDER.to_owned()),
            );
        }
    }
}
