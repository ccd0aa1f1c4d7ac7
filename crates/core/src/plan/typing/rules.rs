//! Checks the values and messages of rules against the known custom resource.

use super::{Schema, Typing};
use crate::{
    plan::{RulesPlan, Target},
    schema::Below,
    value::Path,
};

impl<'s> Typing<'_, 's> {
    /// Checks `normalize`, `mutation` and `validation`.
    pub(super) fn rules(&self, rules: &RulesPlan) {
        self.import.set(None);
        for one in &rules.normalize {
            self.leaf(&one.value, self.at_path(&one.path));
        }
        for one in &rules.mutation {
            self.import.set(one.import);
            let schema = match &one.target {
                Target::Path(path) => self.at_path(path),
                Target::Rendered(leaf) => {
                    self.leaf(leaf, None);
                    None
                }
            };
            self.leaf(&one.value, schema);
            self.gate(&one.gate);
        }
        for one in &rules.validation {
            self.import.set(one.import);
            self.gate(&one.test);
            self.leaf(&one.message, None);
            self.gate(&one.gate);
        }
    }

    /// Returns the custom resource's schema at a path.
    fn at_path(&self, path: &Path) -> Option<Schema<'s>> {
        match self.resource?.at_path(path) {
            Below::Schema(schema) => Some(schema),
            Below::Anything | Below::Nowhere => None,
        }
    }
}
