//! Access to metrics and pages: clients whose bearer token the API server authenticates, and whom it permits to `get` the path.
//!
//! ```text
//!  token ─► hash ─► cache ─┬─ known ─────────────────────────────────────────► yes, 401 or 403
//!                          └─ unknown ─► Quota of the peer ─► a turn ─► TokenReview, SubjectAccessReview
//!                                           │ 429              │ 503        │ 503
//! ```
//!
//! A token is never stored, only its hash. A result of the API server is cached for a minute, a refusal for ten seconds. A peer
//! whose tokens are refused repeatedly causes no more reviews for a while, and few reviews run concurrently, with their own
//! account in flow control.

mod cache;
mod review;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use orkestra_cluster::requests::Cluster;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use self::{
    cache::Cache,
    review::{Reviewer, TokenUser},
};
use super::{ApiError, listen::Peer};

/// How long a user or a permission is cached.
const KNOWN: Duration = Duration::from_mins(1);
/// How long a refusal is cached.
const REFUSED: Duration = Duration::from_secs(10);
/// The number of cached tokens, and of cached permissions.
const ENTRIES: usize = 1024;
/// The most concurrent reviews.
const AT_ONCE: usize = 4;
/// The most requests that wait for a review.
const WAITING: usize = 32;
/// How long a request may wait for its reviews.
const DEADLINE: Duration = Duration::from_secs(5);
/// Refusals within [`REFUSED`] after which a peer causes no more reviews.
const REFUSALS: u32 = 10;
/// The longest token that is accepted, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Access control for metrics and pages. Cheap to clone.
#[derive(Clone)]
pub struct Access(Option<Arc<Guard>>);

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.0.is_some() { "reviewed" } else { "open" };
        f.debug_tuple("Access").field(&how).finish()
    }
}

type TokenHash = [u8; 32];

struct Guard {
    reviewer: Reviewer,
    /// Requests that wait for a review or are being reviewed.
    room: Semaphore,
    slots: Semaphore,
    known: Mutex<AccessCache>,
}

/// The cached results of the API server.
struct AccessCache {
    /// The user of a token; `None` if the token is not valid.
    users: Cache<TokenHash, Option<Arc<TokenUser>>>,
    /// Whether a token's user may get a path.
    permissions: Cache<(TokenHash, Arc<str>), bool>,
    /// The number of refusals by peer.
    refusals: Cache<IpAddr, u32>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// The request has no bearer token.
    Anonymous,
    /// The token is not valid.
    Unknown,
    /// The user lacks the permission.
    Forbidden { user: Arc<TokenUser> },
    /// The peer was refused too often.
    TooMany,
    /// No review is possible now.
    Unreviewed(String),
}

impl Access {
    /// Access for everyone, for ports that only the machine's own users can reach.
    pub fn open() -> Self {
        Self(None)
    }

    /// Access for clients that the API server behind `cluster` authenticates and permits.
    pub fn reviewed(cluster: &Cluster) -> Self {
        Self(Some(Arc::new(Guard {
            reviewer: Reviewer::new(cluster),
            room: Semaphore::new(AT_ONCE + WAITING),
            slots: Semaphore::new(AT_ONCE),
            known: Mutex::new(AccessCache {
                users: Cache::new(ENTRIES),
                permissions: Cache::new(ENTRIES),
                refusals: Cache::new(ENTRIES),
            }),
        })))
    }
}

/// Passes on a request only if its token's user may `get` its path.
pub(crate) async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let Some(guard) = &access.0 else {
        return next.run(request).await;
    };
    let peer = request.extensions().get::<Peer>();
    let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0);
    let path = match percent_encoding::percent_decode_str(request.uri().path()).decode_utf8() {
        Ok(path) => path.into_owned(),
        Err(_) => return ApiError::bad_request("the path is not UTF-8", "").into_response(),
    };
    match guard.may(request.headers(), &path, network(peer)).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(&path),
    }
}

/// Returns the peer's network: all IPv6 addresses that one machine can choose from count as one.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns the token of `Authorization: Bearer <token>`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    let is_one = scheme.eq_ignore_ascii_case("bearer")
        && !token.is_empty()
        && token.len() <= LONGEST_TOKEN
        && !token.contains(' ');
    is_one.then_some(token)
}

impl Guard {
    async fn may(&self, headers: &HeaderMap, path: &str, peer: IpAddr) -> Result<(), Refusal> {
        let token = bearer(headers).ok_or(Refusal::Anonymous)?;
        let hash: TokenHash = Sha256::digest(token.as_bytes()).into();
        let path: Arc<str> = path.into();
        if let Some(known) = self.known.lock().answer(hash, &path) {
            return known;
        }
        if self.known.lock().refusals.get(&peer, Instant::now()) >= Some(REFUSALS) {
            return Err(Refusal::TooMany);
        }
        let busy = || Refusal::Unreviewed("too many tokens are waiting for a review".to_owned());
        let _place = self.room.try_acquire().map_err(|_| busy())?;
        let deadline = Instant::now() + DEADLINE;
        let late = |_| {
            let seconds = DEADLINE.as_secs();
            Refusal::Unreviewed(format!(
                "the API server did not review it within {seconds} s"
            ))
        };
        // The semaphore is never closed; if it were, there would be no limit.
        let turn = timeout_at(deadline, self.slots.acquire()).await;
        let _turn = turn.map_err(late)?.ok();
        // Another request may have been reviewed in the meantime.
        if let Some(known) = self.known.lock().answer(hash, &path) {
            return known;
        }
        let mut attempt = Attempt {
            guard: self,
            peer,
            is_over: false,
        };
        let reviewed = timeout_at(deadline, self.review(token, hash, &path)).await;
        attempt.is_over = !matches!(
            reviewed,
            Ok(Err(Refusal::Unknown | Refusal::Forbidden { .. }))
        );
        reviewed.map_err(late)?
    }

    /// Requests the reviews whose results are not cached.
    async fn review(&self, token: &str, hash: TokenHash, path: &Arc<str>) -> Result<(), Refusal> {
        let user = self.known.lock().users.get(&hash, Instant::now()).flatten();
        let user = if let Some(user) = user {
            user
        } else {
            let user = self.reviewer.user(token).await;
            let user = user.map_err(Refusal::Unreviewed)?.map(Arc::new);
            self.known.lock().learn_user(hash, user.clone());
            user.ok_or(Refusal::Unknown)?
        };
        let allowed = self.reviewer.may_get(&user, path).await;
        let allowed = allowed.map_err(Refusal::Unreviewed)?;
        self.known
            .lock()
            .learn_permission((hash, path.clone()), allowed);
        allowed.then_some(()).ok_or(Refusal::Forbidden { user })
    }
}

/// A review for a peer. It counts as refused unless it ended otherwise, even if the peer did not wait for it.
struct Attempt<'g> {
    guard: &'g Guard,
    peer: IpAddr,
    /// The review ended without a refusal.
    is_over: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.guard
                .known
                .lock()
                .count_refusal(self.peer, Instant::now());
        }
    }
}

impl AccessCache {
    /// Returns the cached result of a request; `None` if a review is needed.
    fn answer(&mut self, hash: TokenHash, path: &Arc<str>) -> Option<Result<(), Refusal>> {
        let now = Instant::now();
        let Some(user) = self.users.get(&hash, now)? else {
            return Some(Err(Refusal::Unknown));
        };
        let allowed = self.permissions.get(&(hash, path.clone()), now)?;
        Some(allowed.then_some(()).ok_or(Refusal::Forbidden { user }))
    }

    fn learn_user(&mut self, hash: TokenHash, user: Option<Arc<TokenUser>>) {
        let now = Instant::now();
        let lasts = if user.is_some() { KNOWN } else { REFUSED };
        self.users.put(hash, user, now + lasts, now);
    }

    fn learn_permission(&mut self, what: (TokenHash, Arc<str>), allowed: bool) {
        let now = Instant::now();
        let lasts = if allowed { KNOWN } else { REFUSED };
        self.permissions.put(what, allowed, now + lasts, now);
    }

    /// Each refusal restarts the period: the count is cleared after ten seconds without a refusal.
    fn count_refusal(&mut self, peer: IpAddr, now: Instant) {
        let count = self.refusals.get(&peer, now).unwrap_or(0).saturating_add(1);
        self.refusals.put(peer, count, now + REFUSED, now);
    }
}

impl Refusal {
    fn into_response(self, path: &str) -> Response {
        let later = [(header::RETRY_AFTER, HeaderValue::from_static("10"))];
        let soon = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
        match self {
            Self::Anonymous => unauthorized(
                "Bearer realm=\"orkestra\"",
                "a bearer token is required",
                "send `Authorization: Bearer <token>`; `kubectl create token` creates a token",
            ),
            Self::Unknown => unauthorized(
                "Bearer realm=\"orkestra\", error=\"invalid_token\"",
                "the bearer token is not valid",
                "it may have expired; `kubectl create token` creates a new one",
            ),
            Self::Forbidden { user } => {
                let path = super::error::short(path);
                let hint = format!(
                    "grant a ClusterRole with the rule nonResourceURLs: [\"{path}\"], verbs: [\"get\"]"
                );
                let error = format!("user {:?} cannot get path {path:?}", user.name());
                ApiError::new(StatusCode::FORBIDDEN, error, hint).into_response()
            }
            Self::TooMany => {
                let error = "too many requests from this address were refused";
                let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, error, "retry later");
                (later, error).into_response()
            }
            Self::Unreviewed(why) => {
                let error = format!("the bearer token cannot be reviewed: {why}");
                let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error, "try again");
                (soon, error).into_response()
            }
        }
    }
}

fn unauthorized(challenge: &'static str, error: &str, hint: &str) -> Response {
    let challenge = [(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    )];
    let error = ApiError::new(StatusCode::UNAUTHORIZED, error, hint);
    (challenge, error).into_response()
}
