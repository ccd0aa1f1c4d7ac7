//! Names of the roots that templates read. A source that has a part of the plan declares its root there.

/// Root fields of the custom resource itself.
pub const CR_ROOTS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
/// Root of the changes made by `normalize`.
pub const CHANGES: &str = "_normalizeChanges";
/// Root of the children of the custom resource.
pub const CHILDREN: &str = "children";
/// Root of the custom resource before an update, in rules.
pub const OLD: &str = "old";
/// Root of the operation on the custom resource, in rules.
pub const OPERATION: &str = "operation";
/// Root of the responses to calls.
pub const EXTERNAL: &str = "external";
