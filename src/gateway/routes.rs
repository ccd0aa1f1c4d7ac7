//! The routes of the webhooks: limits of size, time and number around the reviews.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout},
};

use super::{
    Gateway, convert, instances, kinds, protection,
    queues::Seat,
    recorded,
    review::{Admission, Answer, ConversionRequest},
};
use crate::metrics::{Webhook, WebhookResult};

/// The longest body in bytes: the largest object that the API server stores has 1.5 MiB, and an update sends it twice.
const BODY_BYTES: usize = 3 * 1024 * 1024;
/// The memory that all bodies together may take, in KiB.
pub(super) const BODIES_KIB: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY: Duration = Duration::from_secs(5);
/// How long a review of admission may take: less than the API server waits, so that it hears the reason.
const REVIEW: Duration = Duration::from_millis(2500);
/// The share of it that reads may take.
const READS: Duration = Duration::from_secs(2);
/// How long a conversion may take.
const CONVERSION: Duration = Duration::from_secs(25);
/// How long a request may wait for memory, and then for a seat.
const QUEUED: Duration = Duration::from_secs(1);

/// All routes. Only POST is answered.
pub(super) fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/validate", post(validate))
        .route("/mutate", post(mutate))
        .route("/convert", post(convert_objects))
        .route("/katalogs", post(katalogs))
        .route("/deletion-protection", post(deletion_protection))
        .with_state(gateway)
}

/// An error response, for a request that gets no review.
#[derive(Debug)]
struct Refused(StatusCode, Cow<'static, str>);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let retry = (self.0 == StatusCode::TOO_MANY_REQUESTS)
            .then_some([(header::RETRY_AFTER, HeaderValue::from_static("1"))]);
        let text = format!("{}\n", self.1);
        match retry {
            Some(retry) => (self.0, retry, text).into_response(),
            None => (self.0, text).into_response(),
        }
    }
}

impl Refused {
    fn result(&self) -> WebhookResult {
        if self.0 == StatusCode::TOO_MANY_REQUESTS {
            WebhookResult::Throttled
        } else {
            WebhookResult::Error
        }
    }
}

const TOO_LARGE: Refused = Refused(
    StatusCode::PAYLOAD_TOO_LARGE,
    Cow::Borrowed("the body has more than 3 MiB"),
);
const FULL: Refused = Refused(
    StatusCode::TOO_MANY_REQUESTS,
    Cow::Borrowed("too many large requests are in progress"),
);
const BUSY: Refused = Refused(
    StatusCode::TOO_MANY_REQUESTS,
    Cow::Borrowed("too many requests for the same operator wait"),
);

async fn validate(State(gateway): State<Gateway>, body: Body) -> Response {
    let work = admission(&gateway, body, Webhook::Validate);
    counted(&gateway, Webhook::Validate, work).await
}

async fn mutate(State(gateway): State<Gateway>, body: Body) -> Response {
    let work = admission(&gateway, body, Webhook::Mutate);
    counted(&gateway, Webhook::Mutate, work).await
}

async fn katalogs(State(gateway): State<Gateway>, body: Body) -> Response {
    let work = async {
        let (request, _memory) = parse(&gateway, body, Admission::parse).await?;
        let _seat = seat(&gateway, "katalogs").await?;
        let review = Box::pin(kinds::review(&gateway, &request));
        Ok(answered(&request, &bounded(review).await))
    };
    counted(&gateway, Webhook::Katalogs, work).await
}

async fn deletion_protection(State(gateway): State<Gateway>, body: Body) -> Response {
    let work = async {
        let (request, _memory) = parse(&gateway, body, Admission::parse).await?;
        let answer = protection::record(&gateway, &request);
        Ok(answered(&request, &answer))
    };
    counted(&gateway, Webhook::DeletionProtection, work).await
}

async fn convert_objects(State(gateway): State<Gateway>, body: Body) -> Response {
    let work = async {
        let (request, _memory) = parse(&gateway, body, ConversionRequest::parse).await?;
        recorded::until_known(&gateway, &request.desired_api_version).await;
        let of = format!("convert {}", request.desired_api_version);
        let _seat = seat(&gateway, &of).await?;
        let review = convert::review(&gateway, request);
        match timeout(CONVERSION, review).await {
            Ok((bytes, done)) => {
                let result = if done {
                    WebhookResult::Allowed
                } else {
                    WebhookResult::Denied
                };
                Ok((json(bytes), result))
            }
            Err(_) => Err(Refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "the conversion took too long".into(),
            )),
        }
    };
    counted(&gateway, Webhook::Convert, work).await
}

/// Judges or completes a custom resource.
async fn admission(
    gateway: &Gateway,
    body: Body,
    webhook: Webhook,
) -> Result<(Response, WebhookResult), Refused> {
    let (request, _memory) = parse(gateway, body, Admission::parse).await?;
    let catalogue = gateway.catalogue.load_full();
    let resource = &request.resource;
    let (group, version) = (&*resource.group, &*resource.version);
    let plan = catalogue.operator(group, version, &resource.plural);
    let Some(plan) = plan.cloned() else {
        // Another replica has noticed first that the entry has gone, or its configuration remains: there are no rules.
        return Ok(answered(&request, &Answer::default()));
    };
    let _seat = seat(gateway, &plan.full_name()).await?;
    let review = instances::review(gateway, &request, &plan, webhook, READS);
    Ok(answered(&request, &bounded(review).await))
}

async fn bounded(review: impl Future<Output = Answer>) -> Answer {
    let late = || Answer::denied("the review took too long: try again");
    timeout(REVIEW, review).await.unwrap_or_else(|_| late())
}

async fn seat(gateway: &Gateway, of: &str) -> Result<Seat, Refused> {
    match timeout(QUEUED, gateway.queues.seat(of)).await {
        Ok(Ok(seat)) => Ok(seat),
        Ok(Err(_)) | Err(_) => Err(BUSY),
    }
}

fn answered(request: &Admission, answer: &Answer) -> (Response, WebhookResult) {
    let result = if answer.denial.is_none() {
        WebhookResult::Allowed
    } else {
        WebhookResult::Denied
    };
    let review = answer.review(&request.uid);
    (
        json(serde_json::to_vec(&review).unwrap_or_default()),
        result,
    )
}

fn json(bytes: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], bytes).into_response()
}

/// Reads and parses a body. Its memory is counted as long as the permit lives.
async fn parse<T>(
    gateway: &Gateway,
    body: Body,
    parse: fn(&[u8]) -> Result<T, super::review::Malformed>,
) -> Result<(T, OwnedSemaphorePermit), Refused> {
    let length = body.size_hint().exact();
    let memory = memory(gateway, length).await?;
    let bytes: Bytes = match timeout(BODY, Limited::new(body, BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(TOO_LARGE),
        Ok(Err(_)) => {
            let why = "the body ended early";
            return Err(Refused(StatusCode::BAD_REQUEST, why.into()));
        }
        Err(_) => {
            let why = "the body did not arrive in time";
            return Err(Refused(StatusCode::REQUEST_TIMEOUT, why.into()));
        }
    };
    match parse(&bytes) {
        Ok(parsed) => Ok((parsed, memory)),
        Err(error) => Err(Refused(StatusCode::BAD_REQUEST, error.to_string().into())),
    }
}

/// Waits until there is memory for a body: as much as its length says, else the most that it may have.
async fn memory(gateway: &Gateway, length: Option<u64>) -> Result<OwnedSemaphorePermit, Refused> {
    let most = BODY_BYTES as u64;
    let bytes = length.unwrap_or(most);
    if bytes > most {
        return Err(TOO_LARGE);
    }
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let waiting = Arc::clone(&gateway.bodies).acquire_many_owned(kib);
    match timeout(QUEUED, waiting).await {
        Ok(Ok(memory)) => Ok(memory),
        Ok(Err(_)) | Err(_) => Err(FULL),
    }
}

async fn counted(
    gateway: &Gateway,
    webhook: Webhook,
    work: impl Future<Output = Result<(Response, WebhookResult), Refused>>,
) -> Response {
    let start = Instant::now();
    let (response, result) = match work.await {
        Ok(done) => done,
        Err(refused) => {
            let result = refused.result();
            (refused.into_response(), result)
        }
    };
    gateway.metrics.count(webhook, result, start.elapsed());
    response
}
