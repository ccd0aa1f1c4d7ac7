//! Annotations that request a pass, and the request that the status reports as handled.
//!
//! Source: Flux, `meta.ReconcileRequestAnnotation` and `ReconcileRequestStatus`: the requester waits until
//! `status.lastHandledReconcileAt` has the requested value.

use jiff::Timestamp;

use orkestra_language::api::names;

/// The field of the status with the last handled request.
pub const LAST_HANDLED: &str = "lastHandledReconcileAt";

/// The annotations that request a pass.
pub const REQUESTS: [&str; 2] = [names::ANNOTATION_RECONCILE, names::ANNOTATION_REQUESTED_AT];

/// The requests in an object's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested([Option<Box<str>>; REQUESTS.len()]);

impl Requested {
    /// Reads the annotations through `get`; none if neither exists.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let read = Self(REQUESTS.map(|name| get(name).map(Box::from)));
        read.0.iter().any(Option::is_some).then_some(read)
    }

    /// Returns the value for the status: of two times the later one; if a text is not a time, Orkestra's own comes first.
    pub fn latest(&self) -> &str {
        let mut all = self.0.iter().flatten().map(|text| &**text);
        let first = all.next().unwrap_or_default();
        let time = |text: &str| text.trim().parse::<Timestamp>().ok();
        match all.next() {
            Some(second) if time(second).is_some() && time(second) > time(first) => second,
            _ => first,
        }
    }

    /// Returns the bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let texts = self.0.iter().flatten().map(|text| text.len());
        size_of::<Self>() + texts.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(own: Option<&'static str>, flux: Option<&'static str>) -> Option<String> {
        let get = |name: &str| {
            if name == names::ANNOTATION_RECONCILE {
                own
            } else {
                flux
            }
        };
        Requested::read(get).map(|requested| requested.latest().to_owned())
    }

    #[test]
    fn the_later_of_two_requests_is_repeated() {
        let (early, late) = ("2026-11-23T08:00:00Z", "2026-11-23T10:00:00.5+01:00");
        assert_eq!(latest(None, None), None);
        for (own, flux, expected) in [
            (Some("now"), None, "now"),
            (None, Some("now"), "now"),
            (Some(early), Some(late), late),
            (Some(late), Some(early), late),
            (Some("a"), Some("b"), "a"),
            (Some("a"), Some(early), early),
            (Some(early), Some("b"), early),
            (Some(""), Some(""), ""),
        ] {
            assert_eq!(
                latest(own, flux).as_deref(),
                Some(expected),
                "{own:?} {flux:?}"
            );
        }
    }
}
