//! The Lease on the wire.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use orkestra_object::decode::Version;

use super::LeaseRecord;

/// Returns the fields of a Lease that are relevant to the election.
pub(crate) fn record(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    LeaseRecord {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec
            .holder_identity
            .filter(|holder| !holder.is_empty())
            .map(Arc::from),
        duration: seconds
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// Returns the resourceVersion of the Lease.
pub(crate) fn version(lease: &Lease) -> Version {
    Version::from(
        lease
            .metadata
            .resource_version
            .as_deref()
            .unwrap_or_default(),
    )
}

/// A Lease that does not exist yet, without a holder.
pub(crate) fn fresh(namespace: &str, name: &str) -> Lease {
    Lease {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

/// Returns `lease` held by `identity` from now on. All other fields stay, including the resourceVersion: the write succeeds only
/// if the Lease is unchanged.
pub(crate) fn held_by(lease: &Lease, identity: &str, duration: Duration, now: Timestamp) -> Lease {
    let before = record(lease);
    let stays = before.holder.as_deref() == Some(identity);
    // The very first holder is not counted as a transition, as in client-go.
    let transitions = before
        .transitions
        .saturating_add(i32::from(!stays && lease.spec.is_some()));
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_default();
    if !stays {
        spec.acquire_time = Some(MicroTime(now));
    }
    *spec = LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        lease_transitions: Some(transitions),
        renew_time: Some(MicroTime(now)),
        ..std::mem::take(spec)
    };
    lease
}

/// Returns `lease` released: without a holder, for the shortest duration that a Lease can express. Source: client-go, `release`.
pub(crate) fn released(lease: &Lease, now: Timestamp) -> Lease {
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_default();
    *spec = LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        acquire_time: Some(MicroTime(now)),
        ..std::mem::take(spec)
    };
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    const NINE: Duration = Duration::from_secs(9);

    fn times(lease: &Lease) -> [Option<Timestamp>; 2] {
        let spec = lease.spec.clone().unwrap_or_default();
        [spec.renew_time, spec.acquire_time].map(|time| time.map(|time| time.0))
    }

    #[test]
    fn a_holder_that_stays_keeps_its_time_and_another_counts_as_a_transition() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (one, two, three) = (
            at("2031-01-01T00:00:01Z"),
            at("2031-01-01T00:00:02Z"),
            at("2031-01-01T00:00:03Z"),
        );
        let mut first = held_by(&fresh("rivers", "ork"), "a", NINE, one);
        first.metadata.resource_version = Some("7".to_owned());
        assert_eq!(record(&first).transitions, 0);
        let renewed = held_by(&first, "a", NINE, two);
        assert_eq!(times(&renewed), [Some(two), Some(one)]);
        assert_eq!(record(&renewed).duration, Some(NINE));
        assert_eq!(renewed.metadata.resource_version.as_deref(), Some("7"));
        let given = released(&renewed, two);
        assert_eq!(record(&given).holder, None);
        let taken = held_by(&given, "b", NINE, three);
        assert_eq!(record(&taken).holder.as_deref(), Some("b"));
        assert_eq!(record(&taken).transitions, 1);
        assert_eq!(times(&taken), [Some(three), Some(three)]);
    }

    #[test]
    fn a_lease_that_says_nothing_sensible_is_one_of_nobody() {
        let mut lease = fresh("rivers", "ork");
        assert_eq!(record(&lease), LeaseRecord::default());
        lease.spec = Some(LeaseSpec {
            lease_duration_seconds: Some(-4),
            ..LeaseSpec::default()
        });
        assert_eq!(record(&lease).duration, None);
    }
}
