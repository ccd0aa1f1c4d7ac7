//! Objects that others made, by name.

use std::sync::Arc;

use orkestra_core::{
    plan::{ChildKey, built_in},
    reconcile::sources::Answer,
};

use super::Shared;
use crate::runtime::wire::{Served, WireError};

/// The object as the API server has it now.
pub(super) async fn read(shared: &Shared, object: &ChildKey) -> Answer {
    let kind = &object.kind;
    let Some((plural, namespaced)) = built_in(kind) else {
        return Answer::Unavailable(format!("{kind} is no kind that can be read").into());
    };
    let served = Served {
        group: kind.group.clone(),
        version: "v1".into(),
        kind: kind.kind.clone(),
        plural: plural.into(),
        namespaced,
    };
    match shared.get(&served, &object.object).await {
        Ok(found) => Answer::Ready(Arc::new(found)),
        Err(WireError::NotFound(_)) => Answer::Absent,
        Err(error) => Answer::Unavailable(error.to_string().into()),
    }
}
