//! The template data of a pass: the custom resource, its children, and the data of the sources.

use jiff::Timestamp;

use super::{
    children::children_data,
    record::Observed,
    render::{Frame, RenderError, Setting},
    template_data::TemplateData,
};
use orkestra_object::value::Node;
use orkestra_plan::{Gate, OperatorPlan, roots::CHILDREN};
use orkestra_template::{Data, EvalBudget};

/// The data of a pass, with the frame in which it is rendered.
pub(crate) struct PassView<'a> {
    /// The shared context of the renderings.
    pub(crate) frame: Frame<'a>,
    observed: &'a Observed,
    children: Node,
    now: Timestamp,
}

impl<'a> PassView<'a> {
    /// Creates the view of a pass. `setting` collects the side results of conditions.
    pub(crate) fn of(
        plan: &OperatorPlan,
        (observed, sources): (&'a Observed, &'a TemplateData),
        setting: &'a Setting<'_>,
        now: Timestamp,
    ) -> Self {
        let frame = setting.frame(sources);
        Self {
            frame,
            observed,
            children: children_data(plan, observed, frame),
            now,
        }
    }

    /// Returns the roots for templates.
    pub(crate) fn data(&self) -> Data<'_> {
        let data = self.frame.sources.data(self.observed);
        data.with(CHILDREN, &self.children).at(self.now)
    }

    /// True if the gate is open.
    ///
    /// # Errors
    /// As [`Renderer::gate`](super::render::Renderer::gate).
    pub(crate) fn gate(&self, gate: &Gate) -> Result<bool, RenderError> {
        let (data, mut budget) = (self.data(), EvalBudget::default());
        self.frame.renderer(&data, &mut budget).gate(gate)
    }

    /// Returns the roots for templates, with `cr` in the place of the custom resource.
    pub(crate) fn data_of<'d>(&'d self, cr: &'d Node) -> Data<'d> {
        let data = self.frame.sources.data_of(cr);
        data.with(CHILDREN, &self.children).at(self.now)
    }
}
