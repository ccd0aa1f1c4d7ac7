//! Lists that are decoded item by item while they arrive, see [`orkestra_object::decode`].

use std::pin::pin;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::{Method, Request, header};
pub use orkestra_object::decode::Listed;
use orkestra_object::{
    Identity,
    decode::{BadPage, Page, Version},
    value::Projection,
};

use super::{
    Cluster, ClusterError, Form, JSON, Scope, Served,
    error::{RequestSubject, broken},
    served::Query,
};

/// The number of pages that are read concurrently by all lists of the process: at the start, not everything may be requested at
/// once, for the sake of the API server and of our memory.
pub(crate) const PAGES_AT_ONCE: usize = 8;

/// Source: Kubernetes API concepts, "Metadata-only representation".
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The page of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageOf<'a> {
    /// The most objects; 0 is all.
    pub limit: u32,
    /// The continue token of the last page; `None` for the first.
    pub next: Option<&'a str>,
}

/// The error, without quoting the response.
fn bad(page: &BadPage) -> ClusterError {
    ClusterError::Unavailable(page.to_string())
}

impl Cluster {
    /// Reads one page of a list and passes what `projection` keeps of each object to `take` as it arrives; returns the continue token
    /// of the next page, or `None` on the last.
    ///
    /// No resourceVersion is requested, so a first page is never older than any state that was returned before. Objects that were
    /// passed on before an error are still valid.
    ///
    /// # Errors
    /// [`ClusterError::Gone`] if `page.next` is too old: the list has to start again.
    pub async fn list_each(
        &self,
        (form, projection): (Form, &Projection),
        kind: &Served,
        scope: &Scope,
        page: PageOf<'_>,
        take: &mut (dyn FnMut(Listed) + Send),
    ) -> Result<Option<String>, ClusterError> {
        // The semaphore is never closed.
        let _pages = self.pages.acquire().await;
        let asked = RequestSubject::of("list", kind, scope.namespace.as_deref());
        let request = request(&asked, form, kind, scope, page)?;
        self.answered(request, |request| {
            self.read_page(&asked, request, projection, take)
        })
        .await
    }

    /// Returns the API server's present resourceVersion for that kind and scope: never older than any that was returned before,
    /// unless the API server was restored to an older state.
    ///
    /// # Errors
    /// The errors of a list.
    pub async fn state_of(&self, kind: &Served, scope: &Scope) -> Result<Version, ClusterError> {
        let mut version = Version::from("");
        let mut take = |listed| {
            if let Listed::Version(text) = listed {
                version = Version::from(&*text);
            }
        };
        let page = PageOf {
            limit: 1,
            next: None,
        };
        let how = (Form::Metadata, &Identity::projection());
        self.list_each(how, kind, scope, page, &mut take).await?;
        Ok(version)
    }

    async fn read_page(
        &self,
        asked: &RequestSubject<'_>,
        request: Request<Vec<u8>>,
        projection: &Projection,
        take: &mut (dyn FnMut(Listed) + Send),
    ) -> Result<Option<String>, ClusterError> {
        let body = self.client.request_stream(request).await;
        let mut body = pin!(body.map_err(|error| asked.sort(error))?);
        let mut page = Page::new(projection);
        loop {
            let part = body.fill_buf().await.map_err(|error| broken(&error))?;
            if part.is_empty() {
                break;
            }
            let length = part.len();
            page.feed(part, take).map_err(|page| bad(&page))?;
            body.as_mut().consume(length);
        }
        page.end(take).map_err(|page| bad(&page))
    }
}

/// Reads a complete page with the readable parts of all its objects.
pub(crate) fn read_whole(text: &str) -> Result<super::Page, ClusterError> {
    let projection = Projection::whole();
    let mut answers = super::Page::default();
    let mut take = |listed| match listed {
        Listed::Version(version) => answers.resource_version = version,
        Listed::Object(object) => answers.items.push(object),
    };
    let mut page = Page::new(&projection);
    let read = page.feed(text.as_bytes(), &mut take);
    let next = read.and_then(|()| page.end(&mut take));
    answers.next = next.map_err(|page| bad(&page))?;
    Ok(answers)
}

fn request(
    asked: &RequestSubject<'_>,
    form: Form,
    kind: &Served,
    scope: &Scope,
    page: PageOf<'_>,
) -> Result<Request<Vec<u8>>, ClusterError> {
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
        // Compression costs the API server more than it saves on cluster networks.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Vec::new())
        .map_err(|_| asked.unwritable())
}
