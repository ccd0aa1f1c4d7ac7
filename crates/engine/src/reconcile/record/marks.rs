//! The marks that show that an operator manages an object as a custom resource.
//!
//! ```text
//!  our finalizer ──────────────────────────────────────────────► managed: only the operator of its kind adds it
//!  label `managed` ─┬─ marks of a child ───────────────────────► not managed: the label is that of another operator
//!                   ├─ kind of a CRD ──────────────────────────► managed
//!                   └─ built-in kind ─┬─ inventory annotation ─► managed
//!                                     └─ none ─────────────────► not managed: Kubernetes copies labels between its objects
//! ```
//!
//! Children and custom resources have the same label, and an operator may create custom resources of another operator. Without this
//! rule, the operator of their kind would treat children of others as its own custom resources, and delete or unmark them.

use super::CrRecord;
use crate::reconcile::inventory::Inventory;

/// The marks of an object that an operator may manage as a custom resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of the object, and none follows from another"
)]
pub struct OperatedMarks {
    /// Whether it carries our finalizer.
    pub finalizer: bool,
    /// Whether it carries our `managed` label.
    pub managed: bool,
    /// Whether it carries the marks of a child, see [`super::is_child`].
    pub child: bool,
    /// Whether it has an inventory.
    pub inventory: bool,
}

impl OperatedMarks {
    /// True if the operator of its kind manages the object; `built_in` is true for the kinds of Kubernetes itself.
    pub fn is_operated(self, built_in: bool) -> bool {
        self.finalizer || (self.managed && !self.child && (self.inventory || !built_in))
    }
}

impl CrRecord {
    /// Returns the marks that show whether it is managed.
    pub fn marks(&self) -> OperatedMarks {
        OperatedMarks {
            finalizer: self.finalizer,
            managed: self.managed,
            child: self.is_child,
            inventory: *self.inventory != Inventory::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_another_resource_is_operated_only_if_it_carries_the_finalizer() {
        for built_in in [false, true] {
            for (managed, inventory) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let child = OperatedMarks {
                    finalizer: false,
                    managed,
                    child: true,
                    inventory,
                };
                assert!(!child.is_operated(built_in), "{child:?}");
                let held = OperatedMarks {
                    finalizer: true,
                    ..child
                };
                assert!(held.is_operated(built_in), "{held:?}");
            }
        }
    }

    #[test]
    fn without_a_finalizer_the_label_marks_a_custom_resource_and_with_an_inventory_an_object_of_a_built_in_kind()
     {
        for (managed, inventory, custom, built_in) in [
            (true, false, true, false),
            (true, true, true, true),
            (false, true, false, false),
            (false, false, false, false),
        ] {
            let marks = OperatedMarks {
                managed,
                inventory,
                ..OperatedMarks::default()
            };
            assert_eq!(marks.is_operated(false), custom, "{marks:?}");
            assert_eq!(marks.is_operated(true), built_in, "{marks:?}");
        }
    }
}
