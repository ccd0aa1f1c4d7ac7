//! Bounds on what a request may cost the API server, and the parts of objects that pages show.

use std::{future::Future, time::Duration};

use axum::http::StatusCode;
use jiff::Timestamp;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use orkestra_core::plan::ResourceType;
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};

use super::ApiError;

/// How long a page may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Longest path that `?field=` takes, in bytes.
const LONGEST_FIELD: usize = 256;

/// What `…/cr` may be asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// A path whose value each item shows, such as `spec.image` or `status.conditions.0.message`.
    pub(super) field: Option<String>,
    /// Only the instances of this namespace.
    pub(super) namespace: Option<String>,
}

/// Runs it with a deadline, and not too many at a time.
pub(super) async fn bounded<T>(
    permits: &Semaphore,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let run = async {
        // The semaphore is never closed; if it were, there would be no bound to keep.
        let _permit = permits.acquire().await.ok();
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

/// How a kind is addressed; none when its plural is not known without asking the cluster.
pub(super) fn api_resource(kind: &ResourceType) -> Option<ApiResource> {
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    Some(ApiResource::from_gvk_with_plural(
        &gvk,
        kind.plural.as_deref()?,
    ))
}

/// A list of at most `most` objects.
pub(super) struct Found {
    pub(super) items: Vec<DynamicObject>,
    /// There are more.
    pub(super) truncated: bool,
}

/// Lists page by page, at most `most` objects.
pub(super) async fn list(
    api: &Api<DynamicObject>,
    params: ListParams,
    most: usize,
) -> Result<Found, ApiError> {
    let mut found = Found {
        items: Vec::new(),
        truncated: false,
    };
    let mut params = params.limit(100);
    loop {
        let page = api.list(&params).await?;
        found.items.extend(page.items);
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        if found.items.len() >= most {
            found.truncated = next.is_some() || found.items.len() > most;
            found.items.truncate(most);
            return Ok(found);
        }
        match next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Takes a dot path apart.
pub(super) fn parse_field(text: &str) -> Result<Vec<&str>, ApiError> {
    let path: Vec<&str> = text.split('.').collect();
    if text.len() > LONGEST_FIELD || path.iter().any(|part| part.is_empty()) {
        return Err(ApiError::bad_request(
            format!("`{}` is no path", super::instances::short(text)),
            "write one such as spec.image",
        ));
    }
    Ok(path)
}

/// The value at a path; numbers index lists. Null where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, part| match value {
        Value::Array(items) => part
            .parse()
            .ok()
            .and_then(|index: usize| items.get(index))
            .unwrap_or(&Value::Null),
        other => other.get(part).unwrap_or(&Value::Null),
    })
}

/// How long ago, as kubectl prints it: the two largest units while the first is small. Source: apimachinery,
/// `duration.HumanDuration`.
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
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
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectls_do() {
        let start = Timestamp::UNIX_EPOCH;
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (11 * 60, "11m"),
            (179 * 60, "179m"),
            (3 * 3600 + 60, "3h1m"),
            (26 * 3600, "26h"),
            (3 * 86400 + 7200, "3d2h"),
            (90 * 86400, "90d"),
            (800 * 86400, "2y70d"),
            (9 * 365 * 86400, "9y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(age(start, start + Duration::from_secs(seconds)), text);
        }
        assert_eq!(age(start + Duration::from_secs(5), start), "0s");
    }

    #[test]
    fn fields_are_dot_paths() {
        let value = serde_json::json!({"a": [{"b": 7}], "c": "x"});
        assert_eq!(at(&value, &parse_field("a.0.b").unwrap()), 7);
        assert_eq!(at(&value, &parse_field("a.1.b").unwrap()), &Value::Null);
        assert_eq!(at(&value, &parse_field("c.d").unwrap()), &Value::Null);
        for bad in ["", ".", "a..b", &"x".repeat(300)] {
            assert!(parse_field(bad).is_err(), "{bad}");
        }
    }
}
