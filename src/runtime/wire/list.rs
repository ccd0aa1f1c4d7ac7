//! Lists that are read item by item while they arrive: a page is never held, neither as text nor as trees.
//!
//! ```text
//!  bytes ── Splitter ──► text of one item ── Sieve ──► Node ──► whoever makes a record of it
//! ```

use std::pin::pin;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::{Method, Request, header};
use orkestra_core::value::{Node, Sieve};
use serde::Deserialize;

use super::{
    Form, JSON, Scope, Served, Wire, WireError,
    error::{Asked, broken},
    in_time,
    served::Query,
    splitter::{Found, Splitter, Uncut},
};

/// Pages that are read at once, all lists of the process together: a start must not ask for everything at a time, neither of
/// the API server nor of our memory.
pub(super) const PAGES_AT_ONCE: usize = 8;

/// Source: Kubernetes API concepts, "Metadata-only representation".
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Which page of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageOf<'a> {
    /// The most objects; 0 is all.
    pub limit: u32,
    /// What the last page said of the next; none is the first.
    pub next: Option<&'a str>,
}

/// What comes out of a page.
#[derive(Debug, PartialEq)]
pub enum Listed {
    /// The state that all pages of the list show; comes in front of all objects.
    Version(String),
    /// An object, as far as it was asked for. The API server leaves `apiVersion` and `kind` out of the items of built-in
    /// kinds.
    Object(Node),
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Envelope {
    metadata: ListMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
}

/// Why a page ended early.
enum Ended {
    Uncut(Uncut),
    NoJson(serde_json::Error),
}

impl From<Uncut> for Ended {
    fn from(why: Uncut) -> Self {
        Self::Uncut(why)
    }
}

impl From<serde_json::Error> for Ended {
    fn from(why: serde_json::Error) -> Self {
        Self::NoJson(why)
    }
}

impl Ended {
    /// In words that quote nothing of what was sent.
    fn sort(self) -> WireError {
        WireError::Unavailable(match self {
            Self::Uncut(why) => format!("the list cannot be read: {why}"),
            Self::NoJson(why) => format!(
                "the answer is not what was asked for (line {}, column {})",
                why.line(),
                why.column()
            ),
        })
    }
}

impl Wire {
    /// Reads one page of a list and hands out what `sieve` keeps of each object as it arrives; returns what asks for the
    /// next page, or none on the last.
    ///
    /// No resourceVersion is asked for, so a first page is never older than what anybody was told before. What was handed
    /// out before an error is true all the same.
    ///
    /// # Errors
    /// [`WireError::Gone`] when `page.next` is too old: the list starts anew.
    pub async fn list_each(
        &self,
        (form, sieve): (Form, &Sieve),
        kind: &Served,
        scope: &Scope,
        page: PageOf<'_>,
        take: &mut (dyn FnMut(Listed) + Send),
    ) -> Result<Option<String>, WireError> {
        // The semaphore is never closed.
        let _pages = self.pages.acquire().await;
        let asked = Asked::of("list", kind, scope.namespace.as_deref());
        let mut request = request(&asked, form, kind, scope, page)?;
        if let Some(turn) = self.turn().await {
            request.extensions_mut().insert(turn);
        }
        let read = self.read_page(&asked, request, sieve, take);
        let read = in_time(read).await;
        self.reach.heard(&read);
        read
    }

    async fn read_page(
        &self,
        asked: &Asked<'_>,
        request: Request<Vec<u8>>,
        sieve: &Sieve,
        take: &mut (dyn FnMut(Listed) + Send),
    ) -> Result<Option<String>, WireError> {
        let body = self.client().request_stream(request).await;
        let mut body = pin!(body.map_err(|error| asked.sort(error))?);
        let (mut splitter, mut reader) = (Splitter::default(), PageReader::new(sieve, take));
        loop {
            let part = body.fill_buf().await.map_err(|error| broken(&error))?;
            if part.is_empty() {
                break;
            }
            let length = part.len();
            splitter
                .feed(part, &mut |found| reader.take(found))
                .map_err(Ended::sort)?;
            body.as_mut().consume(length);
        }
        let envelope = splitter.end().map_err(|why| Ended::Uncut(why).sort())?;
        reader.end(&envelope).map_err(Ended::sort)
    }
}

fn request(
    asked: &Asked<'_>,
    form: Form,
    kind: &Served,
    scope: &Scope,
    page: PageOf<'_>,
) -> Result<Request<Vec<u8>>, WireError> {
    let mut query = Query::default();
    query.add("labelSelector", scope.selector.as_deref());
    query.add("fieldSelector", scope.fields.as_deref());
    let limit = (page.limit > 0).then(|| page.limit.to_string());
    query.add("limit", limit.as_deref());
    query.add("continue", page.next);
    let accept = match form {
        Form::Whole => JSON,
        Form::Metadata => METADATA,
    };
    Request::builder()
        .method(Method::GET)
        .uri(query.onto(kind.collection_path(scope.namespace.as_deref())))
        .header(header::ACCEPT, accept)
        // Packing costs the API server more than it saves on the networks of clusters.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Vec::new())
        .map_err(|_| asked.unwritable())
}

/// Hands out what is found, the version first.
struct PageReader<'a> {
    sieve: &'a Sieve,
    take: &'a mut (dyn FnMut(Listed) + Send),
    /// Objects that came in front of the version, which no server sends so.
    early: Option<Vec<Node>>,
}

impl<'a> PageReader<'a> {
    fn new(sieve: &'a Sieve, take: &'a mut (dyn FnMut(Listed) + Send)) -> Self {
        Self {
            sieve,
            take,
            early: Some(Vec::new()),
        }
    }

    fn take(&mut self, found: Found<'_>) -> Result<(), Ended> {
        match found {
            Found::Items(head) => {
                let head: Envelope = serde_json::from_slice(head)?;
                if !head.metadata.resource_version.is_empty() {
                    self.early = None;
                    (self.take)(Listed::Version(head.metadata.resource_version));
                }
            }
            Found::Item(text) => {
                let object = self.sieve.read(text)?;
                match &mut self.early {
                    Some(early) => early.push(object),
                    None => (self.take)(Listed::Object(object)),
                }
            }
        }
        Ok(())
    }

    fn end(mut self, envelope: &[u8]) -> Result<Option<String>, Ended> {
        let Envelope { metadata } = serde_json::from_slice(envelope)?;
        if let Some(early) = self.early.take() {
            (self.take)(Listed::Version(metadata.resource_version));
            for object in early {
                (self.take)(Listed::Object(object));
            }
        }
        Ok(metadata.next.filter(|next| !next.is_empty()))
    }
}
