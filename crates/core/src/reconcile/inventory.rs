//! The inventory annotation: what a custom resource's children may be found under, written before the first is made.

use std::collections::BTreeSet;

use crate::plan::{ChildKey, GroupKind, ObjectKey};

/// Group-kinds that may hold children of a custom resource, and which children were made once.
///
/// Its text is `kinds` separated by commas, then for each child made once a `!kind=namespace/name`:
/// `ConfigMap,Deployment.apps,!Secret=shop/db`. Names of Kubernetes objects hold neither comma, `!` nor `=`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Group-kinds in use; never narrower than what exists.
    pub kinds: BTreeSet<GroupKind>,
    /// Children of plain `onCreate` entries that have been made: they are not made again when somebody deletes them.
    pub made: BTreeSet<ChildKey>,
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
            match item.strip_prefix('!') {
                None => {
                    inventory.kinds.insert(GroupKind::parse(item));
                }
                Some(made) => {
                    if let Some((kind, object)) = made.split_once('=') {
                        let (namespace, name) = object
                            .split_once('/')
                            .map_or((None, object), |(namespace, name)| (Some(namespace), name));
                        inventory.made.insert(ChildKey {
                            kind: GroupKind::parse(kind),
                            object: ObjectKey {
                                namespace: namespace.map(Box::from),
                                name: name.into(),
                            },
                        });
                    }
                }
            }
        }
        inventory
    }

    /// The annotation's text; equal inventories have equal texts.
    pub fn text(&self) -> String {
        let kinds = self.kinds.iter().map(ToString::to_string);
        let made = self
            .made
            .iter()
            .map(|child| format!("!{}={}", child.kind, child.object));
        kinds.chain(made).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_reads_back_as_the_same_inventory() {
        let text = "ConfigMap,Deployment.apps,!Namespace=shop,!Job.batch=shop/build";
        let inventory = Inventory::parse(text);
        assert_eq!(inventory.kinds.len(), 2);
        assert_eq!(inventory.made.len(), 2);
        assert_eq!(inventory.text(), text);
    }

    #[test]
    fn what_a_user_made_of_it_is_passed_over() {
        assert_eq!(Inventory::parse(" ,!, !x,ConfigMap").kinds.len(), 1);
    }
}
