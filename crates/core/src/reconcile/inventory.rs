//! The inventory annotation: what a custom resource's children may be found under, written before the first is made.

use std::{collections::BTreeSet, sync::Arc};

use super::intern::Interner;
use crate::plan::{ChildKey, GroupKind, ObjectKey};

/// Group-kinds that may hold children of a custom resource, which children were made once, and what else of ours is on it.
///
/// Its text is `kinds` separated by commas, then for each child made once a `!kind=namespace/name`, for each Job of its
/// end a `~kind=namespace/name`, for each label a `@key` and for each finalizer of others a `+name`:
/// `ConfigMap,Deployment.apps,!Secret=shop/db`. Names of Kubernetes objects hold neither comma, `!` nor `=`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// Group-kinds in use; never narrower than what exists.
    pub kinds: BTreeSet<GroupKind>,
    /// Children of plain `onCreate` entries that have been made: they are not made again when somebody deletes them.
    pub made: BTreeSet<ChildKey>,
    /// Jobs of `onDelete` that have been made: they are not made again when they are gone.
    pub ended: BTreeSet<ChildKey>,
    /// Keys of the labels that we put on it.
    pub labels: BTreeSet<Box<str>>,
    /// Finalizers of others that we put on it.
    pub finalizers: BTreeSet<Box<str>>,
}

impl Inventory {
    /// Reads the annotation's text; what cannot be read is passed over, since a user may have edited it.
    pub fn parse(text: &str) -> Self {
        let mut inventory = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            if let Some(made) = item.strip_prefix('!') {
                inventory.made.extend(child(made));
            } else if let Some(ended) = item.strip_prefix('~') {
                inventory.ended.extend(child(ended));
            } else if let Some(label) = item.strip_prefix('@') {
                inventory.labels.insert(label.into());
            } else if let Some(finalizer) = item.strip_prefix('+') {
                inventory.finalizers.insert(finalizer.into());
            } else {
                inventory.kinds.insert(GroupKind::parse(item));
            }
        }
        inventory
    }

    /// Itself, as all equal ones of the process are: custom resources of one template have the same kinds.
    pub fn share(self) -> Arc<Self> {
        static SHARED: Interner<Inventory> = Interner::new();
        SHARED.share(self)
    }

    /// The annotation's text; equal inventories have equal texts.
    pub fn text(&self) -> String {
        let Self {
            kinds,
            made,
            ended,
            labels,
            finalizers,
        } = self;
        let mut items: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        let children = |mark, children: &BTreeSet<ChildKey>| {
            let text = |child: &ChildKey| format!("{mark}{}={}", child.kind, child.object);
            children.iter().map(text).collect::<Vec<_>>()
        };
        items.extend(children('!', made));
        items.extend(children('~', ended));
        items.extend(labels.iter().map(|key| format!("@{key}")));
        items.extend(finalizers.iter().map(|name| format!("+{name}")));
        items.join(",")
    }
}

fn child(text: &str) -> Option<ChildKey> {
    let (kind, object) = text.split_once('=')?;
    let (namespace, name) = object
        .split_once('/')
        .map_or((None, object), |(namespace, name)| (Some(namespace), name));
    Some(ChildKey {
        kind: GroupKind::parse(kind),
        object: ObjectKey {
            namespace: namespace.map(Into::into),
            name: name.into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_reads_back_as_the_same_inventory() {
        let text = "ConfigMap,Deployment.apps,!Namespace=shop,!Job.batch=shop/build,~Job.batch=shop/drain,\
                    @example.org/tier,+example.org/backup";
        let inventory = Inventory::parse(text);
        assert_eq!(inventory.kinds.len(), 2);
        assert_eq!(inventory.made.len(), 2);
        assert_eq!(inventory.ended.len(), 1);
        assert_eq!(inventory.text(), text);
    }

    #[test]
    fn what_a_user_made_of_it_is_passed_over() {
        assert_eq!(Inventory::parse(" ,!, !x,ConfigMap").kinds.len(), 1);
    }
}
