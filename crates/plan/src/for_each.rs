//! `forEach`: children that are created for each element of a list or map.

use super::{HOOK_CHILDREN, ImportPlan, PlanPlace, inputs};
use orkestra_object::value::{Key, Path, PathStep};

/// The element, in addition to its declared name.
pub const ITEM: &str = "item";
/// The index of the element, from 0.
pub const INDEX: &str = "index";
/// The value of a map's element.
pub const VALUE: &str = "value";

/// A list or map; each element makes a child.
#[derive(Clone, Debug)]
pub struct ForEachPlan {
    /// Its path, from the template roots.
    pub field: Path,
    /// The name of the element in templates, beside `.item`.
    pub name: Key,
    /// True if the element of a map is `{key, value}`, as its templates read it; otherwise it is the key, and `.value` the
    /// value.
    pub pairs: bool,
    /// Its path in the Katalog, for messages: `….deployments[0].forEach`.
    pub path: PlanPlace,
}

impl ForEachPlan {
    /// True if a template that reads `path` reads the element; the root includes it.
    pub fn is_read_by(&self, path: &Path) -> bool {
        match path.steps().first() {
            Some(PathStep::Field(root)) => self.names().contains(&&**root),
            Some(PathStep::Index(_)) => false,
            None => true,
        }
    }

    /// Returns the position of an element, for messages.
    pub fn place_of(&self, index: &str) -> String {
        match self.field.steps() {
            [
                PathStep::Field(root),
                PathStep::Field(hook),
                PathStep::Field(kind),
            ] if **root == *HOOK_CHILDREN => {
                format!("child {index} of kind {kind} that the hook `{hook}` returns")
            }
            _ => format!("{}[{index}]", self.field),
        }
    }

    /// Returns the roots that only its templates have.
    pub fn names(&self) -> [&str; 4] {
        [ITEM, INDEX, VALUE, &self.name]
    }

    /// True if `path` uses the element of a map as a pair: `.item.key` or `.item.value`.
    pub fn is_of_pair(&self, path: &Path) -> bool {
        let [PathStep::Field(root), PathStep::Field(part), ..] = path.steps() else {
            return false;
        };
        [ITEM, &*self.name].contains(&&**root) && ["key", VALUE].contains(&&**part)
    }

    /// True if only the user determines the elements.
    pub fn is_intent(&self, import: Option<&ImportPlan>) -> bool {
        inputs::is_intent(&self.field, import)
    }
}
