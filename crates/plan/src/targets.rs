//! The namespaces that custom resources may choose for their children.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_language::api::LabelOperator;
use orkestra_object::value::Node;

/// Determines the namespace of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The Katalog: a literal, or the custom resource's own namespace.
    #[default]
    Fixed,
    /// The custom resource: `allowedTargets` must permit it.
    Chosen,
    /// The custom resource, and the operator creates the namespace too: without permission it must be one created for this
    /// custom resource.
    Created,
}

/// The namespaces that custom resources may choose for their children (`allowedTargets`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetsPlan {
    /// Names, in which `*` stands for any text.
    pub names: Box<[Box<str>]>,
    /// Label selectors; a namespace needs to match one of them.
    pub selectors: Box<[LabelSelector]>,
}

/// A non-empty label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Labels with their values.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Further requirements; all must hold.
    pub requirements: Box<[LabelRequirementPlan]>,
}

/// A requirement of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirementPlan {
    /// The label key.
    pub key: Box<str>,
    /// The operator.
    pub operator: LabelOperator,
    /// The values; empty for `Exists` and `DoesNotExist`.
    pub values: Box<[Box<str>]>,
}

/// The text that stands for the namespaces that a custom resource created, where targets are recorded: no namespace has such a
/// name.
const CREATED: &str = "(created)";

/// The namespaces, in addition to that of the custom resource, in which it may have children of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildTargets {
    /// Names, in which `*` stands for any text.
    pub names: BTreeSet<Box<str>>,
    /// Whether they include the namespaces that the custom resource created.
    pub created: bool,
}

impl ChildTargets {
    /// Adds the targets of another revision.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.created |= other.created;
    }

    /// True if the namespace is a target; `is_created` is asked if only its creation permits it.
    pub fn permits(&self, namespace: &str, is_created: impl FnOnce() -> bool) -> bool {
        let mut names = self.names.iter();
        names.any(|pattern| super::generated_secret::matches(pattern, namespace))
            || (self.created && is_created())
    }

    /// Returns the texts by which they are recorded.
    pub fn texts(&self) -> Vec<String> {
        let created = self.created.then_some(CREATED);
        let names = self.names.iter().map(|name| &**name);
        names.chain(created).map(str::to_owned).collect()
    }

    /// Reads recorded texts.
    pub fn of_texts(texts: &[String]) -> Self {
        let names = texts.iter().filter(|text| *text != CREATED);
        Self {
            names: names.map(|text| text.as_str().into()).collect(),
            created: texts.iter().any(|text| text == CREATED),
        }
    }
}

impl TargetsPlan {
    /// True if nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.selectors.is_empty()
    }

    /// True if the name alone permits the namespace.
    pub fn permits_name(&self, namespace: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|pattern| super::generated_secret::matches(pattern, namespace))
    }

    /// True if a namespace with these labels, a map of text, is permitted.
    pub fn permits_labels(&self, labels: &Node) -> bool {
        self.selectors
            .iter()
            .any(|selector| selector.matches(labels))
    }
}

impl LabelSelector {
    /// True if these labels, a map of text, match.
    ///
    /// Source: Kubernetes, "Labels and Selectors": `NotIn` also selects objects without the label.
    pub fn matches(&self, labels: &Node) -> bool {
        let value = |key: &str| labels.get(key).and_then(Node::as_str);
        let equal = self
            .labels
            .iter()
            .all(|(key, wanted)| value(key) == Some(wanted));
        equal
            && self.requirements.iter().all(|one| {
                let found = value(&one.key);
                let is = |found: &str| one.values.iter().any(|value| **value == *found);
                let listed = found.is_some_and(is);
                match one.operator {
                    LabelOperator::In => listed,
                    LabelOperator::NotIn => !listed,
                    LabelOperator::Exists => found.is_some(),
                    LabelOperator::DoesNotExist => found.is_none(),
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Node {
        let pairs = pairs.iter();
        Node::Map(
            pairs
                .map(|(key, value)| ((*key).into(), Node::from(*value)))
                .collect(),
        )
    }

    #[test]
    fn a_selector_selects_what_kubernetes_would() {
        let requirement = |key: &str, operator, values: &[&str]| {
            let values = values.iter().map(|value| (*value).into()).collect();
            LabelRequirementPlan {
                key: key.into(),
                operator,
                values,
            }
        };
        let selector = LabelSelector {
            labels: BTreeMap::from([("team".into(), "a".into())]),
            requirements: Box::new([
                requirement("stage", LabelOperator::In, &["test", "dev"]),
                requirement("frozen", LabelOperator::DoesNotExist, &[]),
                requirement("kind", LabelOperator::NotIn, &["system"]),
                requirement("owner", LabelOperator::Exists, &[]),
            ]),
        };
        let all = [("owner", "x"), ("stage", "dev"), ("team", "a")];
        assert!(selector.matches(&labels(&all)));
        for missing in 0..all.len() {
            let mut some = all.to_vec();
            some.remove(missing);
            assert!(!selector.matches(&labels(&some)), "{some:?}");
        }
        for other in [
            ("frozen", "yes"),
            ("kind", "system"),
            ("stage", "live"),
            ("team", "b"),
        ] {
            let mut changed: BTreeMap<_, _> = all.into_iter().collect();
            changed.insert(other.0, other.1);
            let changed: Vec<_> = changed.into_iter().collect();
            assert!(!selector.matches(&labels(&changed)), "{changed:?}");
        }
        assert!(!selector.matches(&Node::Null));
    }

    #[test]
    fn targets_are_recorded_as_text_and_created_namespaces_are_asked_for_last() {
        let targets = ChildTargets {
            names: ["far".into(), "team-*".into()].into(),
            created: true,
        };
        assert_eq!(targets.texts(), ["far", "team-*", "(created)"]);
        assert_eq!(ChildTargets::of_texts(&targets.texts()), targets);
        assert!(targets.permits("team-a", || unreachable!()));
        assert!(targets.permits("own", || true) && !targets.permits("own", || false));
        let fixed = ChildTargets {
            created: false,
            ..targets
        };
        assert!(!fixed.permits("own", || true));
    }

    #[test]
    fn a_name_is_permitted_by_patterns_as_a_whole() {
        let targets = TargetsPlan {
            names: ["shared".into(), "team-*".into()].into(),
            selectors: Box::default(),
        };
        for permitted in ["shared", "team-a", "team-"] {
            assert!(targets.permits_name(permitted), "{permitted}");
        }
        for refused in ["shared-2", "my-team-a", "kube-system", ""] {
            assert!(!targets.permits_name(refused), "{refused}");
        }
    }
}
