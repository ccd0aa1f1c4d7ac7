//! What the harness sees happen.

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
    /// It was made or changed, and is this now.
    Put(Value),
    /// It was deleted, and was this.
    Gone(Value),
}

/// A watch of one collection, from the moment at which it was opened.
pub(crate) struct Watch {
    path: String,
    events: Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Value>>> + Send>>,
}

impl Watch {
    /// Watches the collection at `path`.
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

    /// The next change, before `deadline`; `what` is waited for, in words.
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
            WatchEvent::Bookmark(_) => bail!("a bookmark that nobody asked for"),
            WatchEvent::Error(error) => bail!("{what}: the watch of {} says {error}", self.path),
        }
    }

    /// Waits for a change of which `is_it` says so, for `limit` at most; when it was seen.
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

    /// Shows `see` what has changed and changes for `window` more.
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

    /// Waits until `count` different objects were put of which `is_it` says so; when the last was seen.
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
