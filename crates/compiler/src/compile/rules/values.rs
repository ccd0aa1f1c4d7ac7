//! The fields that rules set, and the types of their values.

use std::collections::BTreeMap;

use super::{below, relative};
use crate::scope::At;
use orkestra_language::{
    api::{
        gate::ValueType,
        rules::{Normalize, NormalizeType},
        scalar::{Scalar, Text},
    },
    diagnostics::Code,
};
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{
    Coerce, CompletionTarget, Leaf, Moments, Normalized,
    definitions::{CrdVersion, FieldType},
    rules::{ROOTS, root},
    target_of,
};

/// Compiles the field at `at`, as named by a rule of `mutation`.
pub(crate) fn target(
    at: &At<'_>,
    text: &str,
    version: Option<&CrdVersion>,
) -> Option<CompletionTarget> {
    if text.contains("{{") {
        return at
            .leaf(text, Coerce::OptionalText)
            .map(CompletionTarget::Rendered);
    }
    let (written, text) = (text, text.trim());
    if text.trim_matches('.').is_empty() {
        let hint = "name one, such as `spec.replicas`";
        at.error_hint(
            Code::Empty,
            "the rule does not name the field that it sets",
            hint,
        );
        return None;
    }
    let path = match Path::parse(text) {
        Ok(path) => path,
        Err(why) => {
            at.bad_path(written, text, &why);
            return None;
        }
    };
    if let Err((message, hint)) = target_of(&path) {
        match hint {
            Some(hint) => at.error_hint(Code::NotSettable, message, hint),
            None => at.error(Code::NotSettable, message),
        }
        return None;
    }
    is_known(at, &path, version);
    Some(CompletionTarget::Path(path))
}

/// Returns the type of a rule's value: the declared one, else that of the definition.
pub(crate) fn coerce(
    declared: Option<ValueType>,
    target: Option<&CompletionTarget>,
    version: Option<&CrdVersion>,
) -> Coerce {
    match declared {
        Some(ValueType::String) => Coerce::Text,
        Some(ValueType::Int) => Coerce::Int,
        Some(ValueType::Float) => Coerce::Float,
        Some(ValueType::Bool) => Coerce::Bool,
        None => match target {
            Some(CompletionTarget::Path(path)) => of_schema(path, version),
            _ => Coerce::Native,
        },
    }
}

fn of_schema(path: &Path, version: Option<&CrdVersion>) -> Coerce {
    if !path.starts_with(&root(ROOTS[0])) {
        return Coerce::Text;
    }
    let known = version.map(|version| version.field_type("spec", &relative(path)));
    match known {
        Some(FieldType::Takes(coerce)) => coerce,
        _ => Coerce::Native,
    }
}

/// Compiles the value at `at`; a literal must fit the type.
pub(crate) fn value(at: &At<'_>, scalar: &Scalar, coerce: Coerce) -> Option<Leaf> {
    let mut leaf = at.scalar_leaf(scalar)?;
    // A number or a boolean that is not written as text keeps its type.
    let plain = coerce == Coerce::Native && scalar.as_str().is_none();
    leaf.coerce = if plain { Coerce::Auto } else { coerce };
    fits(at, &leaf);
    Some(leaf)
}

fn fits(at: &At<'_>, leaf: &Leaf) {
    if let Some(literal) = leaf.template.literal()
        && let Err(mismatch) = leaf.coerce.apply(Node::from(literal))
    {
        at.error(Code::WrongValue, mismatch.to_string());
    }
}

/// True if the definition has a field at `path`; reports it otherwise.
fn is_known(at: &At<'_>, path: &Path, version: Option<&CrdVersion>) -> bool {
    let Some(version) = version.filter(|_| path.starts_with(&root(ROOTS[0]))) else {
        return true;
    };
    let path = relative(path);
    if version.field_type("spec", &path) != FieldType::Absent {
        return true;
    }
    let message = format!("the definition has no `spec.{path}`: no resource can store it");
    match version.near("spec", &path) {
        Some(near) => at.warn_hint(
            Code::SpecUnknown,
            message,
            format!("did you mean `{near}`?"),
        ),
        None => at.warn(Code::SpecUnknown, message),
    }
    false
}

/// The declared `normalize` of the entry and of its operatorBox.
pub(crate) struct Forms {
    /// The fields, sorted.
    pub(crate) fields: Box<[Normalized]>,
    /// True if they are written to the custom resource.
    pub(crate) persist: bool,
    /// True if templates read the changes.
    pub(crate) audit: bool,
}

/// Compiles the `normalize` of the entry and of its operatorBox.
pub(crate) fn normalize<'a>(
    declared: impl Iterator<Item = (At<'a>, &'a Normalize)>,
    version: Option<&CrdVersion>,
) -> Forms {
    let mut fields: BTreeMap<Path, Normalized> = BTreeMap::new();
    let (mut persist, mut audit) = (true, false);
    for (at, normalize) in declared {
        persist &= normalize.persist.unwrap_or(true);
        audit |= normalize.audit.unwrap_or(false);
        let types = &normalize.types;
        for unused in types
            .keys()
            .filter(|key| !normalize.spec.contains_key(*key))
        {
            let message = format!("`spec` normalizes no `{unused}`: this has no effect");
            at.field("types").key(unused).warn(Code::NoEffect, message);
        }
        let at = at.field("spec");
        for (key, text) in &normalize.spec {
            let cast = types.get(key).copied().map(coerce_to);
            let Some(one) = field(&at, key, (text, cast), version) else {
                continue;
            };
            let others = fields.keys();
            let mut others =
                others.filter(|known| known.starts_with(&one.path) || one.path.starts_with(known));
            if let Some(other) = others.next() {
                let message = if *other == one.path {
                    format!("`{other}` is normalized already")
                } else {
                    let paths = format!("`{other}` and `{}`", one.path);
                    format!("{paths} cannot both be normalized: one is nested in the other")
                };
                at.key(key).error(Code::SetTwice, message);
                continue;
            }
            fields.insert(one.path.clone(), one);
        }
    }
    Forms {
        fields: fields.into_values().collect(),
        persist,
        audit,
    }
}

fn coerce_to(type_: NormalizeType) -> Coerce {
    match type_ {
        NormalizeType::Int | NormalizeType::Integer => Coerce::Int,
        NormalizeType::Float | NormalizeType::Number => Coerce::Float,
        NormalizeType::Bool | NormalizeType::Boolean => Coerce::Bool,
        NormalizeType::String => Coerce::Text,
    }
}

fn field(
    at: &At<'_>,
    key: &str,
    (text, cast): (&Text, Option<Coerce>),
    version: Option<&CrdVersion>,
) -> Option<Normalized> {
    let key_at = at.key(key);
    let value = at.field(key).leaf(text, Coerce::Native);
    let trimmed = key.trim();
    if trimmed.contains("{{") {
        key_at.error(Code::NotATemplate, "a path cannot be a template");
        return None;
    }
    let path = match Path::parse(trimmed) {
        Ok(path) => path,
        Err(why) => {
            let message = format!("`{trimmed}` is not a valid path: {why}");
            key_at.error(Code::BadPath, message);
            return None;
        }
    };
    if path.is_empty() {
        key_at.error(Code::BadPath, "the path is empty");
        return None;
    }
    if path
        .steps()
        .iter()
        .any(|step| matches!(step, PathStep::Index(_)))
    {
        let hint = "normalize the whole list, with a template that gives it";
        let message = "items of lists cannot be normalized one by one";
        key_at.error_hint(Code::BadPath, message, hint);
        return None;
    }
    let path = below("spec", &without_root(&path, version));
    let is_known = is_known(&key_at, &path, version);
    let mut value = value?;
    value.coerce = cast.unwrap_or_else(|| of_schema(&path, version));
    fits(&at.field(key), &value);
    Some(Normalized {
        path,
        value,
        is_known,
        moments: Moments::default(),
    })
}

/// Paths are relative to `spec`; a leading `spec` is removed, unless the spec has such a field.
fn without_root(path: &Path, version: Option<&CrdVersion>) -> Path {
    let says_root = path.steps().len() > 1 && path.starts_with(&root(ROOTS[0]));
    let has_field = version
        .is_some_and(|version| matches!(version.field_type("spec", path), FieldType::Takes(_)));
    if says_root && !has_field {
        relative(path)
    } else {
        path.clone()
    }
}
