//! Roles of bindings that the custom resource chooses.

use super::{Typing, problem};
use orkestra_language::diagnostics::{Code, Severity};
use orkestra_plan::{ChildPlan, rbac};
use orkestra_template::TemplateError;

impl Typing<'_, '_> {
    /// Records the roles that bindings may grant if the custom resource chooses one: the enum in its definition.
    pub(crate) fn roles(&mut self, children: &mut [ChildPlan]) {
        for at in 0..children.len() {
            let Some(leaf) = rbac::chosen_role(&children[at], children) else {
                continue;
            };
            let leaf = leaf.clone();
            self.enter(children[at].import, children[at].for_each.as_deref());
            let inference = leaf.template.infer(self.root(), false);
            let words = (leaf.template.is_single_expression())
                .then(|| inference.gives.schema().and_then(|schema| schema.words()))
                .flatten();
            match words {
                Some(words) => {
                    let names = words.iter().map(|word| word.to_text().into());
                    children[at].bound_roles = names.collect();
                }
                None => self.record(leaf.path.here(), Severity::Warning, unknown_role()),
            }
            self.element = None;
        }
    }
}

/// Returns the error that the permission to bind a role cannot be derived.
fn unknown_role() -> TemplateError {
    let message =
        "the role depends on the custom resource, so the permission to `bind` it cannot be derived";
    let hint = "read one field whose schema lists the roles as an `enum`, or grant `bind` on them to Orkestra yourself";
    TemplateError {
        hint: Some(hint.to_owned()),
        ..problem(Code::UnknownRole, 0, message.to_owned())
    }
}
