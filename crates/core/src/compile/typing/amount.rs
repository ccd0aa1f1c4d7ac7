//! Checks literal quantities: the API server responds to an invalid quantity as to an internal error.
//!
//! Source: Kubernetes, "Resource units in Kubernetes"; k8s.io/apimachinery, `resource.ParseQuantity`.

use super::{Typing, problem};
use crate::{
    diagnostics::{Code, Severity},
    plan::PlaceRef,
    resources::amount::explain,
    template::TemplateError,
    value::Node,
};

impl Typing<'_, '_> {
    /// Reports a text that is not a quantity.
    pub(super) fn amount(&self, place: PlaceRef<'_>, node: &Node, offset: usize) {
        if let Some((message, hint)) = explain(node) {
            let found = problem(Code::WrongValue, offset, message);
            self.record(place, Severity::Error, TemplateError { hint, ..found });
        }
    }
}
