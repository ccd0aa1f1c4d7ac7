//! Checks literal quantities: the API server responds to an invalid quantity as to an internal error.
//!
//! Source: Kubernetes, "Resource units in Kubernetes"; k8s.io/apimachinery, `resource.ParseQuantity`.

use super::{Typing, problem};
use crate::resources::amount::explain;
use orkestra_language::diagnostics::{Code, Severity};
use orkestra_object::value::Node;
use orkestra_plan::PlaceRef;
use orkestra_template::TemplateError;

impl Typing<'_, '_> {
    /// Reports a text that is not a quantity.
    pub(crate) fn amount(&self, place: PlaceRef<'_>, node: &Node, offset: usize) {
        if let Some((message, hint)) = explain(node) {
            let found = problem(Code::WrongValue, offset, message);
            self.record(place, Severity::Error, TemplateError { hint, ..found });
        }
    }
}
