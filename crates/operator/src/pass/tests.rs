use std::time::Duration;

use jiff::Timestamp;
use orkestra_engine::reconcile::{step::Failure, verdict::Executed};
use orkestra_language::reasons::{Reason, RetryWhen};

use orkestra_ground::Clock;

use super::{
    failure::withheld,
    next,
    outcome::{NextPass, Passed, WAIT},
    reconcile::{LEAST_WAIT, due},
};

fn clock(at: &str) -> Clock {
    let now: Timestamp = at.parse().unwrap();
    Clock::new(move || now)
}

fn failures(reasons: &[Reason]) -> Executed {
    let failure = |reason: &Reason| Failure {
        reason: *reason,
        at: "ConfigMap shop/web".to_owned(),
        message: "no".to_owned(),
    };
    Executed {
        failures: reasons.iter().map(failure).collect(),
        ..Executed::default()
    }
}

#[test]
fn what_follows_a_failure_is_the_reasons_alone() {
    for reason in Reason::ALL {
        let expected = match reason.again() {
            RetryWhen::OnChange => NextPass::Settled,
            RetryWhen::Slowly => NextPass::After(WAIT),
            RetryWhen::Backoff => NextPass::Retry,
        };
        assert_eq!(next(&failures(&[*reason]), None), expected, "{reason}");
        // A permanent failure is never retried with backoff, and never prevents the retry of a transient one.
        assert!(
            !reason.is_permanent() || expected != NextPass::Retry,
            "{reason}"
        );
        let both = failures(&[*reason, Reason::Unavailable]);
        assert_eq!(next(&both, None), NextPass::Retry, "{reason}");
    }
    let soon = Duration::from_secs(3);
    assert_eq!(
        next(&failures(&[Reason::Forbidden, Reason::Invalid]), Some(soon)),
        NextPass::After(soon)
    );
}

#[test]
fn a_failure_of_the_custom_resource_itself_counts_by_its_reason() {
    for reason in Reason::ALL {
        let failed = Passed::failed(*reason, "no");
        let error = failed.error.as_ref().unwrap();
        assert_eq!(error.scope, reason.scope(), "{reason}");
        assert_eq!(failed.next, next(&failures(&[*reason]), None), "{reason}");
        // No watch event reports that a webhook no longer refuses, so the pass must run again.
        assert_ne!(failed.retried().next, NextPass::Settled, "{reason}");
    }
}

#[test]
fn a_message_that_may_quote_a_secret_is_withheld_and_its_reason_stays() {
    for reason in [Reason::Invalid, Reason::Denied, Reason::Unavailable] {
        let failure = || failures(&[reason]).failures.remove(0);
        assert_eq!(withheld(failure(), false), failure());
        let guarded = withheld(failure(), true);
        assert_eq!((guarded.reason, guarded.at), (reason, failure().at));
        assert!(guarded.message.contains("is not shown"), "{reason}");
    }
    // The operator's own message, which quotes no value.
    let ours = || failures(&[Reason::NameTaken]).failures.remove(0);
    assert_eq!(withheld(ours(), true), ours());
}

#[test]
fn a_pass_is_due_at_its_moment_and_never_before() {
    let (now, nine) = ("2026-03-02T08:59:59.9995Z", "2026-03-02T09:00:00Z");
    let (now, nine) = (now.parse().unwrap(), nine.parse().unwrap());
    let wait = |at: &str| due(&clock(at), now, nine);
    // The delay is 1 ms longer than the 0.5 ms that are left, since timers have a resolution of 1 ms.
    assert_eq!(
        wait("2026-03-02T08:59:59.9995Z"),
        Duration::from_micros(1_500)
    );
    // The time passed during the pass: the next pass runs immediately.
    assert_eq!(wait("2026-03-02T09:00:05Z"), Duration::from_millis(1));
    // The clock was set back during the pass.
    assert_eq!(wait("2026-03-02T08:59:50Z"), Duration::from_millis(10_001));
}

#[test]
fn a_moment_that_had_passed_when_it_was_reported_is_no_hot_loop() {
    let now = "2026-03-02T09:00:00Z";
    for moment in ["2026-03-02T09:00:00Z", "2026-03-02T08:00:00Z"] {
        let (now_is, moment) = (now.parse().unwrap(), moment.parse().unwrap());
        assert_eq!(due(&clock(now), now_is, moment), LEAST_WAIT);
    }
}
