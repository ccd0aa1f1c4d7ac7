//! Kinds of Kubernetes itself, as they are served.

use orkestra_cluster::requests::Served;
use orkestra_plan::{self, GroupKind};

/// Returns a built-in kind of Kubernetes in that version; `None` if it is not built-in.
pub fn built_in(kind: &GroupKind, version: &str) -> Option<Served> {
    let (plural, namespaced) = orkestra_plan::built_in(kind)?;
    Some(Served::of(kind, version, plural, namespaced))
}
