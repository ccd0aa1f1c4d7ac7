//! What to do about fields that do not belong where they stand.

use crate::api::shape::{Field, ObjectShape, Shape};
use crate::diagnostics::{FieldPath, Segment, did_you_mean};

/// Longest list of fields that a hint names.
const FIELDS_NAMED: usize = 10;

/// Fields as Kubernetes' own manifests have them: a field of ours that tells where they are meant, and what to write.
const KUBERNETES: &[(&str, &str, &str)] = &[
    ("environment", "env", "write `env`"),
    (
        "httpGet",
        "periodSeconds",
        "write its `path` and `port` here",
    ),
    ("livenessProbe", "probes", "write `probes.liveness`"),
    (
        "metadata",
        "labels",
        "write `name`, `namespace`, `labels` and `annotations` here",
    ),
    ("readinessProbe", "probes", "write `probes.readiness`"),
    ("spec", "labels", "write its fields here"),
    ("startupProbe", "probes", "write `probes.startup`"),
    (
        "stringData",
        "data",
        "write `data`: the texts are encoded on the way",
    ),
    (
        "tcpSocket",
        "periodSeconds",
        "write `type: tcp`, and its `port` here",
    ),
    ("valueFrom", "secretKeyRef", "write what is in it here"),
];

/// A map that the walk is inside of.
pub(super) struct Around<'a> {
    /// Where it stands.
    pub(super) path: FieldPath,
    /// What it may hold.
    pub(super) object: &'a ObjectShape,
}

/// What is meant by the field `name`, which the last map of `around` does not have.
pub(super) fn unknown(name: &str, around: &[Around<'_>]) -> Option<String> {
    let (here, outer) = around.split_last()?;
    let fields = &here.object.fields;
    let foreign = KUBERNETES
        .iter()
        .find(|(theirs, beside, _)| *theirs == name && fields.contains_key(*beside));
    if let Some((_, _, hint)) = foreign {
        return Some((*hint).to_owned());
    }
    if let Some(hint) = below(name, here.object).or_else(|| beside(name, outer, &here.path)) {
        return Some(hint);
    }
    did_you_mean(name, fields.keys().map(String::as_str))
        .or_else(|| listed(here.object).map(|fields| format!("known are {fields}")))
}

/// The field belongs one level further in, into the only map there that has it.
fn below(name: &str, object: &ObjectShape) -> Option<String> {
    let mut having = object.fields.iter().filter(|(_, field)| {
        let inner = map(&field.shape).and_then(|map| map.fields.get(name));
        field.works() && inner.is_some_and(Field::works)
    });
    let (only, _) = having.next()?;
    having
        .next()
        .is_none()
        .then(|| format!("it belongs under `{only}`"))
}

/// The field belongs further out, beside a map that leads here.
fn beside(name: &str, outer: &[Around<'_>], here: &FieldPath) -> Option<String> {
    let owner = outer
        .iter()
        .rev()
        .find(|around| around.object.fields.get(name).is_some_and(Field::works))?;
    match here.segments().get(owner.path.segments().len())? {
        Segment::Field(inner) => Some(format!("it belongs further left, beside `{inner}`")),
        Segment::Index(_) => None,
    }
}

fn map(shape: &Shape) -> Option<&ObjectShape> {
    match shape {
        Shape::Object(object) => Some(object),
        Shape::OneOf(shapes) => shapes.iter().find_map(map),
        _ => None,
    }
}

/// The fields of a map, if they are few.
fn listed(object: &ObjectShape) -> Option<String> {
    let fields = object.fields.iter().filter(|(_, field)| field.works());
    let named: Vec<String> = fields.map(|(name, _)| format!("`{name}`")).collect();
    (!named.is_empty() && named.len() <= FIELDS_NAMED).then(|| named.join(", "))
}

/// What to write where `shape` is wanted and text, a number or a boolean stands.
pub(super) fn instead_of_scalar(shape: &Shape) -> Option<String> {
    match shape {
        Shape::Object(object) if object.rest.is_some() => Some("write `key: value`".to_owned()),
        Shape::Object(object) => listed(object).map(|fields| format!("its fields are {fields}")),
        Shape::List(_) => Some("begin each item with `- `".to_owned()),
        _ => None,
    }
}
