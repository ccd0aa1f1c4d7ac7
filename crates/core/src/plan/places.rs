//! The namespaces that an operator works in, where the Katalog alone fixes them.
//!
//! ```text
//!  allowedNamespaces ─► the custom resources ─┐
//!  no `namespace`, or the resource's own ─────┴─► Only(those)   a Role and a watch for each namespace
//!  a literal ───────────────────────────────────► Only(that)
//!  allowedTargets, names without `*` ───────────► Only(those, and the resource's own)
//!  a namespace that the operator creates, and
//!  anything else ───────────────────────────────► All           a ClusterRole and one watch
//! ```
//!
//! Permissions are derived and watches are started from the same answer, so that what is granted is enough for what is read.

use std::collections::BTreeSet;

use super::{
    ChildPlan, CopyPlan, GroupKind, Leaf, Mode, OperatorPlan, Reach, ResourceType, Token, checks,
    references, targets,
};

/// More namespaces than this are taken for all: each is a watch of its own.
const MOST: usize = 20;

/// In which namespaces objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// In any, or in none: cluster-scoped objects.
    All,
    /// In these.
    Only(BTreeSet<Box<str>>),
}

impl Default for Places {
    /// None at all.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl Places {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(mut some), Self::Only(others)) => {
                some.extend(others);
                Self::Only(some)
            }
            _ => Self::All,
        }
    }

    /// A scope for each of them; one without a namespace is all.
    pub fn scopes(&self) -> Vec<Option<&str>> {
        match self {
            Self::All => vec![None],
            Self::Only(some) => some.iter().map(|one| Some(&**one)).collect(),
        }
    }

    /// The namespace, where it is one of several that are known; otherwise none, which stands for all.
    pub fn scope_of<'a>(&self, namespace: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Only(some) => namespace.filter(|one| some.contains(*one)),
        }
    }

    fn of_one(namespace: &str) -> Self {
        Self::Only([namespace.into()].into())
    }

    fn bounded(self) -> Self {
        match self {
            Self::Only(some) if some.len() > MOST => Self::All,
            places => places,
        }
    }
}

impl FromIterator<Self> for Places {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), Self::and)
    }
}

impl OperatorPlan {
    /// The namespaces of the custom resources.
    pub fn own_places(&self) -> Places {
        let watched = &self.watched;
        if watched.allowed.is_empty() || self.resource.namespaced == Some(false) {
            return Places::All;
        }
        Places::Only(&watched.allowed - &watched.restricted).bounded()
    }

    /// The namespaces of the children of a kind. One of which nobody knows yet whether it is namespaced is taken for
    /// `namespaced`.
    pub fn child_places(&self, kind: &GroupKind, namespaced: bool) -> Places {
        let of_kind = self.entries();
        let of_kind = of_kind.filter(|child| child.kind.group_kind() == *kind);
        let places = of_kind.map(|child| self.places_of(child, namespaced));
        places.collect::<Places>().bounded()
    }

    /// The namespaces of the children that something is added to from objects of a relation, and so of these objects.
    pub fn related_places(&self, relation: crate::enrich::Relation) -> Places {
        let read = self.additions_read();
        let read = read.filter(|(addition, _)| addition.source.relation() == Some(relation));
        let places = read.map(|(_, kind)| self.child_places(kind, false));
        places.collect::<Places>().bounded()
    }

    /// The namespaces of the children that an autoscaler may scale.
    pub fn scaled_places(&self) -> Places {
        let scaled = self.children.iter().filter(|child| may_be_scaled(child));
        let places = scaled.map(|child| self.places_of(child, true));
        places.collect::<Places>().bounded()
    }

    /// Kinds of objects that are read by name.
    pub fn kinds_read_by_name(&self) -> BTreeSet<GroupKind> {
        let copies = self
            .children
            .iter()
            .filter_map(|child| child.copy.as_deref());
        let used = ["Secret", "ConfigMap"].map(GroupKind::parse);
        copies.map(|copy| copy.kind.clone()).chain(used).collect()
    }

    /// The namespaces of objects of a kind that are read by name: what is copied, what pods roll with, tokens of calls.
    pub fn read_places(&self, kind: &GroupKind) -> Places {
        let mut places = Vec::new();
        for child in &self.children {
            if let Some(copy) = child.copy.as_deref().filter(|copy| copy.kind == *kind) {
                places.push(self.copied_places(child, copy));
            }
            if child.rolls && references::kinds(&child.body).contains(kind) {
                places.push(self.places_of(child, true));
            }
        }
        if *kind == GroupKind::parse("Secret") {
            for call in &self.calls {
                if let Some(Token::Secret { namespace, .. }) = &call.token {
                    let own = || self.own_places();
                    places.push(namespace.as_deref().map_or_else(own, Places::of_one));
                }
            }
        }
        places.into_iter().collect::<Places>().bounded()
    }

    /// All declared children, those of `onDelete` too.
    fn entries(&self) -> impl Iterator<Item = &ChildPlan> {
        let ending = self.ending.iter().flat_map(|ending| ending.entries());
        self.children.iter().chain(ending)
    }

    fn places_of(&self, child: &ChildPlan, namespaced: bool) -> Places {
        let is_namespaced = |kind: &ResourceType| kind.namespaced.unwrap_or(namespaced);
        match &child.namespace {
            _ if child.kind.namespaced == Some(false) => Places::All,
            None if is_namespaced(&child.kind) => self.own_places(),
            None => Places::All,
            Some(leaf) => match child.reach {
                Reach::Fixed => self.fixed(child.import, leaf),
                Reach::Chosen => self.chosen(),
                Reach::Created => Places::All,
            },
        }
    }

    fn copied_places(&self, child: &ChildPlan, copy: &CopyPlan) -> Places {
        match &copy.namespace {
            None => self.own_places(),
            Some(leaf) => self.fixed(child.import, leaf),
        }
    }

    /// The namespaces that a leaf gives which depends on nothing but the Katalog and the custom resource's own.
    fn fixed(&self, import: Option<usize>, leaf: &Leaf) -> Places {
        if targets::is_own(&self.imports, import, leaf) {
            return self.own_places();
        }
        match checks::known_text(&self.imports, import, leaf) {
            Some(text) if text.is_empty() => self.own_places(),
            // A Role cannot be granted in a namespace that is not there yet.
            Some(text) if !self.makes_namespace(&text) => Places::of_one(&text),
            _ => Places::All,
        }
    }

    /// Whether one of the children is the namespace of that name.
    fn makes_namespace(&self, name: &str) -> bool {
        let kind = GroupKind::parse("Namespace");
        let mut namespaces = self.children.iter();
        namespaces.any(|child| {
            child.kind.group_kind() == kind
                && checks::known_text(&self.imports, child.import, &child.name).as_deref()
                    == Some(name)
        })
    }

    /// The namespaces that custom resources may choose.
    fn chosen(&self) -> Places {
        let targets = &self.targets;
        let is_open = |name: &str| name.contains('*');
        let are_known = !targets.is_empty()
            && targets.selectors.is_empty()
            && !targets.names.iter().any(|name| is_open(name));
        if !are_known {
            return Places::All;
        }
        let names = targets.names.iter().cloned().collect();
        self.own_places().and(Places::Only(names))
    }
}

/// Whether the runtime looks for an autoscaler of the child: where somebody else sets `replicas`.
pub(super) fn may_be_scaled(child: &ChildPlan) -> bool {
    &*child.kind.group == "apps"
        && child.mode == Mode::Reconciled
        && child.body.has(&["spec", "replicas"])
}
