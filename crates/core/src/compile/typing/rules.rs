//! The fields of the custom resource that rules set.

use super::Typing;
use crate::{
    schema::{NestedSchema, Schema},
    value::Path,
};

impl<'s> Typing<'_, 's> {
    /// Returns the custom resource's schema at a path.
    pub(super) fn at_path(&self, path: &Path) -> Option<Schema<'s>> {
        match self.resource?.at_path(path) {
            NestedSchema::Schema(schema) => Some(schema),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
        }
    }
}
