//! The shipped schemas of Kubernetes' own kinds, against what else is known of these.

#![allow(
    clippy::unwrap_used,
    reason = "a definition that cannot be read is a fault of the test"
)]

use orkestra_core::{
    plan::{GroupKind, built_in},
    schema::BuiltIn,
};

#[test]
fn plurals_and_scopes_are_those_of_the_table() {
    for known in BuiltIn::new().kinds() {
        // It can be listed and nothing else.
        if known.kind == "ComponentStatus" {
            continue;
        }
        let kind = GroupKind {
            group: known.group.as_str().into(),
            kind: known.kind.as_str().into(),
        };
        let expected = Some((known.plural.as_str(), known.namespaced));
        assert_eq!(built_in(&kind), expected, "{kind}");
    }
}
