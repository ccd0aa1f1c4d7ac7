//! Types of other operators' custom resources.

use super::{KnownSchemas, of_root};
use crate::{
    plan::{
        cross::{CrossPlan, CrossTarget, FOUND},
        roots::CR_ROOTS,
    },
    schema::{Kinds, Type},
    value::Node,
};

/// Returns the type of `.cross`.
pub(super) fn of_entries<'s>(known: KnownSchemas<'s>, entries: &[CrossPlan]) -> Type<'s> {
    let entries = entries
        .iter()
        .map(|entry| (entry.name.to_string(), of_entry(known, entry)));
    Type::of_names(entries)
}

fn of_entry<'s>(known: KnownSchemas<'s>, entry: &CrossPlan) -> Type<'s> {
    let schema = match &entry.target {
        CrossTarget::Own(_, kind) => known.kind(kind),
        CrossTarget::Other(_) | CrossTarget::Labels(_) => None,
    };
    let roots = CR_ROOTS.map(|root| (root.to_owned(), of_root(schema, root, known.built_in)));
    let found = Type::of(Kinds::of(&Node::from("true")));
    Type::of_names(roots.into_iter().chain([(FOUND.to_owned(), found)]))
}
