//! Watch events, read from the bytes of their line into what is looked at of the object.

use std::{fmt, io, pin::Pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt, TryFutureExt};
use http::{Request, header};
use kube::core::Status;
use orkestra_core::{
    reconcile::record::Version,
    value::{Node, Sieve},
};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{
    Form, JSON, Scope, Served, Wire, WireError,
    error::{Asked, broken},
    in_time,
    served::Query,
    splitter::{LARGEST_OBJECT, empty},
};

/// Source: Kubernetes API concepts, "Metadata-only representation".
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What a watch tells.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// What an object is now, as far as it was asked for.
    Put(Node),
    /// An object that is gone, or out of what is watched, as it was last.
    Gone(Node),
    /// The watch has told everything up to here.
    Bookmark(Version),
}

/// A watch that is open.
pub struct Watch<'w> {
    kind: &'w Served,
    scope: &'w Scope,
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    /// The beginning of a line of which the rest has not come.
    line: Vec<u8>,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.kind.plural).finish()
    }
}

impl Wire {
    /// Starts a watch of `scope` from `from`, which the API server ends after `timeout`; bookmarks are asked for.
    ///
    /// # Errors
    /// [`WireError::Gone`] when `from` is too old.
    pub async fn watch<'w>(
        &self,
        form: Form,
        kind: &'w Served,
        scope: &'w Scope,
        from: &Version,
        timeout: Duration,
    ) -> Result<Watch<'w>, WireError> {
        let asked = Asked::of("watch", kind, scope.namespace.as_deref());
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
            // Packed events cannot be told apart by the layer that unpacks them.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|_| asked.unwritable())?;
        let body = self.client().request_stream(request);
        let body = in_time(body.map_err(|error| asked.sort(error))).await?;
        Ok(Watch {
            kind,
            scope,
            body: Box::pin(body),
            line: Vec::new(),
        })
    }
}

impl Watch<'_> {
    /// The next event, of whose object no more is kept than `sieve` says; none when the API server ended the watch. Nothing
    /// is lost when it is called anew before it returned.
    ///
    /// # Errors
    /// What the API server tells in an event, such as [`WireError::Gone`]; a connection that broke, also in the middle of
    /// an event.
    pub async fn next(&mut self, sieve: &Sieve) -> Result<Option<Event>, WireError> {
        let asked = Asked::of("watch", self.kind, self.scope.namespace.as_deref());
        loop {
            let Self { body, line, .. } = self;
            let part = body.fill_buf().await.map_err(|error| broken(&error))?;
            if part.is_empty() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    return Ok(None);
                }
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "cut off in an event");
                return Err(broken(&error));
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            if line.len() + text.len() > LARGEST_OBJECT {
                let message = "an event is larger than any object may be";
                return Err(WireError::Unavailable(message.to_owned()));
            }
            let used = end.map_or(part.len(), |end| end + 1);
            let event = match end {
                None => {
                    line.extend_from_slice(text);
                    None
                }
                Some(_) if line.is_empty() => read(&asked, sieve, text),
                Some(_) => {
                    line.extend_from_slice(text);
                    let event = read(&asked, sieve, line);
                    empty(line);
                    event
                }
            };
            body.as_mut().consume(used);
            if let Some(event) = event {
                return event.map(Some);
            }
        }
    }
}

/// Reads a line; nothing where there is none, or an event of a type that we do not know.
fn read(asked: &Asked<'_>, sieve: &Sieve, line: &[u8]) -> Option<Result<Event, WireError>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let told = Line(sieve)
        .deserialize(&mut deserializer)
        .and_then(|told| deserializer.end().map(|()| told));
    let Ok((kind, object)) = told else {
        // An error that came up before the first event is told without a type.
        let refused = serde_json::from_slice::<Status>(line)
            .ok()
            .map(|status| asked.sort(kube::Error::Api(status.boxed())));
        // serde_json's own message may quote a value.
        let unread = || WireError::Unavailable("an event cannot be read".to_owned());
        return Some(Err(refused.unwrap_or_else(unread)));
    };
    Some(match &*kind {
        "ADDED" | "MODIFIED" => Ok(Event::Put(object)),
        "DELETED" => Ok(Event::Gone(object)),
        "BOOKMARK" => {
            let version = object.get("metadata")?.get("resourceVersion")?.as_str()?;
            Ok(Event::Bookmark(version.into()))
        }
        "ERROR" => {
            let status = serde_json::from_value::<Status>(object.to_json());
            Err(asked.sort(kube::Error::Api(status.unwrap_or_default().boxed())))
        }
        _ => return None,
    })
}

/// One line: an event's type and its object. What an error says is kept whole.
struct Line<'s>(&'s Sieve);

const ERROR: &str = "ERROR";

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = (String, Node);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = (String, Node);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (None::<String>, None);
        while let Some(key) = map.next_key::<String>()? {
            match (&*key, &kind) {
                ("type", _) => kind = Some(map.next_value()?),
                // Every server tells the type first. Where one does not it may be an error.
                ("object", Some(kind)) if kind != ERROR => {
                    object = Some(map.next_value_seed(self.0)?);
                }
                ("object", _) => object = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        let object = object.ok_or_else(|| A::Error::missing_field("object"))?;
        Ok((kind, object))
    }
}
