//! The routes of the webhooks: limits of size, time and number around the reviews.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::time::{Instant, timeout};

use super::{
    Gateway,
    bodies::{BodyMemory, HeldBody, Unread},
    callers::ReviewCaller,
    convert, instances, kinds, protection,
    queues::{FairQueues, Seat},
    recorded,
    review::{Admission, Answer, ConversionRequest},
};
use orkestra_operator::metrics::{Webhook, WebhookResult};

/// The longest body in bytes: the largest object that the API server stores has 1.5 MiB, and an update sends it twice.
const BODY_BYTES: usize = 3 * 1024 * 1024;
/// The memory that the bodies of all reviews together may take, and that of all conversions, in bytes.
pub(crate) const BODIES_BYTES: usize = 64 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY: Duration = Duration::from_secs(5);
/// How long a review of admission may take: less than the API server waits, so that it hears the reason.
const REVIEW: Duration = Duration::from_millis(2500);
/// The share of it that reads may take.
const READS: Duration = Duration::from_secs(2);
/// How long a conversion may take.
const CONVERSION: Duration = Duration::from_secs(25);
/// How long a request may wait for a seat.
const QUEUED: Duration = Duration::from_secs(1);

/// All routes. Only POST is answered.
pub(crate) fn router(gateway: Gateway) -> Router {
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
/// There may be rules: `failurePolicy` decides.
const UNDECIDED: Refused = Refused(
    StatusCode::SERVICE_UNAVAILABLE,
    Cow::Borrowed("it is not known yet which rules are in force"),
);
const BUSY: Refused = Refused(
    StatusCode::TOO_MANY_REQUESTS,
    Cow::Borrowed("too many requests for the same operator wait"),
);

/// The limits of one kind of requests: others cannot use them up.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) bodies: BodyMemory,
    pub(crate) queues: FairQueues,
}

impl Budget {
    /// A budget with that many seats.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            bodies: BodyMemory::new(BODIES_BYTES),
            queues: FairQueues::new(seats),
        }
    }

    async fn seat(&self, of: &str, caller: ReviewCaller) -> Result<Seat, Refused> {
        match timeout(QUEUED, self.queues.seat(of, caller.peer)).await {
            Ok(Ok(seat)) => Ok(seat),
            Ok(Err(_)) | Err(_) => Err(BUSY),
        }
    }

    /// Reads and parses a body. Its memory is counted as long as the held body lives.
    async fn parse<T>(
        &self,
        (caller, body): (ReviewCaller, Body),
        parse: fn(&[u8]) -> Result<T, super::review::Malformed>,
    ) -> Result<(T, HeldBody), Refused> {
        let reading = self.bodies.read(caller.peer, body, BODY_BYTES);
        let held = match timeout(BODY, reading).await {
            Ok(Ok(held)) => held,
            Ok(Err(Unread::TooLarge)) => return Err(TOO_LARGE),
            Ok(Err(Unread::Full)) => return Err(FULL),
            Ok(Err(Unread::Broken)) => {
                let why = "the body ended early";
                return Err(Refused(StatusCode::BAD_REQUEST, why.into()));
            }
            Err(_) => {
                let why = "the body did not arrive in time";
                return Err(Refused(StatusCode::REQUEST_TIMEOUT, why.into()));
            }
        };
        match parse(&held.bytes) {
            Ok(parsed) => Ok((parsed, held)),
            Err(error) => Err(Refused(StatusCode::BAD_REQUEST, error.to_string().into())),
        }
    }
}

async fn validate(State(gateway): State<Gateway>, caller: ReviewCaller, body: Body) -> Response {
    let work = admission(&gateway, (caller, body), Webhook::Validate);
    Box::pin(counted(&gateway, Webhook::Validate, work)).await
}

async fn mutate(State(gateway): State<Gateway>, caller: ReviewCaller, body: Body) -> Response {
    let work = admission(&gateway, (caller, body), Webhook::Mutate);
    Box::pin(counted(&gateway, Webhook::Mutate, work)).await
}

async fn katalogs(State(gateway): State<Gateway>, caller: ReviewCaller, body: Body) -> Response {
    let work = async {
        let budget = &gateway.reviews;
        let (request, _memory) = budget.parse((caller, body), Admission::parse).await?;
        let seat = Arc::new(budget.seat("katalogs", caller).await?);
        let review = Box::pin(kinds::review(&gateway, &request, seat));
        Ok(answered(&request, &bounded(review).await))
    };
    counted(&gateway, Webhook::Katalogs, work).await
}

async fn deletion_protection(
    State(gateway): State<Gateway>,
    caller: ReviewCaller,
    body: Body,
) -> Response {
    let work = async {
        let budget = &gateway.reviews;
        let (request, _memory) = budget.parse((caller, body), Admission::parse).await?;
        let answer = protection::record(&gateway, caller, &request);
        Ok(answered(&request, &answer))
    };
    counted(&gateway, Webhook::DeletionProtection, work).await
}

async fn convert_objects(
    State(gateway): State<Gateway>,
    caller: ReviewCaller,
    body: Body,
) -> Response {
    let work = async {
        let budget = &gateway.converting;
        let (request, _memory) = budget
            .parse((caller, body), ConversionRequest::parse)
            .await?;
        recorded::until_known(&gateway, &request.desired_api_version).await;
        let _seat = budget.seat(&request.desired_api_version, caller).await?;
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
    (caller, body): (ReviewCaller, Body),
    webhook: Webhook,
) -> Result<(Response, WebhookResult), Refused> {
    let budget = &gateway.reviews;
    let (request, _memory) = budget.parse((caller, body), Admission::parse).await?;
    let catalogue = gateway.catalogue.load_full();
    let resource = &request.resource;
    let (group, version) = (&*resource.group, &*resource.version);
    let plan = catalogue.operator(group, version, &resource.plural);
    let Some(plan) = plan.cloned() else {
        if !catalogue.complete {
            return Err(UNDECIDED);
        }
        // Another replica has noticed first that the entry has gone, or its configuration remains: there are no rules.
        return Ok(answered(&request, &Answer::default()));
    };
    let _seat = budget.seat(&plan.full_name(), caller).await?;
    let review = instances::review(gateway, (caller, &request), &plan, webhook, READS);
    Ok(answered(&request, &bounded(review).await))
}

async fn bounded(review: impl Future<Output = Answer>) -> Answer {
    let late = || Answer::denied("the review took too long: try again");
    timeout(REVIEW, review).await.unwrap_or_else(|_| late())
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
