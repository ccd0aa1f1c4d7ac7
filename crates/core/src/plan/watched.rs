//! The custom resources that an operator reconciles, and the metadata that it sets on them.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChildPlan, Coerce, Leaf, NameRule, ResourceType, kinds, rbac};
use crate::{
    api::{CrdEntry, KatalogSpec, apply_set, names, scalar::Text},
    diagnostics::Code,
    resources::scope::At,
    value::{Node, Path},
};

/// The namespaces of Kubernetes and of Orkestra itself: objects of built-in kinds in them are not operated.
///
/// Source: Kubernetes, "Namespaces", initial namespaces; `default` belongs to users.
pub const SYSTEM_NAMESPACES: [&str; 5] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    rbac::NAMESPACE,
    rbac::CLAIMS_NAMESPACE,
];

/// The custom resources of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The permitted namespaces; empty for all.
    pub allowed: BTreeSet<Box<str>>,
    /// Namespaces in which nothing is reconciled and no child is created.
    pub restricted: BTreeSet<Box<str>>,
    /// Required labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Required fields, for the field selector of the API server.
    pub fields: BTreeMap<Box<str>, Box<str>>,
    /// True for objects of a built-in kind: those in [`SYSTEM_NAMESPACES`] are ignored, and so are children of operators.
    pub built_in: bool,
}

impl Watched {
    /// True if an object in that namespace is reconciled; a cluster-scoped one has no namespace.
    pub fn admits(&self, namespace: Option<&str>, name: &str) -> bool {
        // A cluster-scoped object with such a name is the namespace.
        if self.built_in && SYSTEM_NAMESPACES.contains(&namespace.unwrap_or(name)) {
            return false;
        }
        let Some(namespace) = namespace else {
            return true;
        };
        !self.restricted.contains(namespace)
            && (self.allowed.is_empty() || self.allowed.contains(namespace))
    }

    /// True if the selectors select the object.
    pub fn selects(&self, object: &Node) -> bool {
        let labels = object.get("metadata").and_then(|meta| meta.get("labels"));
        let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
        let field = |path: &str| {
            let found = Path::parse(path).ok().and_then(|path| object.at(&path));
            found.map(|node| node.to_text().into_owned())
        };
        self.labels
            .iter()
            .all(|(key, value)| label(key) == Some(&**value))
            && self
                .fields
                .iter()
                .all(|(path, value)| field(path).unwrap_or_default() == **value)
    }

    /// Returns the label selector for the API server; `None` selects all.
    pub fn label_selector(&self) -> Option<String> {
        selector(&self.labels)
    }

    /// Returns the field selector for the API server; `None` selects all.
    pub fn field_selector(&self) -> Option<String> {
        selector(&self.fields)
    }

    /// True if an existing custom resource can stop matching the selectors.
    pub fn can_be_left(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

fn selector(pairs: &BTreeMap<Box<str>, Box<str>>) -> Option<String> {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// Compiles the custom resources of the entry at `at`.
pub(super) fn compile(at: &At<'_>, entry: &CrdEntry, resource: Option<&ResourceType>) -> Watched {
    let built_in = resource.is_some_and(|kind| kinds::built_in(&kind.group_kind()).is_some());
    let restricted = namespaces(at, "restrictedNamespaces", &entry.restricted_namespaces);
    let mut allowed = namespaces(at, "allowedNamespaces", &entry.allowed_namespaces);
    if let Some(pinned) = &entry.namespace {
        let place = at.field("namespace");
        check_namespace(&place, pinned);
        if !allowed.is_empty() && !allowed.contains(&**pinned) {
            place.error_hint(
                Code::Exclusive,
                format!("`{pinned}` is none of `allowedNamespaces`"),
                "leave one of the two out",
            );
        }
        allowed = BTreeSet::from([pinned.as_str().into()]);
    }
    if !allowed.is_empty() && allowed.is_subset(&restricted) {
        at.field("restrictedNamespaces").error_hint(
            Code::Exclusive,
            "every namespace that is allowed is restricted too",
            "take out one of them",
        );
    }
    let is_system = |namespace: &str| SYSTEM_NAMESPACES.contains(&namespace);
    if built_in && !allowed.is_empty() && allowed.iter().all(|namespace| is_system(namespace)) {
        let message =
            "objects of built-in kinds are left alone in the namespaces of Kubernetes and Orkestra";
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

pub(super) fn namespaces(at: &At<'_>, field: &str, declared: &[String]) -> BTreeSet<Box<str>> {
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

/// A label or an annotation that an operator sets on its custom resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataKey {
    /// The key of a label.
    Label(Box<str>),
    /// The key of an annotation.
    Annotation(Box<str>),
}

impl MetadataKey {
    /// Returns the key.
    pub fn key(&self) -> &str {
        match self {
            Self::Label(key) | Self::Annotation(key) => key,
        }
    }

    /// Returns the metadata field that contains it.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Label(_) => "labels",
            Self::Annotation(_) => "annotations",
        }
    }

    /// Returns its path in an object.
    pub(crate) fn path(&self) -> Path {
        Path::of_fields(["metadata", self.field(), self.key()])
    }
}

/// Compiles the labels and annotations that every custom resource gets.
pub(super) fn metadata(at: &At<'_>, entry: &CrdEntry) -> Vec<(MetadataKey, Leaf)> {
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
pub(super) fn apply_set(
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
pub(super) fn finalizers(
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
                format!("`{name}` is no name of a finalizer"),
                "write a domain of yours and a word: `example.org/backup`",
            );
            continue;
        }
        others.push(name.as_str().into());
    }
    (!declared.is_empty(), others.into())
}
