//! The HTTP API: probes, metrics and the `/katalog` pages. It is read-only.
//!
//! ```text
//!  probe port ─► probes ─── from this process
//!  main port ─► router ─┬─ probes
//!                       └─ access ─┬─ metrics            from this process
//!                                  ├─ OpenAPI document   as committed
//!                                  └─ /katalog ─► address ─┬─ operators   from the directory
//!                                                          └─ instances   live from the API server, limited in number,
//!                                                                         size and time
//! ```
//!
//! [`router`] and [`probes`] are functions, so that tests send requests without a port; [`listen`] serves them on ports.
//! `docs/reference/http-api.md` and `docs/reference/openapi.json` describe the responses; both are generated from the types of the responses.

pub mod access;
mod address;
mod answers;
mod error;
mod health;
mod index;
mod instances;
pub mod listen;
mod live;
#[cfg(test)]
mod openapi;
mod operators;
mod project;
mod stage;
pub mod tls;

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
use http_body::Body as _;
use orkestra_cluster::{reach::Reach, requests::Cluster};
use orkestra_ground::Clock;

pub use error::ApiError;
pub use stage::{Liveness, Stage};

use access::Access;
use address::{Page, Target};
use orkestra_cluster::leader_election::Leadership;
use orkestra_controller::Directory;
use orkestra_operator::metrics::Metrics;

/// The `OpenAPI` document of the HTTP API, which a test generates.
const OPENAPI: &str = include_str!("../../../docs/reference/openapi.json");

/// The state that the pages show. Cheap to clone.
#[derive(Clone)]
pub struct Pages {
    directory: Directory,
    metrics: Metrics,
    stage: Stage,
    alive: Liveness,
    access: Access,
    reader: live::Reader,
    clock: Clock,
    leadership: Leadership,
    reach: Reach,
    live: Arc<live::ReadSlots>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Pages {
    /// Pages about the Katalogs of `directory`, with instances read through `cluster`; everyone may read them.
    pub fn new(
        directory: Directory,
        metrics: Metrics,
        stage: Stage,
        cluster: &Cluster,
        clock: Clock,
    ) -> Self {
        Self {
            directory,
            metrics,
            stage,
            alive: Liveness::default(),
            access: Access::open(),
            reader: live::Reader::new(cluster),
            clock,
            leadership: Leadership::alone("".into()),
            reach: cluster.reach().clone(),
            live: Arc::default(),
        }
    }

    /// The same, with the state of leader election.
    #[must_use]
    pub fn with_leadership(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// The same, restricted by `access`.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The same, with liveness from `alive`.
    #[must_use]
    pub fn with_liveness(self, alive: Liveness) -> Self {
        Self { alive, ..self }
    }

    /// Returns why this process is not ready; `None` if it is. A follower is ready like a leader, once its caches are filled.
    fn unready(&self) -> Option<String> {
        let standing = self.leadership.standing();
        match self.stage.now() {
            stage::CurrentStage::Stopping => Some("stopping".to_owned()),
            _ if standing.problem.is_some() => standing
                .problem
                .map(|problem| format!("cannot take part in leader election: {problem}")),
            stage::CurrentStage::Starting => Some("starting".to_owned()),
            stage::CurrentStage::Ready if !standing.heard => {
                Some("starting: the Lease has not been read yet".to_owned())
            }
            stage::CurrentStage::Ready if self.reach.view().borrow().away.is_some() => {
                Some("the API server cannot be reached".to_owned())
            }
            stage::CurrentStage::Ready => None,
        }
    }
}

/// All routes: the probes for everyone, the rest according to the access. Only GET and HEAD are answered.
pub fn router(pages: Pages) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/openapi/v3", get(openapi))
        .route("/katalog", get(summary))
        .route("/katalog/", get(summary))
        .route("/katalog/{*path}", get(katalog))
        .route_layer(middleware::from_fn_with_state(
            pages.access.clone(),
            access::check,
        ));
    let open = probe_routes().route("/", get(index::index));
    finish(open.merge(guarded), pages, "`/` lists the pages")
}

/// Only the probes, for a separate port.
pub fn probes(pages: Pages) -> Router {
    finish(probe_routes(), pages, "pages: /livez, /readyz, /startup")
}

fn probe_routes() -> Router<Pages> {
    Router::new()
        .route("/livez", get(live_probe))
        .route("/healthz", get(live_probe))
        .route("/health", get(live_probe))
        .route("/readyz", get(ready_probe))
        .route("/ready", get(ready_probe))
        .route("/startup", get(startup_probe))
}

fn finish(routes: Router<Pages>, pages: Pages, hint: &'static str) -> Router {
    routes
        .fallback(move || async move { ApiError::not_found("the page does not exist", hint) })
        .layer(middleware::from_fn(only_reads))
        .with_state(pages)
}

async fn only_reads(request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let error = ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are supported",
            "use kubectl to make changes",
        );
        let allow = [(header::ALLOW, HeaderValue::from_static("GET, HEAD"))];
        return (allow, error).into_response();
    }
    // A body would not be read, so it is refused: the connection ends with this response.
    if !request.body().is_end_stream() {
        return ApiError::bad_request("the request has a body", "send the request without a body")
            .into_response();
    }
    next.run(request).await
}

async fn live_probe(State(pages): State<Pages>) -> (StatusCode, String) {
    match pages.alive.check() {
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], OPENAPI).into_response()
}

async fn ready_probe(State(pages): State<Pages>) -> (StatusCode, String) {
    match pages.unready() {
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        None => (StatusCode::OK, "ok\n".to_owned()),
    }
}

async fn startup_probe(State(pages): State<Pages>) -> (StatusCode, &'static str) {
    match pages.stage.now() {
        stage::CurrentStage::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        stage::CurrentStage::Ready | stage::CurrentStage::Stopping => (StatusCode::OK, "ok\n"),
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

/// Handles everything below `/katalog/`: addresses have a long and a short form, so one function parses both.
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
    let shown = operator.plan(&operator.status.borrow()).pages;
    let is_shown = match page {
        Page::Operator => shown.info,
        Page::Health => shown.health,
        Page::Instances | Page::Instance { .. } => shown.resources,
    };
    if !is_shown {
        let hint = "`endpoints` in its Katalog disables it";
        return Err(ApiError::not_found(
            "this page of the operator is disabled",
            hint,
        ));
    }
    match page {
        Page::Operator => Ok(Json(operators::operator(
            &katalogs,
            katalog,
            operator,
            leads,
            &pages.metrics,
        ))
        .into_response()),
        Page::Health => Ok(health::health(katalog, operator, leads, pages.clock.now())),
        Page::Instances => {
            let Query(selection) =
                query.map_err(|error| ApiError::bad_request(error.body_text(), ""))?;
            let list = instances::list(&pages, operator, selection);
            Ok(Json(pages.live.run(list).await?).into_response())
        }
        Page::Instance { namespace, name } => {
            let one = instances::instance(&pages, operator, namespace, name);
            Ok(Json(pages.live.run(one).await?).into_response())
        }
    }
}

#[cfg(test)]
mod tests;
