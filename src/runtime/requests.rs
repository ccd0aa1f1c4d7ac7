//! The requests of one operator: a missing permission is remembered until the same request succeeds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use orkestra_cluster::wire::{Scope, Served, Wire, WireError};
use orkestra_core::{plan::ObjectKey, value::Node};
use tokio::sync::Notify;

use super::lock::lock;

/// The type of a request, to match a refusal with a later success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestType {
    Get,
    List,
    Apply,
    Create,
    Delete,
    Status,
}

/// The requests of one operator.
pub(super) struct Requests {
    /// Counts requests for this operator.
    pub(super) wire: Wire,
    /// Missing permissions, by request and kind, until the same request succeeds.
    refused: Mutex<BTreeMap<(RequestType, String), String>>,
    /// Wakes the publisher when a permission went missing, or was granted.
    changed: Arc<Notify>,
}

impl Requests {
    /// Creates the requests that `wire` makes; `changed` is notified when a permission goes missing or is granted.
    pub(super) fn new(wire: Wire, changed: Arc<Notify>) -> Self {
        Self {
            wire,
            refused: Mutex::default(),
            changed,
        }
    }

    /// Reads an object.
    pub(super) async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Node, WireError> {
        let answer = self.wire.get(kind, key).await;
        self.heard(RequestType::Get, kind, answer)
    }

    /// Lists the objects of a kind in that scope, as the API server has them now.
    pub(super) async fn list(&self, kind: &Served, scope: &Scope) -> Result<Vec<Node>, WireError> {
        let answer = self.wire.list_page(kind, scope, 0, None).await;
        Ok(self.heard(RequestType::List, kind, answer)?.items)
    }

    /// Records a missing permission, or that it was granted; returns the answer.
    pub(super) fn heard<T>(
        &self,
        request: RequestType,
        kind: &Served,
        answer: Result<T, WireError>,
    ) -> Result<T, WireError> {
        let mut refused = lock(&self.refused);
        let key = || (request, format!("{}.{}", kind.plural, kind.group));
        let news = match &answer {
            Err(error @ WireError::Forbidden { .. }) => {
                refused.insert(key(), error.to_string()).is_none()
            }
            Ok(_) => !refused.is_empty() && refused.remove(&key()).is_some(),
            Err(_) => false,
        };
        if news {
            self.changed.notify_one();
        }
        answer
    }

    /// Returns the missing permissions.
    pub(super) fn refusals(&self) -> Vec<String> {
        lock(&self.refused).values().cloned().collect()
    }
}
