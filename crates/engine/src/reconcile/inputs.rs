//! `.inputs`: the values that the imports of a plan pass to their Motifs.

use super::{
    render::{Frame, RenderError, wanted},
    template_data::TemplateData,
};
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{ImportPlan, InputPlan, OperatorPlan};
use orkestra_template::{Data, EvalBudget};

/// The inputs of every import, evaluated once per pass.
pub(crate) struct Inputs<'s> {
    sources: &'s TemplateData,
    given: Vec<Result<Node, RenderError>>,
}

impl<'s> Inputs<'s> {
    /// Evaluates the inputs on `data`.
    pub(crate) fn of(plan: &OperatorPlan, data: &Data<'_>, frame: Frame<'s>) -> Self {
        let mut inputs = Self {
            sources: frame.sources,
            given: Vec::with_capacity(plan.imports.len()),
        };
        for import in &plan.imports {
            // Outer imports come first.
            let evaluated = inputs
                .data(data, import.outer)
                .and_then(|around| evaluate(import, data, &around, frame));
            inputs.given.push(evaluated);
        }
        inputs
    }

    fn data<'d>(&'d self, data: &Data<'d>, import: Option<usize>) -> Result<Data<'d>, RenderError> {
        match import.and_then(|import| self.given.get(import)) {
            None => Ok(data.clone()),
            Some(Ok(inputs)) => {
                let data = data.clone().with("inputs", inputs);
                Ok(self.sources.with_calls(data, import))
            }
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// Returns the data of templates: `data`, and inside Motifs the inputs in addition.
    pub(crate) fn around<'d>(&'d self, data: Data<'d>) -> TemplateRoots<'d> {
        let imports = (0..self.given.len()).map(|import| self.data(&data, Some(import)));
        TemplateRoots {
            imports: imports.collect(),
            own: data,
        }
    }
}

/// The data of templates.
pub(crate) struct TemplateRoots<'d> {
    /// For the Katalog itself.
    own: Data<'d>,
    /// For the Motif of each import.
    imports: Vec<Result<Data<'d>, RenderError>>,
}

impl<'d> TemplateRoots<'d> {
    /// Returns the data for children and status fields of `import`; none is the Katalog itself.
    ///
    /// # Errors
    /// The error of the first input that cannot be evaluated.
    pub(crate) fn of(&self, import: Option<usize>) -> Result<&Data<'d>, RenderError> {
        match import.and_then(|import| self.imports.get(import)) {
            None => Ok(&self.own),
            Some(data) => data.as_ref().map_err(RenderError::clone),
        }
    }
}

/// Evaluates the inputs of one import. Given values read the data `around` the import, defaults only the custom resource.
fn evaluate(
    import: &ImportPlan,
    data: &Data<'_>,
    around: &Data<'_>,
    frame: Frame<'_>,
) -> Result<Node, RenderError> {
    let mut budget = EvalBudget::default();
    let mut inputs = Vec::with_capacity(import.inputs.len());
    for InputPlan {
        name,
        given,
        default,
        coerce,
        is_intent: _,
        path,
    } in &import.inputs
    {
        let mut value = None;
        for (tree, data) in [(given, around), (default, data)] {
            let mut renderer = frame.renderer(data, &mut budget);
            if let (None, Some(tree)) = (&value, tree) {
                value = renderer.tree(tree)?;
            }
        }
        let value = value.filter(|value| *value != Node::Null);
        let Some(value) = value else { continue };
        let value = coerce.apply(value).map_err(|mismatch| RenderError {
            path: path.clone().into(),
            message: format!("the input `{name}` must return {}", wanted(&mismatch)),
            reason: super::reason::Reason::WrongType,
        })?;
        inputs.extend(value.map(|value| (Key::clone(name), value)));
    }
    Ok(Node::Map(inputs.into_iter().collect::<Map>()))
}
