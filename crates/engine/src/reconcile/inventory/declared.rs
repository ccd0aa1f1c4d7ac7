//! The kinds, marks and namespaces that accepted revisions declare: the marks of custom resources, and the places of children.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_language::api::OperatedKind;
use orkestra_plan::{
    ChildTargets, GroupKind, MetadataKey, ObjectNamespaces, OperatorPlan, ResourceType,
};

/// The declarations of an operator's accepted revisions: inventories are checked against them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredKinds {
    /// Kinds of children.
    pub kinds: BTreeSet<GroupKind>,
    /// Labels and annotations of custom resources.
    pub labels: BTreeSet<MetadataKey>,
    /// Finalizers of others on custom resources.
    pub finalizers: BTreeSet<Box<str>>,
    /// The namespaces of the custom resources.
    pub places: ObjectNamespaces,
    /// The namespaces of children, by kind; children of other kinds may be in any.
    pub child_places: BTreeMap<GroupKind, BTreeSet<Box<str>>>,
    /// The namespaces of children outside that of their custom resource, by kind.
    pub targets: BTreeMap<GroupKind, ChildTargets>,
    /// True if the targets of earlier revisions are unknown: any namespace may be one.
    pub any_target: bool,
}

impl DeclaredKinds {
    /// Returns the declarations of one revision.
    pub fn of(plan: &OperatorPlan) -> Self {
        let kinds: BTreeSet<GroupKind> = plan.kinds().map(ResourceType::group_kind).collect();
        let fixed = kinds
            .iter()
            .filter_map(|kind| match plan.child_places(kind, true) {
                ObjectNamespaces::All => None,
                ObjectNamespaces::Only(some) => Some((kind.clone(), some)),
            });
        let targets = kinds
            .iter()
            .map(|kind| (kind.clone(), plan.child_targets(kind)));
        Self {
            child_places: fixed.collect(),
            targets: targets
                .filter(|(_, targets)| *targets != ChildTargets::default())
                .collect(),
            any_target: false,
            kinds,
            labels: plan.labels.iter().map(|(key, _)| key.clone()).collect(),
            finalizers: plan.other_finalizers.iter().cloned().collect(),
            places: plan.own_places(),
        }
    }

    /// Returns the namespaces of the children of a kind.
    pub fn places_of(&self, kind: &GroupKind) -> ObjectNamespaces {
        let some = self.child_places.get(kind).cloned();
        some.map_or(ObjectNamespaces::All, ObjectNamespaces::Only)
    }

    /// True if a custom resource in the namespace `own` may have a child of `kind`, or of any kind, in `namespace`. A
    /// cluster-scoped one has no namespace. `is_created` is asked if only the creation of the namespace permits it.
    ///
    /// Every client that may create objects in a namespace may give them the marks of a child of any custom resource.
    pub fn permits_child(
        &self,
        own: Option<&str>,
        kind: Option<&GroupKind>,
        namespace: Option<&str>,
        is_created: impl Fn(&str) -> bool,
    ) -> bool {
        // Only administrators create cluster-scoped objects.
        let Some(namespace) = namespace else {
            return true;
        };
        let permits = |targets: &ChildTargets| targets.permits(namespace, || is_created(namespace));
        self.any_target
            || own == Some(namespace)
            || match kind {
                Some(kind) => self.targets.get(kind).is_some_and(permits),
                None => self.targets.values().any(permits),
            }
    }

    /// Reads the declarations that the status of a Katalog has recorded for an operated kind.
    pub fn recorded(kind: &OperatedKind) -> Self {
        let texts = |texts: &[String]| -> BTreeSet<Box<str>> {
            texts.iter().map(|text| (&**text).into()).collect()
        };
        let kinds = kind.children.iter().flatten();
        let fixed = kind.child_namespaces.iter();
        Self {
            kinds: kinds.map(|kind| GroupKind::parse(kind)).collect(),
            labels: {
                let annotations = texts(&kind.annotations).into_iter();
                let annotations = annotations.map(MetadataKey::Annotation);
                let labels = texts(&kind.labels).into_iter().map(MetadataKey::Label);
                labels.chain(annotations).collect()
            },
            finalizers: texts(&kind.finalizers),
            places: (kind.namespaces.as_deref()).map_or(ObjectNamespaces::All, |some| {
                ObjectNamespaces::Only(texts(some))
            }),
            child_places: fixed
                .map(|(kind, some)| (GroupKind::parse(kind), texts(some)))
                .collect(),
            targets: {
                let targets = kind.child_targets.iter().flatten();
                let targets = targets
                    .map(|(kind, texts)| (GroupKind::parse(kind), ChildTargets::of_texts(texts)));
                targets.collect()
            },
            any_target: kind.child_targets.is_none(),
        }
    }

    /// Records the declarations in the status of a Katalog.
    pub fn record(&self, kind: &mut OperatedKind) {
        let texts = |texts: &BTreeSet<Box<str>>| texts.iter().map(ToString::to_string).collect();
        kind.children = Some(self.kinds.iter().map(ToString::to_string).collect());
        let in_field = |field: &str| {
            let of_field = self.labels.iter().filter(|key| key.field() == field);
            of_field.map(|key| key.key().to_owned()).collect()
        };
        kind.labels = in_field("labels");
        kind.annotations = in_field("annotations");
        kind.finalizers = texts(&self.finalizers);
        kind.namespaces = match &self.places {
            ObjectNamespaces::All => None,
            ObjectNamespaces::Only(some) => Some(texts(some)),
        };
        let fixed = self.child_places.iter();
        kind.child_namespaces = fixed
            .map(|(kind, some)| (kind.to_string(), texts(some)))
            .collect();
        let targets = self.targets.iter();
        let targets = targets.map(|(kind, targets)| (kind.to_string(), targets.texts()));
        kind.child_targets = (!self.any_target).then(|| targets.collect());
    }

    /// Adds the declarations of another revision.
    pub fn extend(&mut self, other: Self) {
        for kind in &other.kinds {
            let places = other.places_of(kind);
            let places = if self.kinds.contains(kind) {
                places.and(self.places_of(kind))
            } else {
                places
            };
            match places {
                ObjectNamespaces::All => drop(self.child_places.remove(kind)),
                ObjectNamespaces::Only(some) => drop(self.child_places.insert(kind.clone(), some)),
            }
        }
        self.places = std::mem::take(&mut self.places).and(other.places);
        for (kind, targets) in other.targets {
            self.targets.entry(kind).or_default().extend(targets);
        }
        self.any_target |= other.any_target;
        self.kinds.extend(other.kinds);
        self.labels.extend(other.labels);
        self.finalizers.extend(other.finalizers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_grow_with_revisions_and_one_that_is_open_opens_them() {
        let kind = GroupKind::parse("ConfigMap");
        let only = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        let revision = |names: &[&str]| DeclaredKinds {
            kinds: [kind.clone()].into(),
            places: ObjectNamespaces::Only(only(names)),
            child_places: [(kind.clone(), only(names))].into(),
            ..DeclaredKinds::default()
        };
        let mut declared = DeclaredKinds::default();
        declared.extend(revision(&["a"]));
        assert_eq!(declared, revision(&["a"]));
        declared.extend(revision(&["b"]));
        assert_eq!(declared, revision(&["a", "b"]));
        let mut operated = OperatedKind::default();
        declared.record(&mut operated);
        assert_eq!(DeclaredKinds::recorded(&operated), declared);
        // A record without namespaces is of an earlier release, whose operators could work in all namespaces.
        operated.namespaces = None;
        operated.child_namespaces.clear();
        declared.extend(DeclaredKinds::recorded(&operated));
        assert_eq!(
            (&declared.places, declared.places_of(&kind)),
            (&ObjectNamespaces::All, ObjectNamespaces::All)
        );
        declared.extend(revision(&["a"]));
        assert_eq!(declared.places_of(&kind), ObjectNamespaces::All);
    }

    #[test]
    fn a_child_may_be_where_some_accepted_revision_permits_it() {
        let (map, secret) = (GroupKind::parse("ConfigMap"), GroupKind::parse("Secret"));
        let revision = |kind: &GroupKind, names: &[&str], created| {
            let names = names.iter().map(|name| (*name).into()).collect();
            DeclaredKinds {
                targets: [(kind.clone(), ChildTargets { names, created })].into(),
                ..DeclaredKinds::default()
            }
        };
        let mut declared = revision(&map, &["far"], false);
        declared.extend(revision(&map, &["team-*"], false));
        declared.extend(revision(&secret, &[], true));
        let mut operated = OperatedKind::default();
        declared.record(&mut operated);
        assert_eq!(DeclaredKinds::recorded(&operated), declared);
        for (kind, namespace, permitted) in [
            (Some(&map), None, true),
            (Some(&map), Some("own"), true),
            (Some(&map), Some("far"), true),
            (Some(&map), Some("team-a"), true),
            (Some(&map), Some("made"), false),
            (Some(&map), Some("other"), false),
            (Some(&secret), Some("made"), true),
            (Some(&secret), Some("far"), false),
            (None, Some("far"), true),
            (None, Some("made"), true),
            (None, Some("other"), false),
        ] {
            let is_created = |namespace: &str| namespace == "made";
            let permits = |declared: &DeclaredKinds| {
                declared.permits_child(Some("own"), kind, namespace, is_created)
            };
            assert_eq!(permits(&declared), permitted, "{kind:?} {namespace:?}");
            // A record without targets is of an earlier release, which permitted all namespaces.
            let mut unknown = declared.clone();
            unknown.extend(DeclaredKinds::recorded(&OperatedKind::default()));
            assert!(permits(&unknown), "{kind:?} {namespace:?}");
        }
    }
}
