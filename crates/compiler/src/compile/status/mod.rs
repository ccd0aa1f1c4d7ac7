//! `status.fields`, and user-defined conditions.

pub(crate) mod never;
mod own;

use super::conditions;
use crate::scope::{At, Library, ReferenceKind, library::Content, profiles::no_include_inside};
use orkestra_language::{
    api::{self, StatusConditions, StatusSpec},
    diagnostics::{Code, Severity},
};
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{
    Coerce, StatusFieldPlan, StatusPlan,
    definitions::{CrdVersion, FieldType},
};
use orkestra_template::TemplateError;

/// Fields that Orkestra writes while conditions are enabled.
const OURS: [&str; 2] = ["conditions", "observedGeneration"];

/// Status fields that one document declares.
pub(crate) struct DeclaredFields<'a> {
    /// The path of the list.
    pub(crate) at: At<'a>,
    /// The list.
    pub(crate) fields: &'a [api::StatusField],
    /// The import that declares them.
    pub(crate) import: Option<usize>,
}

/// Returns the list in the file that the block at `at` includes.
pub(crate) fn included<'a>(
    at: &At<'a>,
    spec: &'a StatusSpec,
    library: &'a Library,
) -> Option<DeclaredFields<'a>> {
    let document = library.open(
        &at.field("include"),
        ReferenceKind::Status,
        spec.include.as_ref()?,
    )?;
    let Content::Status(included) = &document.content else {
        return None;
    };
    let at = at.document(&document.origin).field("status").as_at(at);
    no_include_inside(&at, included.include.is_some());
    for (name, is_there) in [
        ("conditions", included.conditions.is_some()),
        ("readyWhen", !included.ready_when.is_empty()),
    ] {
        if is_there {
            let message = format!(
                "an included file cannot declare `{name}`: declare it where the file is included"
            );
            at.field(name).error(Code::NotSupportedYet, message);
        }
    }
    Some(DeclaredFields {
        at: at.field("fields"),
        fields: &included.fields,
        import: None,
    })
}

/// Compiles all lists of an operator; `version` is the known version of the custom resource's definition.
pub(crate) fn plan(
    at: &At<'_>,
    declared: Option<&StatusSpec>,
    lists: &[DeclaredFields<'_>],
    version: Option<&CrdVersion>,
) -> StatusPlan {
    let (conditions, own) = match declared.and_then(|declared| declared.conditions.as_ref()) {
        None => (true, Box::default()),
        Some(StatusConditions::Automatic(automatic)) => (*automatic, Box::default()),
        Some(StatusConditions::Own(own)) => (true, own::conditions(&at.field("conditions"), own)),
    };
    let ready_when = declared.map_or(&[][..], |declared| &declared.ready_when);
    let ready_when = conditions::all(&at.field("readyWhen"), ready_when);
    if !conditions && !ready_when.is_empty() {
        let message =
            "`readyWhen` has no effect: with `conditions: false` there is no condition `Ready`";
        at.field("readyWhen").warn(Code::NoEffect, message);
    }
    let mut fields: Vec<StatusFieldPlan> = Vec::new();
    for list in lists {
        let first = fields.len();
        for (index, declared) in list.fields.iter().enumerate() {
            let at = list.at.index(index);
            let Some(mut field) = field(&at, declared, conditions, version) else {
                continue;
            };
            field.import = list.import;
            against_others(&at.field("path"), &field, &fields);
            against_its_own(&at.field("path"), &field, &fields[first..]);
            fields.push(field);
        }
    }
    StatusPlan {
        conditions,
        own,
        ready_when,
        fields: fields.into(),
    }
}

/// Refuses a field that conflicts with earlier ones.
fn against_others(at: &At<'_>, field: &StatusFieldPlan, others: &[StatusFieldPlan]) {
    let is_above = |a: &Path, b: &Path| a != b && b.starts_with(a);
    if let Some(other) = others
        .iter()
        .find(|other| is_above(&other.path, &field.path) || is_above(&field.path, &other.path))
    {
        at.error(
            Code::StatusOverlap,
            format!(
                "`{}` and `{}` cannot both be values: one is nested in the other",
                other.path, field.path
            ),
        );
    }
    // Within one document the later one applies.
    let twice = |other: &&StatusFieldPlan| other.path == field.path && other.import != field.import;
    if let Some(other) = others.iter().find(twice) {
        let message = format!("{} writes `{}` too", other.value.path, field.path);
        let hint = "choose another path: a field that a Motif writes cannot be replaced";
        at.error_hint(Code::SetTwice, message, hint);
    }
}

/// Warns about a field that always replaces one of the same list.
fn against_its_own(at: &At<'_>, field: &StatusFieldPlan, others: &[StatusFieldPlan]) {
    let same = |other: &&StatusFieldPlan| other.path == field.path && field.gate.is_empty();
    if let Some(other) = others.iter().find(same) {
        let message = format!(
            "`{}` replaces the value that `{}` writes: the last entry for a path takes effect",
            field.path, other.value.path
        );
        let hint = "remove one of the two, or add a `when` to this one";
        at.warn_hint(Code::SetTwice, message, hint);
    }
}

fn field(
    at: &At<'_>,
    declared: &api::StatusField,
    conditions: bool,
    version: Option<&CrdVersion>,
) -> Option<StatusFieldPlan> {
    let path = path(&at.field("path"), &declared.path, conditions);
    let value = at.field("value").scalar_leaf(&declared.value);
    let gate = conditions::gate(at, &declared.when, &declared.or);
    let (path, mut value) = (path?, value?);
    let of_schema = version.and_then(|version| status_type(&at.field("path"), version, &path));
    let kind = declared.type_.map(coerce).or(of_schema);
    // A number that is not written as text keeps its type.
    let own = if declared.value.as_str().is_some() {
        Coerce::Native
    } else {
        Coerce::Auto
    };
    value.coerce = kind.unwrap_or(own);
    if let Some(literal) = value.template.literal()
        && let Err(mismatch) = value.coerce.apply(Node::from(literal))
    {
        at.field("value")
            .error(Code::WrongValue, mismatch.to_string());
    }
    Some(StatusFieldPlan {
        import: None,
        path,
        value,
        kind,
        clear: clear(at, declared),
        gate,
    })
}

/// True if a field is cleared when its gate is closed.
fn clear(at: &At<'_>, declared: &api::StatusField) -> bool {
    let clear = declared.clear_on_false.unwrap_or(false);
    if clear && declared.when.is_empty() && declared.or.is_empty() {
        let message = "without `when` this has no effect";
        at.field("clearOnFalse").warn(Code::NoEffect, message);
    }
    clear
}

/// Returns the type in the schema at `path`; an unknown field is reported, whatever its declared type.
fn status_type(at: &At<'_>, version: &CrdVersion, path: &Path) -> Option<Coerce> {
    match version.field_type("status", path) {
        FieldType::Takes(coerce) => Some(coerce),
        FieldType::Open => None,
        FieldType::Absent => {
            let message = format!("the definition has no `status.{path}`: the API server drops it");
            let near = version.near("status", path);
            at.report_in_text(
                Severity::Warning,
                TemplateError {
                    code: Code::StatusUnknown,
                    offset: 0,
                    len: 0,
                    message,
                    hint: near.map(|near| format!("did you mean `{near}`?")),
                },
            );
            None
        }
    }
}

fn coerce(declared: api::StatusType) -> Coerce {
    match declared {
        api::StatusType::String => Coerce::Text,
        api::StatusType::Int => Coerce::Int,
        api::StatusType::Float => Coerce::Float,
        api::StatusType::Bool => Coerce::Bool,
        api::StatusType::Auto => Coerce::Auto,
    }
}

fn path(at: &At<'_>, text: &str, conditions: bool) -> Option<Path> {
    if text.contains("{{") {
        at.error(Code::NotATemplate, "a path cannot be a template");
        return None;
    }
    let (written, text) = (text, text.trim());
    let below = text.strip_prefix("status.").unwrap_or(text);
    if below.contains('/') {
        let hint = format!("write `{}`", below.trim_matches('/').replace('/', "."));
        at.error_hint(Code::BadPath, "expected names separated by dots", hint);
        return None;
    }
    let path = match Path::parse(below) {
        Ok(path) => path,
        Err(why) => {
            at.bad_path(written, below, &why);
            return None;
        }
    };
    if text.starts_with("status.") {
        at.warn(
            Code::StatusPrefix,
            "paths are relative to `status`: omit `status.`",
        );
    }
    match path.steps().first() {
        None => {
            at.error(Code::BadPath, "the path is empty");
            None
        }
        Some(PathStep::Field(root)) if conditions && OURS.contains(&&**root) => {
            // Earlier documents declare fields that are written anyway.
            at.warn_hint(
                Code::StatusReserved,
                format!("Orkestra writes `status.{root}` itself: this field has no effect"),
                "remove it, choose another path, or declare `conditions: false`",
            );
            None
        }
        Some(_) => Some(path),
    }
}
