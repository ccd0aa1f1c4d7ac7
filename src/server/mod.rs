//! The HTTP surface: probes, metrics and the `/katalog` pages. It reads and never writes.
//!
//! ```text
//!  request ─► router ─┬─ probes, metrics            from this process
//!                     └─ /katalog ─► address ─┬─ operators    from the directory
//!                                             └─ instances    live from the API server, bounded in number and time
//! ```
//!
//! [`router`] is a function, so that tests send requests without a port; [`listen`] serves it on one. `docs/http-api.md`
//! says what the answers hold.

mod address;
mod error;
mod instances;
pub mod listen;
mod live;
mod operators;
mod stage;

use std::{fmt, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Query, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::sync::Semaphore;

pub use error::ApiError;
pub use stage::Stage;

use crate::{
    lead::Leadership,
    meta::Directory,
    metrics::Metrics,
    runtime::{context::Clock, reach::Reach},
};
use address::{Page, Target};

/// Requests that may read from the API server at a time; others wait within their deadline.
const LIVE_REQUESTS: usize = 4;

/// What the pages read. Cloning is cheap.
#[derive(Clone)]
pub struct Pages {
    directory: Directory,
    metrics: Metrics,
    stage: Stage,
    client: kube::Client,
    clock: Clock,
    leadership: Leadership,
    reach: Reach,
    live: Arc<Semaphore>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Pages {
    /// Pages about the Katalogs of `directory`, with instances read through `client`.
    pub fn new(
        directory: Directory,
        metrics: Metrics,
        stage: Stage,
        client: kube::Client,
        clock: Clock,
    ) -> Self {
        Self {
            directory,
            metrics,
            stage,
            client,
            clock,
            leadership: Leadership::alone("".into()),
            reach: Reach::unquestioned(),
            live: Arc::new(Semaphore::new(LIVE_REQUESTS)),
        }
    }

    /// The same, telling who leads.
    #[must_use]
    pub fn with_leadership(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// The same, telling whether the API server can be reached.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Why it is not ready; nothing when it is. One that follows is ready as one that leads is: its caches are filled.
    fn unready(&self) -> Option<String> {
        let standing = self.leadership.standing();
        match self.stage.now() {
            stage::Now::Stopping => Some("stopping".to_owned()),
            _ if standing.problem.is_some() => standing
                .problem
                .map(|problem| format!("no part in the election: {problem}")),
            stage::Now::Starting => Some("starting".to_owned()),
            stage::Now::Ready if !standing.heard => {
                Some("starting: the Lease was not seen yet".to_owned())
            }
            stage::Now::Ready if self.reach.view().borrow().away.is_some() => {
                Some("the API server cannot be reached".to_owned())
            }
            stage::Now::Ready => None,
        }
    }
}

/// All routes. Only GET and HEAD are answered; whatever else is tried gets 405.
pub fn router(pages: Pages) -> Router {
    Router::new()
        .route("/livez", get(live_probe))
        .route("/health", get(live_probe))
        .route("/readyz", get(ready_probe))
        .route("/ready", get(ready_probe))
        .route("/startup", get(startup_probe))
        .route("/metrics", get(metrics))
        .route("/katalog", get(summary))
        .route("/katalog/", get(summary))
        .route("/katalog/{*path}", get(katalog))
        .fallback(|| async { ApiError::not_found("there is no such page", "try /katalog") })
        .layer(middleware::from_fn(only_reads))
        .with_state(pages)
}

async fn only_reads(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "only GET is answered",
        "changes are made with kubectl",
    );
    (
        [(header::ALLOW, HeaderValue::from_static("GET, HEAD"))],
        error,
    )
        .into_response()
}

async fn live_probe() -> &'static str {
    "ok\n"
}

async fn ready_probe(State(pages): State<Pages>) -> (StatusCode, String) {
    match pages.unready() {
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        None => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn startup_probe(State(pages): State<Pages>) -> (StatusCode, &'static str) {
    match pages.stage.now() {
        stage::Now::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        stage::Now::Ready | stage::Now::Stopping => (StatusCode::OK, "ok\n"),
    }
}

async fn metrics(State(pages): State<Pages>) -> Response {
    let parts = Body::from_stream(futures::stream::iter(pages.metrics.parts()));
    ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], parts).into_response()
}

async fn summary(State(pages): State<Pages>) -> Response {
    Json(operators::summary(
        &pages.directory.katalogs(),
        pages.unready().is_none(),
        &pages.leadership,
        &pages.reach.view().borrow(),
    ))
    .into_response()
}

/// Everything below `/katalog/`: addresses have a long and a short form, so one function takes them apart.
async fn katalog(
    State(pages): State<Pages>,
    Path(path): Path<String>,
    query: Result<Query<live::Selection>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, ApiError> {
    let katalogs = pages.directory.katalogs();
    let Target {
        katalog,
        operator,
        page,
    } = address::resolve(&katalogs, &path)?;
    let leads = pages.leadership.standing().leads;
    match page {
        Page::Operator => Ok(Json(operators::operator(katalog, operator, leads)).into_response()),
        Page::Health => Ok(operators::health(
            katalog,
            operator,
            leads,
            pages.clock.now(),
        )),
        Page::Instances => {
            let Query(selection) =
                query.map_err(|error| ApiError::bad_request(error.body_text(), ""))?;
            let found =
                live::bounded(&pages.live, instances::list(&pages, operator, selection)).await?;
            Ok(Json(found).into_response())
        }
        Page::Instance { namespace, name } => {
            let one = instances::one(&pages, operator, namespace, name);
            Ok(Json(live::bounded(&pages.live, one).await?).into_response())
        }
    }
}

#[cfg(test)]
mod tests;
