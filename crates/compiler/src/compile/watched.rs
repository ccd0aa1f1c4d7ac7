//! The custom resources that an operator reconciles, and the metadata that it sets on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::scope::At;
use orkestra_language::{
    api::{CrdEntry, KatalogSpec, apply_set, names, scalar::Text},
    diagnostics::Code,
};
use orkestra_plan::{
    ChildPlan, Coerce, Leaf, MetadataKey, NameRule, ResourceType, SYSTEM_NAMESPACES, Watched, kinds,
};

/// Compiles the custom resources of the entry at `at`.
pub(crate) fn plan(at: &At<'_>, entry: &CrdEntry, resource: Option<&ResourceType>) -> Watched {
    let built_in = resource.is_some_and(|kind| kinds::built_in(&kind.group_kind()).is_some());
    let restricted = namespaces(at, "restrictedNamespaces", &entry.restricted_namespaces);
    let mut allowed = namespaces(at, "allowedNamespaces", &entry.allowed_namespaces);
    if let Some(pinned) = &entry.namespace {
        let place = at.field("namespace");
        check_namespace(&place, pinned);
        if !allowed.is_empty() && !allowed.contains(&**pinned) {
            place.error_hint(
                Code::Exclusive,
                format!("`{pinned}` is not one of `allowedNamespaces`"),
                "remove one of the two",
            );
        }
        allowed = BTreeSet::from([pinned.as_str().into()]);
    }
    if !allowed.is_empty() && allowed.is_subset(&restricted) {
        at.field("restrictedNamespaces").error_hint(
            Code::Exclusive,
            "every allowed namespace is also restricted",
            "remove one of them",
        );
    }
    let is_system = |namespace: &str| SYSTEM_NAMESPACES.contains(&namespace);
    if built_in && !allowed.is_empty() && allowed.iter().all(|namespace| is_system(namespace)) {
        let message = "objects of built-in kinds are never operated in the namespaces of Kubernetes and Orkestra";
        at.field("allowedNamespaces").warn(Code::NoEffect, message);
    }
    for (key, value) in &entry.label_selector {
        let place = at.field("labelSelector");
        if let Err(why) = names::check_label_key(key) {
            place.key(key).bad_name(key, why, names::check_label_key);
        }
        if let Err(why) = names::check_label_value(value) {
            place
                .field(key)
                .bad_name(value, why, names::check_label_value);
        }
    }
    let pairs = |map: &BTreeMap<String, String>| {
        let pairs = map.iter();
        pairs
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect()
    };
    Watched {
        allowed,
        restricted,
        labels: pairs(&entry.label_selector),
        fields: pairs(&entry.field_selector),
        built_in,
    }
}

pub(crate) fn namespaces(at: &At<'_>, field: &str, declared: &[String]) -> BTreeSet<Box<str>> {
    let at = at.field(field);
    for (index, namespace) in declared.iter().enumerate() {
        check_namespace(&at.index(index), namespace);
    }
    declared.iter().map(|name| name.as_str().into()).collect()
}

fn check_namespace(at: &At<'_>, name: &str) {
    let check = NameRule::Label1123.as_check();
    if let Err(why) = check(name) {
        at.bad_name(name, why, check);
    }
}

/// Compiles the labels and annotations that every custom resource gets.
pub(crate) fn metadata(at: &At<'_>, entry: &CrdEntry) -> Vec<(MetadataKey, Leaf)> {
    let (labels, annotations) = (at.field("labels"), at.field("annotations"));
    labels.labels(&entry.labels);
    annotations.annotations(&entry.annotations);
    let of = |at: &At<'_>, declared: &BTreeMap<String, Text>, key: fn(Box<str>) -> MetadataKey| {
        let leaf = |(name, value): (&String, &Text)| {
            let leaf = at.field(name).leaf(value, Coerce::Text)?;
            Some((key(name.as_str().into()), leaf))
        };
        declared.iter().filter_map(leaf).collect::<Vec<_>>()
    };
    let mut all = of(&labels, &entry.labels, MetadataKey::Label);
    all.extend(of(
        &annotations,
        &entry.annotations,
        MetadataKey::Annotation,
    ));
    all
}

/// Returns the label and the annotations of a parent of an `ApplySet`, if the entry asks for them. The value of the label is computed
/// in each pass, since it depends on the resource's name.
pub(crate) fn apply_set(
    at: &At<'_>,
    entry: &CrdEntry,
    children: &[ChildPlan],
) -> Vec<(MetadataKey, Leaf)> {
    if entry.apply_set != Some(true) {
        return Vec::new();
    }
    let at = at.field("applySet");
    let kinds = children
        .iter()
        .map(|child| child.kind.group_kind().to_string());
    let kinds: BTreeSet<String> = kinds.collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    let all = [
        (
            MetadataKey::Label(apply_set::LABEL_ID.into()),
            String::new(),
        ),
        (
            MetadataKey::Annotation(apply_set::ANNOTATION_TOOLING.into()),
            apply_set::TOOLING.to_owned(),
        ),
        (
            MetadataKey::Annotation(apply_set::ANNOTATION_CONTAINS.into()),
            kinds.join(","),
        ),
    ];
    let leaf = |(key, text): (MetadataKey, String)| {
        let leaf = at.leaf(&Text::from(text), Coerce::Text)?;
        Some((key, leaf))
    };
    all.into_iter().filter_map(leaf).collect()
}

/// Returns whether custom resources get our finalizer, and their other finalizers: the operatorBox's list applies, else the
/// entry's, else the Katalog's.
pub(crate) fn finalizers(
    at: &At<'_>,
    entry: &CrdEntry,
    spec: &KatalogSpec,
) -> (bool, Box<[Box<str>]>) {
    let inner = entry.operator_box.as_ref();
    let inner = inner.and_then(|inner| inner.finalizers.as_ref());
    let (place, declared) = match (inner, &entry.finalizers, &spec.finalizers) {
        (Some(list), ..) => (at.field("operatorBox").field("finalizers"), list),
        (None, Some(list), _) => (at.field("finalizers"), list),
        (None, None, Some(list)) => (at.katalog().field("spec").field("finalizers"), list),
        (None, None, None) => return (true, Box::default()),
    };
    let mut others: Vec<Box<str>> = Vec::new();
    for (index, name) in declared.iter().enumerate() {
        if name == names::FINALIZER || others.iter().any(|known| **known == **name) {
            continue;
        }
        let named = name
            .split_once('/')
            .is_some_and(|(domain, rest)| !domain.is_empty() && !rest.is_empty());
        if !named || names::check_label_key(name).is_err() {
            place.index(index).error_hint(
                Code::Finalizers,
                format!("`{name}` is not a valid finalizer name"),
                "write a domain that you own and a name: `example.org/backup`",
            );
            continue;
        }
        others.push(name.as_str().into());
    }
    (!declared.is_empty(), others.into())
}
