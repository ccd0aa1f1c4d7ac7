//! Reads below `.external`.

use super::{INPUTS, PlanReads, ReadPosition};
use orkestra_language::diagnostics::{Code, nearest};
use orkestra_object::value::PathStep;
use orkestra_plan::{EXTERNAL, ImportPlan, OperatorPlan};

/// The order of calls, for messages.
const ORDER: &str = "calls are made in the order of `preReconcile`, `enqueueGate`, `reconcileGate`, `mutation`, `validation` \
                     and the blocks, and none when a resource is deleted";

/// The calls of one import, or of the Katalog.
#[derive(Clone, Copy)]
pub(crate) struct Calls<'a> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) import: Option<usize>,
    /// The number of the plan's calls made so far.
    pub(crate) made: usize,
}

impl<'a> Calls<'a> {
    /// Returns the names, each with whether the call is made.
    fn names(self) -> impl Iterator<Item = (&'a str, bool)> {
        let calls = self.plan.calls.iter().enumerate();
        let here = calls.filter(move |(_, call)| call.import == self.import);
        here.map(move |(position, call)| (&*call.name, position < self.made))
    }
}

impl PlanReads {
    /// Checks a read of a response: its call must be declared in the same document.
    pub(crate) fn call(&mut self, below: &[PathStep], place: ReadPosition<'_>, calls: Calls<'_>) {
        let Some(PathStep::Field(name)) = below.first() else {
            return;
        };
        let names = || calls.names().map(|(known, _)| known);
        let (message, hint) = match calls.names().find(|(known, _)| *known == &**name) {
            Some((_, true)) => return,
            Some((_, false)) => {
                let message = format!("the call `{name}` has not been made at this point");
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

    /// The value of an input is evaluated where the input is read: the calls that it depends on must be made by then.
    pub(crate) fn calls_of_input(
        &mut self,
        (import, name): (&ImportPlan, &str),
        place: ReadPosition<'_>,
        calls: Calls<'_>,
    ) {
        if calls.made >= calls.plan.calls.len() {
            return;
        }
        let mut late = None;
        import.visit_values(Some(name), &mut |import, leaf| {
            let outer = Calls { import, ..calls };
            for path in leaf.template.reads() {
                if let [PathStep::Field(root), PathStep::Field(call), ..] = path.steps()
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
                "the input `{name}` depends on the call `{call}`, which has not been made at this point"
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
