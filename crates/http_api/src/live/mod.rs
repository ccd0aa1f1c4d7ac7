//! Limits on the cost of a request: the API server's time, and this process's memory.
//!
//! ```text
//!  request ─► a turn ─► page of a list, at most 8 MiB of text ─► the parts that are shown ─► response
//!                          └─ larger? the same with half as many objects
//! ```

use std::{fmt::Write as _, future::Future, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use jiff::Timestamp;
use orkestra_cluster::{
    client::flow::Share,
    requests::{Cluster, RawResponse, Served},
};
use orkestra_plan::ResourceType;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};

use super::{ApiError, error::short, project::WantedParts};

/// The most concurrent requests that read from the API server.
const AT_ONCE: usize = 4;
/// The most requests that wait for that.
const WAITING: usize = 32;
/// The deadline of a page.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest path for `?field=`, in bytes.
const LONGEST_FIELD: usize = 256;
/// The most segments of such a path.
const MOST_PARTS: usize = 16;
/// The longest response of the API server that is read, in bytes. The largest object has about 3 MB as JSON.
const LONGEST_ANSWER: usize = 8 << 20;
/// The most objects per request.
const PAGE: usize = 100;

/// The query parameters of `…/cr`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selection {
    /// A path whose value is shown for each item, such as `spec.image` or `status.conditions.0.message`.
    pub(crate) field: Option<String>,
    /// Only the instances of this namespace.
    pub(crate) namespace: Option<String>,
    /// The most instances.
    pub(crate) limit: Option<usize>,
    /// The position to continue from: `continue` of the previous page.
    #[serde(rename = "continue")]
    pub(crate) next: Option<String>,
}

/// Turns of requests that read from the API server: few run concurrently, and few wait.
#[derive(Debug)]
pub(crate) struct ReadSlots {
    /// Requests that wait or read.
    room: Semaphore,
    slots: Semaphore,
}

impl Default for ReadSlots {
    fn default() -> Self {
        Self {
            room: Semaphore::new(AT_ONCE + WAITING),
            slots: Semaphore::new(AT_ONCE),
        }
    }
}

impl ReadSlots {
    /// Runs `work` when its turn has come, with a deadline.
    pub(crate) async fn run<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let busy = |_| {
            let error = "too many requests for custom resources are waiting";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error, "try again")
        };
        let _place = self.room.try_acquire().map_err(busy)?;
        let run = async {
            // The semaphore is never closed; if it were, there would be no limit.
            let _turn = self.slots.acquire().await.ok();
            work.await
        };
        timeout(DEADLINE, run).await.unwrap_or_else(|_| {
            let seconds = DEADLINE.as_secs();
            Err(ApiError::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!("the API server took longer than {seconds} s"),
                "try again",
            ))
        })
    }
}

/// The path of the objects of a kind.
#[derive(Clone, Debug)]
pub(crate) struct ObjectsPath {
    path: String,
}

impl ObjectsPath {
    /// The objects of one namespace, or of all; names must have been checked. `None` while the kind's plural is not known.
    pub(crate) fn of(kind: &ResourceType, namespace: Option<&str>) -> Option<Self> {
        let plural = kind.plural.as_deref()?;
        Some(Self::at((&kind.group, &kind.version), plural, namespace))
    }

    /// The same, with the plural as an argument.
    pub(crate) fn at(
        (group, version): (&str, &str),
        plural: &str,
        namespace: Option<&str>,
    ) -> Self {
        let mut path = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        // Writing to a String cannot fail.
        if let Some(namespace) = namespace {
            let _ = write!(path, "/namespaces/{namespace}");
        }
        let _ = write!(path, "/{plural}");
        Self { path }
    }
}

/// The objects to list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Select<'a> {
    /// All objects.
    All,
    /// Objects with labels, in the syntax of `kubectl -l`.
    Labels(&'a str),
    /// Objects with fields, in the syntax of `kubectl --field-selector`.
    Fields(&'a str),
}

/// A list of objects.
#[derive(Debug, Default)]
pub(crate) struct ListedObjects {
    /// The requested parts of each object.
    pub(crate) items: Vec<Value>,
    /// The value of each object, in the same order, with whether it was too large; empty if none was requested.
    pub(crate) values: Vec<Value>,
    /// There are more.
    pub(crate) truncated: bool,
    /// The continue token for more.
    pub(crate) next: Option<String>,
}

/// The parameters of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListParams<'a> {
    pub(crate) select: Select<'a>,
    /// The most objects.
    pub(crate) most: usize,
    /// Requests only metadata from the API server.
    pub(crate) metadata_only: bool,
    /// The parts that are kept of each object.
    pub(crate) want: &'a WantedParts,
    /// A value that is kept in addition.
    pub(crate) value: Option<&'a WantedParts>,
}

/// Reads objects from the API server.
#[derive(Clone)]
pub(crate) struct Reader {
    cluster: Cluster,
}

impl Reader {
    /// Reads through `cluster`, on an account of its own.
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.on_account_of(Share::new("http")),
        }
    }

    /// Returns how the API server serves a kind.
    pub(crate) async fn discover(&self, kind: &ResourceType) -> Result<Served, ApiError> {
        let (group, version) = (&kind.group, &kind.version);
        let found = self.cluster.discover(group, version, &kind.kind).await?;
        found.ok_or_else(|| ApiError::not_found("the cluster does not serve this kind", ""))
    }

    /// Returns the requested parts of one object; with `metadata_only`, only metadata is requested.
    pub(crate) async fn get(
        &self,
        place: &ObjectsPath,
        name: &str,
        (want, metadata_only): (&WantedParts, bool),
    ) -> Result<Value, ApiError> {
        let path = format!("{}/{name}", place.path);
        let accept = if metadata_only {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        };
        match self.fetch(&path, accept).await? {
            Some(text) => read(want, &text),
            None => Err(too_large()),
        }
    }

    /// Lists page by page, from the continue token `next`.
    pub(crate) async fn list(
        &self,
        place: &ObjectsPath,
        ask: ListParams<'_>,
        next: Option<String>,
    ) -> Result<ListedObjects, ApiError> {
        let each =
            |want: &WantedParts| WantedParts::Each(Box::new(want.clone()), PAGE.max(ask.most));
        let page = WantedParts::fields([
            ("metadata", WantedParts::at(&["continue"], 64 << 10)),
            ("items", each(ask.want)),
        ]);
        let values = (ask.value).map(|want| {
            WantedParts::fields([("items", each(&WantedParts::Judged(Box::new(want.clone()))))])
        });
        let mut found = ListedObjects {
            next,
            ..ListedObjects::default()
        };
        let mut size = PAGE;
        loop {
            let limit = size.min(ask.most - found.items.len());
            let path = page_path(place, &ask, limit, found.next.as_deref());
            let accept = if ask.metadata_only {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            } else {
                "application/json"
            };
            let Some(text) = self.fetch(&path, accept).await? else {
                if limit <= 1 {
                    return Err(too_large());
                }
                size = limit / 2;
                continue;
            };
            let mut page = read(&page, &text)?;
            if let Some(values) = &values {
                found.values.append(&mut items(&mut read(values, &text)?));
            }
            found.items.append(&mut items(&mut page));
            let token = page["metadata"]["continue"].as_str();
            found.next = token
                .filter(|token| !token.is_empty())
                .map(ToOwned::to_owned);
            if found.next.is_none() || found.items.len() >= ask.most {
                break;
            }
        }
        found.truncated = found.next.is_some() || found.items.len() > ask.most;
        if found.items.len() > ask.most {
            // More than requested: the next page would not start where this one is cut.
            found.next = None;
            found.items.truncate(ask.most);
        }
        Ok(found)
    }

    /// Returns the text of a response; `None` if it is too long.
    async fn fetch(&self, path: &str, accept: &str) -> Result<Option<Bytes>, ApiError> {
        let RawResponse { status, body } = self.cluster.raw(path, accept, LONGEST_ANSWER).await?;
        let Some(text) = body else {
            return Ok(None);
        };
        if status.is_success() {
            return Ok(Some(text));
        }
        let refusal = WantedParts::at(&["message"], 8 << 10).read(&text);
        let message = refusal.ok().and_then(|(refusal, _)| {
            let message = refusal.get("message")?.as_str()?;
            Some(message.to_owned())
        });
        let message = message.unwrap_or_else(|| format!("the API server answered {status}"));
        Err(ApiError::refused(status, message))
    }
}

fn page_path(
    place: &ObjectsPath,
    ask: &ListParams<'_>,
    limit: usize,
    next: Option<&str>,
) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut path = format!("{}?limit={limit}", place.path);
    // Writing to a String cannot fail.
    let _ = match ask.select {
        Select::All => Ok(()),
        Select::Labels(labels) => write!(path, "&labelSelector={}", encoded(labels)),
        Select::Fields(fields) => write!(path, "&fieldSelector={}", encoded(fields)),
    };
    if let Some(next) = next {
        let _ = write!(path, "&continue={}", encoded(next));
    }
    path
}

fn read(want: &WantedParts, text: &[u8]) -> Result<Value, ApiError> {
    let read = want.read(text).map_err(|error| {
        tracing::warn!(%error, "a response of the API server is not valid JSON");
        ApiError::unanswered()
    });
    read.map(|(value, _)| value)
}

fn items(page: &mut Value) -> Vec<Value> {
    match page["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::BAD_GATEWAY,
        "an object is too large to be shown",
        "use kubectl to read it",
    )
}

/// Splits a dot path.
pub(crate) fn parse_field(text: &str) -> Result<Vec<&str>, ApiError> {
    let path: Vec<&str> = text.split('.').collect();
    let is_long = text.len() > LONGEST_FIELD || path.len() > MOST_PARTS;
    if is_long || path.iter().any(|part| part.is_empty()) {
        return Err(ApiError::bad_request(
            format!("`{}` is not a valid path", short(text)),
            "expected a path such as spec.image",
        ));
    }
    Ok(path)
}

/// Returns the value at a path, or null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .fold(value, |value, part| value.get(part).unwrap_or(&Value::Null))
}

/// Formats the time since `since` like kubectl: the two largest units while the first is small. Source: apimachinery,
/// `duration.HumanDuration`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |first: i64, unit: char, second: i64, small: char| match second {
        0 => format!("{first}{unit}"),
        second => format!("{first}{unit}{second}{small}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () if days < 8 * 365 => two(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests;
