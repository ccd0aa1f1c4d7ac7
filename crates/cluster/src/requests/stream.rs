//! Watch events, decoded from the bytes of their line, see [`orkestra_object::decode`].

use std::{fmt, io, pin::Pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt, TryFutureExt};
use http::{Request, header};
use orkestra_object::{
    decode::{self, Lines, Version},
    value::{Node, Projection},
};

use super::{
    Cluster, ClusterError, Form, JSON, Scope, Served,
    error::{RequestSubject, broken},
    in_time,
    served::Query,
};

/// Source: Kubernetes API concepts, "Metadata-only representation".
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// An event of a watch.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The present state of an object, as far as it was requested and is readable ([`Projection::decode`]).
    Put(Node),
    /// The last state of an object that is deleted, or no longer selected.
    Gone(Node),
    /// The watch has reported everything up to this version.
    Bookmark(Version),
}

/// An open watch.
pub struct Watch<'w> {
    kind: &'w Served,
    scope: &'w Scope,
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    lines: Lines,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.kind.plural).finish()
    }
}

impl Cluster {
    /// Starts a watch of `scope` from `from`, which the API server ends after `timeout`; requests bookmarks.
    ///
    /// # Errors
    /// [`ClusterError::Gone`] if `from` is too old.
    pub async fn watch<'w>(
        &self,
        form: Form,
        kind: &'w Served,
        scope: &'w Scope,
        from: &Version,
        timeout: Duration,
    ) -> Result<Watch<'w>, ClusterError> {
        let asked = RequestSubject::of("watch", kind, scope.namespace.as_deref());
        let mut query = Query::default();
        query.add("watch", Some("true"));
        query.add("allowWatchBookmarks", Some("true"));
        query.add("labelSelector", scope.selector.as_deref());
        query.add("fieldSelector", scope.fields.as_deref());
        query.add("resourceVersion", Some(&from.to_string()));
        query.add("timeoutSeconds", Some(&timeout.as_secs().to_string()));
        let accept = match form {
            Form::Whole => JSON,
            Form::Metadata => METADATA,
        };
        let request = Request::get(query.onto(kind.collection_path(scope.namespace.as_deref())))
            .header(header::ACCEPT, accept)
            // The layer that decompresses cannot separate compressed events.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|_| asked.unwritable())?;
        let body = self.client.request_stream(request);
        let body = in_time(body.map_err(|error| asked.sort(error))).await?;
        Ok(Watch {
            kind,
            scope,
            body: Box::pin(body),
            lines: Lines::default(),
        })
    }
}

impl Watch<'_> {
    /// Returns the next event, with the parts of its object that `projection` keeps; `None` when the API server has ended the watch.
    /// Cancel safe: nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// An error that the API server reports in an event, such as [`ClusterError::Gone`], which also stands for a line that is not an
    /// event; a broken connection, including one that breaks inside an event.
    pub async fn next(&mut self, projection: &Projection) -> Result<Option<Event>, ClusterError> {
        let asked = RequestSubject::of("watch", self.kind, self.scope.namespace.as_deref());
        loop {
            let Self { body, lines, .. } = self;
            let part = body.fill_buf().await.map_err(|error| broken(&error))?;
            if part.is_empty() {
                if !lines.is_cut_off() {
                    return Ok(None);
                }
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "cut off in an event");
                return Err(broken(&error));
            }
            let (used, event) = lines.feed(part, projection);
            body.as_mut().consume(used);
            let reported = match event {
                None => continue,
                Some(decode::Event::Put(object)) => Ok(Event::Put(object)),
                Some(decode::Event::Gone(object)) => Ok(Event::Gone(object)),
                Some(decode::Event::Bookmark(version)) => Ok(Event::Bookmark(version)),
                Some(decode::Event::Refused(status)) => Err(asked.sort_refusal(&status)),
                // The object is unknown, so everything is listed again.
                Some(decode::Event::Lost) => {
                    Err(ClusterError::Gone("an event cannot be read".to_owned()))
                }
            };
            return reported.map(Some);
        }
    }
}
