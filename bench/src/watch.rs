//! Watches of the harness.

use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::{Stream, StreamExt as _};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;

use crate::api;

/// A change of one object.
#[derive(Debug)]
pub(crate) enum ObjectChange {
    /// The object was created or changed. This is its current state.
    Put(Value),
    /// The object was deleted. This is its last state.
    Gone(Value),
}

/// A watch of one collection, from its current resourceVersion.
pub(crate) struct Watch {
    path: String,
    events: Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Value>>> + Send>>,
}

impl Watch {
    /// Opens a watch of the collection at `path`.
    pub(crate) async fn open(client: &Client, path: &str) -> Result<Self> {
        let now = api::get(client, &format!("{path}?limit=1")).await?;
        let version = api::text(&now, "/metadata/resourceVersion");
        let request = http::Request::get(format!(
            "{path}?watch=true&timeoutSeconds=7200&resourceVersion={version}"
        ))
        .body(Vec::new())?;
        let events = client.request_events::<Value>(request).await?;
        Ok(Self {
            path: path.to_owned(),
            events: Box::pin(events),
        })
    }

    /// Returns the next change before `deadline`. `what` describes the awaited change.
    async fn next(&mut self, what: &str, deadline: Instant) -> Result<ObjectChange> {
        let event = tokio::time::timeout_at(deadline.into(), self.events.next())
            .await
            .with_context(|| format!("{what}: not in time"))?
            .with_context(|| format!("{what}: the watch of {} ended", self.path))?
            .with_context(|| format!("{what}: the watch of {} broke", self.path))?;
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                Ok(ObjectChange::Put(object))
            }
            WatchEvent::Deleted(object) => Ok(ObjectChange::Gone(object)),
            WatchEvent::Bookmark(_) => bail!("an unexpected bookmark"),
            WatchEvent::Error(error) => bail!("{what}: the watch of {} reports {error}", self.path),
        }
    }

    /// Waits for a change for which `is_it` returns true, for at most `limit`. Returns the time at which it was seen.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        limit: Duration,
        mut is_it: impl FnMut(&ObjectChange) -> bool,
    ) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        loop {
            if is_it(&self.next(what, deadline).await?) {
                return Ok(Instant::now());
            }
        }
    }

    /// Calls `see` for each object that has changed, and for each change in the next `window`.
    pub(crate) async fn drain(
        &mut self,
        window: Duration,
        mut see: impl FnMut(&Value),
    ) -> Result<()> {
        let deadline = Instant::now() + window;
        while let Ok(event) = tokio::time::timeout_at(deadline.into(), self.events.next()).await {
            let event = event.with_context(|| format!("the watch of {} ended", self.path))??;
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = &event {
                see(object);
            }
        }
        Ok(())
    }

    /// Waits until `is_it` has returned true for `count` different objects. Returns the time at which the last one was seen.
    pub(crate) async fn until_all(
        &mut self,
        what: &str,
        limit: Duration,
        count: usize,
        mut is_it: impl FnMut(&Value) -> bool,
    ) -> Result<Instant> {
        let mut seen = std::collections::HashSet::new();
        let reached = self
            .until(what, limit, |change| {
                if let ObjectChange::Put(object) = change
                    && is_it(object)
                {
                    let key = (
                        api::text(object, "/metadata/namespace").to_owned(),
                        api::name(object).to_owned(),
                    );
                    seen.insert(key);
                }
                seen.len() == count
            })
            .await;
        reached.with_context(|| format!("{} of {count} were seen", seen.len()))
    }
}
