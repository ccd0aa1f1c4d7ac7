//! Compiles the conversions between the versions of a kind.

mod declared;
mod loss;

pub use declared::recorded;

use std::{collections::BTreeMap, sync::Arc};

use crate::scope::At;
use orkestra_language::{
    api::{Conversion, ConversionPath, CrdEntry},
    diagnostics::Code,
};
use orkestra_object::value::{Key, Node, Path, PathStep};
use orkestra_plan::{
    Coerce, ConversionPlan, ConversionStep, GroupKind, ObjectTree, OperatorPlan, SecurityPlan,
    definitions::{CrdShape, CrdVersion, FieldType, Schemas},
    roots::CR_ROOTS,
};

/// Compiles the conversions that entries declare, one for each kind. `entry_at` returns the place of an entry, with the names
/// that its templates may use.
pub(crate) fn plans<'a>(
    entries: &BTreeMap<String, CrdEntry>,
    entry_at: impl Fn(&str) -> Option<At<'a>>,
    operators: &[OperatorPlan],
    schemas: &Schemas,
    security: &SecurityPlan,
) -> Box<[Arc<ConversionPlan>]> {
    let mut plans: BTreeMap<GroupKind, ConversionPlan> = BTreeMap::new();
    let mut participants = Vec::new();
    for operator in operators {
        let declared = (entries.get(&operator.name)).and_then(|entry| entry.conversion.as_ref());
        let Some((declared, at)) = declared.zip(entry_at(&operator.name)) else {
            continue;
        };
        let at = at.field("conversion");
        let kind = operator.resource.group_kind();
        if declared.participant == Some(true) {
            if !declared.paths.is_empty() {
                at.field("participant").error_hint(
                    Code::Exclusive,
                    "`participant: true` says that another entry declares the paths",
                    "leave out one of the two",
                );
            }
            participants.push((at, kind));
            continue;
        }
        if security.conversion == Some(false) {
            at.warn_hint(
                Code::NoEffect,
                "conversions are not served: `security.conversion.enabled` is `false`",
                "set it to `true`",
            );
        }
        let shape = schemas.kind(&kind);
        let of = (kind.clone(), operator.resource.plural.clone());
        let Some(plan) = of_entry(&at, declared, of, shape) else {
            continue;
        };
        if plans.contains_key(&kind) {
            at.error_hint(
                Code::SetTwice,
                format!("another entry declares the conversion of {kind}"),
                "declare all paths at one entry, and `participant: true` at the others",
            );
            continue;
        }
        plans.insert(kind, plan);
    }
    for (at, kind) in participants {
        if !plans.contains_key(&kind) {
            let message = format!("no entry declares the conversion of {kind}");
            at.field("participant").error(Code::NoEffect, message);
        }
    }
    plans.into_values().map(Arc::new).collect()
}

fn of_entry(
    at: &At<'_>,
    declared: &Conversion,
    (kind, plural): (GroupKind, Option<Key>),
    shape: Option<&CrdShape>,
) -> Option<ConversionPlan> {
    let Conversion {
        storage_version,
        paths,
        update_crd,
        participant: _,
        preserve,
    } = declared;
    let Some(storage) = storage_version.as_deref().map(str::trim) else {
        at.error_hint(
            Code::Missing,
            "`storageVersion` is missing",
            "name the version that is stored",
        );
        return None;
    };
    if paths.is_empty() {
        let hint = "declare a path for each direction, or `participant: true`";
        at.error_hint(Code::Empty, "there are no `paths`", hint);
        return None;
    }
    check_storage(&at.field("storageVersion"), storage, shape);
    let steps = steps(&at.field("paths"), paths, shape, preserve.unwrap_or(false));
    let versions = shape.into_iter().flat_map(|shape| &shape.versions);
    let schemas = versions
        .filter(|version| *version.schema != Node::Null)
        .map(|version| (version.name.as_str().into(), version.schema.clone()));
    let plan = ConversionPlan {
        kind,
        plural: plural?,
        storage: storage.into(),
        update_crd: update_crd.unwrap_or(true),
        preserve: preserve.unwrap_or(false),
        declared: declared::declared(at, declared, &steps),
        steps: steps.into(),
        schemas: schemas.collect(),
    };
    check_routes(&at.field("paths"), &plan, shape);
    Some(plan)
}

/// Compiles the declared paths at `at`, sorted by source and result.
fn steps(
    at: &At<'_>,
    paths: &[ConversionPath],
    shape: Option<&CrdShape>,
    preserve: bool,
) -> Vec<ConversionStep> {
    let mut steps: Vec<ConversionStep> = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let at = at.index(index);
        let Some(step) = step(&at, path, shape) else {
            continue;
        };
        let same = |other: &&ConversionStep| other.from == step.from && other.to == step.to;
        if steps.iter().any(|other| same(&other)) {
            let message = format!(
                "the path from {} to {} is declared twice",
                step.from, step.to
            );
            at.error(Code::SetTwice, message);
            continue;
        }
        if let Some(shape) = shape {
            loss::check(&at, &step, shape, preserve);
        }
        steps.push(step);
    }
    steps.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    steps
}

fn check_storage(at: &At<'_>, storage: &str, shape: Option<&CrdShape>) {
    let Some(shape) = shape else { return };
    let stored = shape.versions.iter().find(|version| version.storage);
    if shape.version(storage).is_none() {
        at.error(Code::UnknownWord, unknown_version(storage, shape));
    } else if let Some(stored) = stored.filter(|stored| stored.name != storage) {
        let message = format!("the definition stores `{}`", stored.name);
        let hint = "name that version, or change `storage` in the definition";
        at.warn_hint(Code::KindMismatch, message, hint);
    }
}

fn unknown_version(version: &str, shape: &CrdShape) -> String {
    let known = shape.versions.iter();
    let known: Vec<String> = known.map(|known| format!("`{}`", known.name)).collect();
    format!(
        "the definition has no version `{version}`, only {}",
        known.join(", ")
    )
}

/// Checks that each version can be converted to each other one.
fn check_routes(at: &At<'_>, plan: &ConversionPlan, shape: Option<&CrdShape>) {
    let declared = plan.steps.iter().flat_map(|step| [&*step.from, &*step.to]);
    let served = shape.into_iter().flat_map(|shape| &shape.versions);
    let served = served
        .filter(|version| version.served)
        .map(|version| version.name.as_str());
    let mut versions: Vec<&str> = declared.chain(served).chain([&*plan.storage]).collect();
    versions.sort_unstable();
    versions.dedup();
    for from in &versions {
        for to in &versions {
            let is_storage = [from, to].contains(&&&*plan.storage);
            if is_storage && plan.route(from, to).is_none() {
                let message = format!("there is no path from {from} to {to}");
                let hint = "each version needs a path to the storage version, and one back";
                at.error_hint(Code::Missing, message, hint);
            }
        }
    }
}

fn step(
    at: &At<'_>,
    declared: &ConversionPath,
    shape: Option<&CrdShape>,
) -> Option<ConversionStep> {
    let ConversionPath { from, to, spec } = declared;
    for (field, version) in [("from", from), ("to", to)] {
        let place = at.field(field);
        if version.trim().is_empty() || version.contains('/') {
            let hint = "write the version alone, such as `v2`";
            place.error_hint(Code::WrongValue, "this is not a version", hint);
            return None;
        }
        if let Some(shape) = shape.filter(|shape| shape.version(version.trim()).is_none()) {
            place.error(Code::UnknownWord, unknown_version(version, shape));
            return None;
        }
    }
    if from.trim() == to.trim() {
        at.field("to")
            .error(Code::Exclusive, "`from` and `to` are the same version");
        return None;
    }
    let target = shape.and_then(|shape| shape.version(to.trim()));
    let at_spec = at.field("spec");
    let mut fields: Vec<(Path, ObjectTree)> = Vec::new();
    for (key, value) in spec {
        let Some((path, tree)) = field(&at_spec, (key, value), target) else {
            continue;
        };
        let mut others = fields.iter();
        if others.any(|(other, _)| other.overlaps(&path)) {
            let message = format!("`{path}` is set twice");
            at_spec.key(key).error(Code::SetTwice, message);
            continue;
        }
        fields.push((path, tree));
    }
    Some(ConversionStep {
        from: from.trim().into(),
        to: to.trim().into(),
        fields: fields.into(),
    })
}

fn field(
    at: &At<'_>,
    (key, value): (&str, &Node),
    target: Option<&CrdVersion>,
) -> Option<(Path, ObjectTree)> {
    let place = at.key(key);
    let below = match Path::parse(key.trim()) {
        Ok(path) => path,
        Err(why) => {
            place.bad_path(key, key.trim(), &why);
            return None;
        }
    };
    if below.is_empty()
        || below
            .steps()
            .iter()
            .any(|step| matches!(step, PathStep::Index(_)))
    {
        let hint = "convert the whole list, with a template that returns it";
        place.error_hint(
            Code::BadPath,
            "a path of a conversion must consist of field names",
            hint,
        );
        return None;
    }
    let known = target.map_or(FieldType::Open, |version| {
        version.field_type("spec", &below)
    });
    if known == FieldType::Absent {
        let message = format!("the version has no `spec.{below}`");
        match target.and_then(|version| version.near("spec", &below)) {
            Some(near) => {
                place.error_hint(
                    Code::SpecUnknown,
                    message,
                    format!("did you mean `{near}`?"),
                );
            }
            None => place.error(Code::SpecUnknown, message),
        }
        return None;
    }
    let mut tree = at.field(key).manifest(value)?;
    if let ObjectTree::Leaf(leaf) = &mut tree {
        leaf.coerce = match known {
            FieldType::Takes(coerce) => coerce,
            _ => Coerce::Native,
        };
    }
    check_reads(&at.field(key), &tree);
    let spec = PathStep::Field(Key::from("spec"));
    let path = std::iter::once(spec).chain(below.steps().iter().cloned());
    Some((path.collect(), tree))
}

/// Reports reads of anything but the source.
fn check_reads(at: &At<'_>, tree: &ObjectTree) {
    tree.visit(&mut |leaf| {
        for path in leaf.template.reads() {
            let Some(PathStep::Field(root)) = path.steps().first() else {
                continue;
            };
            if !CR_ROOTS.contains(&&**root) {
                let message = format!("there is no `.{root}` here");
                let hint = "a conversion reads `.metadata`, `.spec` and `.status` of the source";
                at.error_hint(Code::UnknownData, message, hint);
            }
        }
        if leaf.template.reads_clock() || leaf.template.is_random() {
            let message = "a conversion must have the same result each time";
            at.error_hint(
                Code::UnknownData,
                message,
                "do not use the current time or random values",
            );
        }
    });
}
