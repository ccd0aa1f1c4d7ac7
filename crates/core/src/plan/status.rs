//! `status.fields`.

use super::{Coerce, CrdVersion, StatusField, StatusPlan, StatusType, conditions};
use crate::{
    api::{self, StatusSpec},
    diagnostics::Code,
    resources::scope::At,
    value::{Node, Path, Step},
};

/// Fields that Orkestra writes while it writes conditions.
const OURS: [&str; 2] = ["conditions", "observedGeneration"];

/// Compiles the block at `at`; `version` is what is known of the custom resource's definition.
pub(crate) fn compile(at: &At<'_>, spec: &StatusSpec, version: Option<&CrdVersion>) -> StatusPlan {
    let conditions = spec.conditions.unwrap_or(true);
    let at = at.field("fields");
    let mut fields: Vec<StatusField> = Vec::new();
    for (index, declared) in spec.fields.iter().enumerate() {
        let at = at.index(index);
        let Some(field) = field(&at, declared, conditions, version) else {
            continue;
        };
        let is_above = |a: &Path, b: &Path| a != b && b.starts_with(a);
        if let Some(other) = fields
            .iter()
            .find(|other| is_above(&other.path, &field.path) || is_above(&field.path, &other.path))
        {
            at.field("path").error(
                Code::StatusOverlap,
                format!(
                    "`{}` and `{}` cannot both be values: one lies below the other",
                    other.path, field.path
                ),
            );
        }
        fields.push(field);
    }
    StatusPlan {
        conditions,
        fields: fields.into(),
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
    let when = conditions::compile(&at.field("when"), &declared.when);
    let (path, mut value) = (path?, value?);
    let kind = match declared.type_ {
        Some(declared) => Some(coerce(declared)),
        None => match version.map(|version| version.status_type(&path)) {
            Some(StatusType::Takes(coerce)) => Some(coerce),
            Some(StatusType::Absent) => {
                at.field("path").warn(
                    Code::StatusUnknown,
                    format!("the definition has no `status.{path}`: the API server drops it"),
                );
                None
            }
            Some(StatusType::Open) | None => None,
        },
    };
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
        path,
        value,
        kind,
        when,
    })
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
