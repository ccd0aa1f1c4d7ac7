//! The fields of the custom resource that rules set.

use super::Typing;
use orkestra_language::schema::{NestedSchema, Schema};
use orkestra_object::value::Path;

impl<'s> Typing<'_, 's> {
    /// Returns the custom resource's schema at a path.
    pub(crate) fn at_path(&self, path: &Path) -> Option<Schema<'s>> {
        match self.resource?.at_path(path) {
            NestedSchema::Schema(schema) => Some(schema),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
        }
    }
}
