//! Fields that a conversion loses.

use crate::scope::At;
use orkestra_language::{
    diagnostics::Code,
    schema::{NestedSchema, Schema},
};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{ConversionStep, definitions::CrdShape};

/// The most fields of a path that are reported.
const MOST_REPORTED: usize = 8;
/// The deepest fields that are compared.
const DEEPEST: usize = 12;

/// Reports fields of the source that `step` loses, unless they are kept, and required fields of the result that nothing sets.
/// `at` is the path of the conversion.
pub(crate) fn check(at: &At<'_>, step: &ConversionStep, shape: &CrdShape, preserve: bool) {
    let spec = |version: &str| {
        let schema = &shape.version(version)?.schema;
        match Schema::of_objects(schema, None).field("spec") {
            NestedSchema::Schema(spec) => Some(spec),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
        }
    };
    let (Some(source), Some(target)) = (spec(&step.from), spec(&step.to)) else {
        return;
    };
    let mut lost = Vec::new();
    let comparison = Comparison { step, target };
    comparison.lost(source, &root(), true, &mut lost);
    for (path, is_required) in lost.iter().take(MOST_REPORTED) {
        let (from, to) = (&step.from, &step.to);
        let message =
            format!("`{path}` of {from} is lost: {to} does not have it, and no template reads it");
        let hint = "carry it with a template, or keep it with `preserve: true`";
        match (is_required, preserve) {
            (_, true) => {}
            (true, false) => {
                let message = format!("{message}; it is required in {from}");
                at.error_hint(Code::ConversionLoses, message, hint);
            }
            (false, false) => at.warn_hint(Code::ConversionLoses, message, hint),
        }
    }
    for name in target.required() {
        let path = below(&root(), name);
        let is_set = step
            .fields
            .iter()
            .any(|(field, _)| field.starts_with(&path));
        if !is_set && matches!(source.field(name), NestedSchema::Nowhere) {
            let message = format!("`{path}` is required in {}, and nothing sets it", step.to);
            let hint = format!("add `{name}` with a template");
            at.field("spec")
                .error_hint(Code::ConversionLoses, message, hint);
        }
    }
}

fn root() -> Path {
    Path::of_fields(["spec"])
}

fn below(path: &Path, name: &str) -> Path {
    let mut path = path.clone();
    path.push_field(Key::from(name));
    path
}

struct Comparison<'s> {
    step: &'s ConversionStep,
    target: Schema<'s>,
}

impl<'s> Comparison<'s> {
    /// Adds the fields at or below `source` that are lost, and whether each is required.
    fn lost(&self, source: Schema<'s>, at: &Path, is_required: bool, lost: &mut Vec<(Path, bool)>) {
        if at.steps().len() > DEEPEST {
            return;
        }
        let required: Vec<&str> = source.required().collect();
        for name in source.fields() {
            let path = below(at, name);
            let is_required = is_required && required.contains(&name);
            if self.is_read(&path) {
                continue;
            }
            let rest: Vec<PathStep> = path.steps().iter().skip(1).cloned().collect();
            let is_there = !matches!(self.target.at(&rest), NestedSchema::Nowhere);
            let is_replaced = self
                .step
                .fields
                .iter()
                .any(|(field, _)| path.starts_with(field));
            if !is_there || is_replaced {
                lost.push((path, is_required));
            } else if let NestedSchema::Schema(schema) = source.field(name) {
                self.lost(schema, &path, is_required, lost);
            }
        }
    }

    /// True if a template reads the field, a part of it, or all around it.
    fn is_read(&self, path: &Path) -> bool {
        let mut is_read = false;
        for (_, tree) in &self.step.fields {
            tree.visit(&mut |leaf| {
                let mut reads = leaf.template.reads().iter();
                is_read |= reads.any(|read| read.overlaps(path));
            });
        }
        is_read
    }
}
