//! Reads below `.health`, `.metrics` and `.ork`.

use super::{PlanReads, ReadPosition};
use crate::{
    diagnostics::{Code, nearest},
    plan::introspection::Introspection,
    value::PathStep,
};

impl PlanReads {
    pub(super) fn introspection(
        &mut self,
        read: Introspection,
        below: &[PathStep],
        place: ReadPosition<'_>,
    ) {
        if let Some(step) = below.first() {
            let name = match step {
                PathStep::Field(name) => name.to_string(),
                PathStep::Index(index) => index.to_string(),
            };
            let fields = || read.fields().into_iter().map(|(field, _)| field);
            if !fields().any(|field| field == name) {
                let hint = match nearest(&name, fields()) {
                    Some(near) => format!("did you mean `{read}.{near}`?"),
                    None => format!("it has {}", fields().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("`{read}` has no `{name}`");
                let text = format!("{}.{name}", read.root());
                return self.unreadable(Code::UnknownData, place, &text, message, Some(hint));
            }
        }
        self.reads.introspection.insert(read);
    }
}
