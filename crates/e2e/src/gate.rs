//! `when` and `or` of expectations: conditions on the custom resource and the time.

use jiff::Timestamp;

use orkestra_compiler::scope::{At, Problems};
use orkestra_compiler::{
    compile::conditions,
    scope::{Library, Symbols},
};
use orkestra_engine::reconcile::gate_effects::GateEffects;
use orkestra_engine::reconcile::render::{Frame, Renderer};
use orkestra_engine::reconcile::template_data::TemplateData;
use orkestra_language::api::E2eSpec;
use orkestra_language::diagnostics::Diagnostics;
use orkestra_object::value::Node;
use orkestra_plan::{Gate, GroupKind, ObjectKey};
use orkestra_template::{Data, EvalBudget};

/// Returns the compiled conditions of each expectation, in order, and their problems.
pub fn gates(spec: &E2eSpec) -> (Vec<Gate>, Diagnostics) {
    let problems = Problems::default();
    let library = Library::default();
    let at = At::root(&problems).field("spec");
    let symbols = Symbols::of_notes(&at, spec.notes.as_ref(), &library);
    let at = at.with(&symbols).field("expect");
    let gates = spec.expect.iter().enumerate();
    let gates = gates.map(|(index, expected)| {
        let gates = &expected.gates;
        conditions::gate(&at.index(index), &gates.when, &gates.or)
    });
    let gates = gates.collect();
    (gates, problems.into_inner())
}

/// Returns whether the conditions are true for a custom resource at a time. All fields of a custom resource that does not
/// exist are absent.
///
/// # Errors
/// The reason why an operand cannot be rendered or compared.
pub fn is_open(gate: &Gate, resource: &Node, now: Timestamp) -> Result<bool, String> {
    let (sources, effects) = (TemplateData::default(), GateEffects::default());
    let data = Data::of(resource).at(now);
    let nobody = ObjectKey {
        namespace: None,
        name: "".into(),
    };
    let owner = (GroupKind::parse(""), nobody);
    let open = Renderer {
        data: &data,
        budget: &mut EvalBudget::default(),
        frame: Frame {
            owner: (&owner.0, &owner.1),
            sources: &sources,
            effects: &effects,
        },
    }
    .gate(gate)
    .map_err(|error| error.to_string())?;
    match effects.doubts().first() {
        Some(doubt) => Err(format!("{}: {}", doubt.at, doubt.message)),
        None => Ok(open),
    }
}
