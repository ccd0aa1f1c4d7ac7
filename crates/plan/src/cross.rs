//! Custom resources of other operators that templates read.

use std::collections::BTreeMap;

use super::{GroupKind, KatalogRef, Leaf, PlanPlace, ResourceType, generated_secret, inputs};
use orkestra_object::value::{Key, Path, PathStep};

/// Root of other operators' custom resources.
pub const CROSS: &str = "cross";
/// Name below `.cross.<as>` of whether such a resource exists.
pub const FOUND: &str = "found";
/// Name below `.cross.<as>` of the health of the resource's operator.
pub const HEALTH: &str = "health";
/// Name below `.cross.<as>` of the metrics of the resource's operator.
pub const METRICS: &str = "metrics";

/// One entry of `cross`.
#[derive(Debug)]
pub struct CrossPlan {
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
    /// The name below `.cross`.
    pub name: Key,
    /// The operator whose resource is read.
    pub target: CrossTarget,
    /// Selects the resource.
    pub selector: CrossSelectorPlan,
    /// Its namespace; `None` is the custom resource's own.
    pub namespace: Option<Leaf>,
    /// Patterns of the namespaces that the custom resource may choose; if empty it may choose any, if that is permitted.
    pub allowed: Box<[Box<str>]>,
    /// The paths that templates read of it.
    pub reads: Vec<Path>,
    /// True if templates read the health of its operator.
    pub reads_health: bool,
    /// True if templates read the metrics of its operator.
    pub reads_metrics: bool,
}

/// The Katalogs whose operators may read the custom resources of an operator through `cross`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossAccess {
    /// `crossAccess: false`: none.
    Nobody,
    /// Not declared: those in the namespace of its own Katalog, whose authors may change that Katalog, too.
    #[default]
    Namespace,
    /// `crossAccess: true`: all.
    Everybody,
}

impl CrossAccess {
    /// Returns the access that an entry declares.
    pub fn of(declared: Option<bool>) -> Self {
        match declared {
            Some(false) => Self::Nobody,
            None => Self::Namespace,
            Some(true) => Self::Everybody,
        }
    }

    /// True if an operator of the Katalog `reader` may read custom resources of an operator of the Katalog `owner`.
    pub fn permits(self, owner: &KatalogRef, reader: &KatalogRef) -> bool {
        match self {
            Self::Nobody => false,
            Self::Namespace => owner.namespace == reader.namespace,
            Self::Everybody => true,
        }
    }
}

/// A reference to an operator in full: `namespace/katalog/crd`. `None` for a bare name.
pub fn full_name(text: &str) -> Option<(KatalogRef, &str)> {
    let mut parts = text.split('/');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let (namespace, katalog, crd) = (part()?, part()?, part()?);
    let reference = KatalogRef::new(namespace.to_owned(), katalog.to_owned());
    parts.next().is_none().then_some((reference, crd))
}

/// The operator whose resource is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossTarget {
    /// An entry of the same Katalog, whose kind is known.
    Own(Box<str>, ResourceType),
    /// An entry of another Katalog: a bare name in the same namespace, or a name in full ([`full_name`]).
    Other(Box<str>),
    /// The operator whose definition has these labels.
    Labels(BTreeMap<Box<str>, Box<str>>),
}

impl CrossTarget {
    /// Returns why no resource of that kind is read. The compiler follows the values of Secrets if it knows the kind, which it
    /// does not for operators of other Katalogs: what they operate can be changed at any time.
    pub fn refusal(&self, kind: &GroupKind) -> Option<&'static str> {
        let is_known = match self {
            Self::Own(..) => true,
            Self::Other(_) | Self::Labels(_) => false,
        };
        let is_refused = !is_known && *kind == GroupKind::parse("Secret");
        is_refused.then_some("Secrets are read from operators of the same Katalog only")
    }
}

/// Selects a resource of a kind.
#[derive(Debug)]
pub enum CrossSelectorPlan {
    /// By name.
    Name(Leaf),
    /// The first that has these labels.
    Labels(Box<[(Key, Leaf)]>),
}

impl CrossPlan {
    /// Returns the templates that select the resource.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let Self {
            path: _,
            name: _,
            target: _,
            selector,
            namespace,
            allowed: _,
            reads: _,
            reads_health: _,
            reads_metrics: _,
        } = self;
        let (name, labels) = match selector {
            CrossSelectorPlan::Name(name) => (Some(name), None),
            CrossSelectorPlan::Labels(labels) => (None, Some(labels)),
        };
        let labels = labels.into_iter().flat_map(|labels| labels.iter());
        let labels = labels.map(|(_, value)| value);
        name.into_iter().chain(labels).chain(namespace)
    }

    /// True if the custom resource chooses the namespace: it is neither literal nor its own.
    pub fn is_chosen(&self) -> bool {
        let chosen = self.namespace.as_ref();
        chosen.is_some_and(|leaf| {
            !leaf.template.reads().is_empty() && !inputs::is_own(&[], None, leaf)
        })
    }

    /// True if a custom resource in the namespace `own` may read from `namespace`.
    pub fn permits(&self, own: Option<&str>, namespace: Option<&str>) -> bool {
        let is_free = !self.is_chosen() || self.allowed.is_empty() || namespace == own;
        is_free
            || namespace.is_some_and(|namespace| {
                let mut allowed = self.allowed.iter();
                allowed.any(|pattern| generated_secret::matches(pattern, namespace))
            })
    }

    /// Returns the paths that must be kept of resources of the kind, to select and to show one.
    pub fn kept_paths(&self) -> Vec<Path> {
        let mut paths = self.reads.clone();
        if let CrossSelectorPlan::Labels(labels) = &self.selector {
            paths.extend(labels.iter().map(|(key, _)| label_path(key)));
        }
        paths
    }
}

/// Returns the path of a label in an object.
pub fn label_path(key: &Key) -> Path {
    let steps = [Key::from("metadata"), Key::from("labels"), key.clone()];
    steps.map(PathStep::Field).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_read_depends_on_the_namespace_unless_it_is_declared() {
        let katalog = |namespace: &str| KatalogRef::new(namespace.to_owned(), "k".to_owned());
        let (own, other) = (katalog("own"), katalog("other"));
        for (declared, namespace, everybody) in [
            (None, true, false),
            (Some(true), true, true),
            (Some(false), false, false),
        ] {
            let access = CrossAccess::of(declared);
            assert_eq!(access.permits(&own, &own), namespace);
            assert_eq!(access.permits(&own, &other), everybody);
        }
    }

    #[test]
    fn a_full_name_has_three_parts() {
        let (katalog, crd) = full_name("shop/stores/database").unwrap();
        assert_eq!(
            (&*katalog.namespace, &*katalog.name, crd),
            ("shop", "stores", "database")
        );
        for text in [
            "database",
            "stores/database",
            "/stores/database",
            "a/b/c/d",
            "a//c",
            "a/b/",
        ] {
            assert_eq!(full_name(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_read_only_from_operators_whose_kind_the_compiler_knows() {
        let own = ResourceType {
            group: "".into(),
            version: "v1".into(),
            kind: "Secret".into(),
            plural: None,
            namespaced: Some(true),
        };
        let own = CrossTarget::Own("token".into(), own);
        let others = [
            CrossTarget::Other("token".into()),
            CrossTarget::Labels(BTreeMap::new()),
        ];
        let secret = GroupKind::parse("Secret");
        assert_eq!(own.refusal(&secret), None);
        for other in others {
            let why = "Secrets are read from operators of the same Katalog only";
            assert_eq!(other.refusal(&secret), Some(why), "{other:?}");
            for kind in ["ConfigMap", "Secret.water.example", "Pond.water.example"] {
                assert_eq!(other.refusal(&GroupKind::parse(kind)), None, "{kind}");
            }
        }
    }
}
