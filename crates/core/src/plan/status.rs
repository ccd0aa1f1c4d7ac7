//! `status.fields`.

use super::{
    Coerce, CrdVersion, Library, StatusField, StatusPlan, StatusType, conditions,
    library::{Content, Part},
    profiles::no_include_inside,
};
use crate::{
    api::{self, StatusSpec},
    diagnostics::{Code, Severity},
    resources::scope::At,
    template::TemplateError,
    value::{Node, Path, Step},
};

/// Fields that Orkestra writes while it writes conditions.
const OURS: [&str; 2] = ["conditions", "observedGeneration"];

/// Status fields that one document declares.
pub(crate) struct Declared<'a> {
    /// Where the list stands.
    pub(crate) at: At<'a>,
    /// The list.
    pub(crate) fields: &'a [api::StatusField],
    /// The import that it comes from.
    pub(crate) import: Option<usize>,
}

/// The list in the file that the block at `at` includes.
pub(crate) fn included<'a>(
    at: &At<'a>,
    spec: &'a StatusSpec,
    library: &'a Library,
) -> Option<Declared<'a>> {
    let document = library.open(&at.field("include"), Part::Status, spec.include.as_ref()?)?;
    let Content::Status(included) = &document.content else {
        return None;
    };
    let at = at.document(&document.origin).field("status").as_at(at);
    no_include_inside(&at, included.include.is_some());
    if included.conditions.is_some() {
        let message = "`conditions` is declared where the file is included, not in it";
        at.field("conditions").error(Code::NotSupportedYet, message);
    }
    Some(Declared {
        at: at.field("fields"),
        fields: &included.fields,
        import: None,
    })
}

/// Compiles all lists of an operator; `version` is what is known of the custom resource's definition.
pub(crate) fn compile(
    lists: &[Declared<'_>],
    conditions: bool,
    version: Option<&CrdVersion>,
) -> StatusPlan {
    let mut fields: Vec<StatusField> = Vec::new();
    for list in lists {
        for (index, declared) in list.fields.iter().enumerate() {
            let at = list.at.index(index);
            let Some(mut field) = field(&at, declared, conditions, version) else {
                continue;
            };
            field.import = list.import;
            against_others(&at.field("path"), &field, &fields);
            fields.push(field);
        }
    }
    StatusPlan {
        conditions,
        fields: fields.into(),
    }
}

/// Refuses a field that cannot stand beside those that were declared before.
fn against_others(at: &At<'_>, field: &StatusField, others: &[StatusField]) {
    let is_above = |a: &Path, b: &Path| a != b && b.starts_with(a);
    if let Some(other) = others
        .iter()
        .find(|other| is_above(&other.path, &field.path) || is_above(&field.path, &other.path))
    {
        at.error(
            Code::StatusOverlap,
            format!(
                "`{}` and `{}` cannot both be values: one lies below the other",
                other.path, field.path
            ),
        );
    }
    // Of one document the later one wins.
    let twice = |other: &&StatusField| other.path == field.path && other.import != field.import;
    if let Some(other) = others.iter().find(twice) {
        let message = format!("{} writes `{}` too", other.value.path, field.path);
        let hint = "choose another path: what a Motif writes cannot be replaced";
        at.error_hint(Code::SetTwice, message, hint);
    }
}

fn field(
    at: &At<'_>,
    declared: &api::StatusField,
    conditions: bool,
    version: Option<&CrdVersion>,
) -> Option<StatusField> {
    let path = path(&at.field("path"), &declared.path, conditions);
    let value = at.field("value").scalar_leaf(&declared.value);
    let gate = conditions::gate(at, &declared.when, &declared.or);
    let (path, mut value) = (path?, value?);
    let of_schema = version.and_then(|version| status_type(&at.field("path"), version, &path));
    let kind = declared.type_.map(coerce).or(of_schema);
    // A number that is written as one stays one.
    let own = if declared.value.as_str().is_some() {
        Coerce::Native
    } else {
        Coerce::Auto
    };
    value.coerce = kind.unwrap_or(own);
    if let Some(literal) = value.template.literal()
        && let Err(misfit) = value.coerce.apply(Node::from(literal))
    {
        at.field("value")
            .error(Code::WrongValue, misfit.to_string());
    }
    Some(StatusField {
        import: None,
        path,
        value,
        kind,
        gate,
    })
}

/// What the schema takes at `path`; a field that it lacks is reported, whatever its type is declared to be.
fn status_type(at: &At<'_>, version: &CrdVersion, path: &Path) -> Option<Coerce> {
    match version.status_type(path) {
        StatusType::Takes(coerce) => Some(coerce),
        StatusType::Open => None,
        StatusType::Absent => {
            let message = format!("the definition has no `status.{path}`: the API server drops it");
            let near = version.near_status(path);
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
        at.error(Code::NotATemplate, "a path is not a template");
        return None;
    }
    let (written, text) = (text, text.trim());
    let below = text.strip_prefix("status.").unwrap_or(text);
    if below.contains('/') {
        let hint = format!("write `{}`", below.trim_matches('/').replace('/', "."));
        at.error_hint(Code::BadPath, "a path has dots between its names", hint);
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
            "paths are relative to `status`: leave `status.` out",
        );
    }
    match path.steps().first() {
        None => {
            at.error(Code::BadPath, "the path is empty");
            None
        }
        Some(Step::Field(root)) if conditions && OURS.contains(&&**root) => {
            at.error_hint(
                Code::StatusReserved,
                format!("Orkestra writes `status.{root}` itself"),
                "choose another path, or declare `conditions: false`",
            );
            None
        }
        Some(_) => Some(path),
    }
}
