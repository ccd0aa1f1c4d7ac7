//! The namespaces that an operator works in, if the Katalog alone determines them.
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
//! Permissions and watches are derived from the same result, so that the permissions always cover the watches.

use std::collections::BTreeSet;

pub use orkestra_object::ObjectNamespaces;

use super::{
    ChildPlan, ChildTargets, CopyPlan, GroupKind, Leaf, OperatorPlan, Reach, ResourceType,
    TokenPlan, inputs, references,
};

impl OperatorPlan {
    /// Returns the namespaces of the custom resources.
    pub fn own_places(&self) -> ObjectNamespaces {
        let watched = &self.watched;
        if watched.allowed.is_empty() || self.resource.namespaced == Some(false) {
            return ObjectNamespaces::All;
        }
        ObjectNamespaces::Only(&watched.allowed - &watched.restricted).bounded()
    }

    /// Returns the namespaces of the children of a kind. `namespaced` applies if the scope of the kind is unknown.
    pub fn child_places(&self, kind: &GroupKind, namespaced: bool) -> ObjectNamespaces {
        let of_kind = self.entries();
        let of_kind = of_kind.filter(|child| child.kind.group_kind() == *kind);
        let places = of_kind.map(|child| self.places_of(child, namespaced));
        places.collect::<ObjectNamespaces>().bounded()
    }

    /// Returns the namespaces, in addition to that of the custom resource, in which it may have children of a kind.
    pub fn child_targets(&self, kind: &GroupKind) -> ChildTargets {
        let mut targets = ChildTargets::default();
        for child in self.entries() {
            if child.kind.group_kind() == *kind {
                self.add_targets(child, &mut targets);
            }
        }
        targets
    }

    fn add_targets(&self, child: &ChildPlan, targets: &mut ChildTargets) {
        let Some(leaf) = &child.namespace else { return };
        let chosen = &self.targets;
        let is_open = match child.reach {
            Reach::Fixed if inputs::is_own(&self.imports, child.import, leaf) => false,
            Reach::Fixed => match inputs::known_text(&self.imports, child.import, leaf) {
                Some(text) => {
                    targets
                        .names
                        .extend((!text.is_empty()).then(|| text.into()));
                    false
                }
                None => true,
            },
            Reach::Chosen | Reach::Created => {
                targets.names.extend(chosen.names.iter().cloned());
                targets.created |= child.reach == Reach::Created;
                // Which namespaces had the labels before is unknown. Without a list, only cluster-scoped custom resources choose.
                !chosen.selectors.is_empty()
                    || (child.reach == Reach::Chosen && chosen.names.is_empty())
            }
        };
        if is_open {
            targets.names.insert("*".into());
        }
    }

    /// Returns the namespaces of children with additions from objects of a relation, which are also those of these objects.
    pub fn related_places(
        &self,
        relation: orkestra_language::enrich::Relation,
    ) -> ObjectNamespaces {
        let read = self.additions_read();
        let read = read.filter(|(addition, _)| addition.source.relation() == Some(relation));
        let places = read.map(|(_, kind)| self.child_places(kind, false));
        places.collect::<ObjectNamespaces>().bounded()
    }

    /// Returns the namespaces of the children that an autoscaler may scale.
    pub fn scaled_places(&self) -> ObjectNamespaces {
        let scaled = self.children.iter().filter(|child| child.may_be_scaled());
        let places = scaled.map(|child| self.places_of(child, true));
        places.collect::<ObjectNamespaces>().bounded()
    }

    /// Returns the kinds of objects that are read by name.
    pub fn kinds_read_by_name(&self) -> BTreeSet<GroupKind> {
        let copies = self
            .children
            .iter()
            .filter_map(|child| child.copy.as_deref());
        let used = ["Secret", "ConfigMap"].map(GroupKind::parse);
        copies.map(|copy| copy.kind.clone()).chain(used).collect()
    }

    /// Returns the namespaces of objects of a kind that are read by name: sources of copies, configuration that pods roll
    /// with, tokens of calls.
    pub fn read_places(&self, kind: &GroupKind) -> ObjectNamespaces {
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
            for token in self.tokens() {
                if let TokenPlan::Secret { namespace, .. } = token {
                    let own = || self.own_places();
                    places.push(
                        namespace
                            .as_deref()
                            .map_or_else(own, ObjectNamespaces::of_one),
                    );
                }
            }
        }
        places.into_iter().collect::<ObjectNamespaces>().bounded()
    }

    /// Returns all declared children, including those of `onDelete`.
    fn entries(&self) -> impl Iterator<Item = &ChildPlan> {
        let on_delete = self
            .on_delete
            .iter()
            .flat_map(|on_delete| on_delete.entries());
        self.children.iter().chain(on_delete)
    }

    fn places_of(&self, child: &ChildPlan, namespaced: bool) -> ObjectNamespaces {
        let is_namespaced = |kind: &ResourceType| kind.namespaced.unwrap_or(namespaced);
        match &child.namespace {
            _ if child.kind.namespaced == Some(false) => ObjectNamespaces::All,
            None if is_namespaced(&child.kind) => self.own_places(),
            None => ObjectNamespaces::All,
            Some(leaf) => match child.reach {
                Reach::Fixed => self.fixed(child.import, leaf),
                Reach::Chosen => self.chosen(),
                Reach::Created => ObjectNamespaces::All,
            },
        }
    }

    fn copied_places(&self, child: &ChildPlan, copy: &CopyPlan) -> ObjectNamespaces {
        match &copy.namespace {
            None => self.own_places(),
            Some(leaf) => self.fixed(child.import, leaf),
        }
    }

    /// Returns the namespaces of a leaf that depends only on the Katalog and the custom resource's own namespace.
    fn fixed(&self, import: Option<usize>, leaf: &Leaf) -> ObjectNamespaces {
        if inputs::is_own(&self.imports, import, leaf) {
            return self.own_places();
        }
        match inputs::known_text(&self.imports, import, leaf) {
            Some(text) if text.is_empty() => self.own_places(),
            // A Role cannot be created in a namespace that does not exist yet.
            Some(text) if !self.makes_namespace(&text) => ObjectNamespaces::of_one(&text),
            _ => ObjectNamespaces::All,
        }
    }

    /// True if one of the children is the namespace with that name.
    fn makes_namespace(&self, name: &str) -> bool {
        let kind = GroupKind::parse("Namespace");
        let mut namespaces = self.children.iter();
        namespaces.any(|child| {
            child.kind.group_kind() == kind
                && inputs::known_text(&self.imports, child.import, &child.name).as_deref()
                    == Some(name)
        })
    }

    /// Returns the namespaces that custom resources may choose.
    fn chosen(&self) -> ObjectNamespaces {
        let targets = &self.targets;
        let is_open = |name: &str| name.contains('*');
        let are_known = !targets.is_empty()
            && targets.selectors.is_empty()
            && !targets.names.iter().any(|name| is_open(name));
        if !are_known {
            return ObjectNamespaces::All;
        }
        let names = targets.names.iter().cloned().collect();
        self.own_places().and(ObjectNamespaces::Only(names))
    }
}
