//! Polls one expectation until all of its assertions are true at the same time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use orkestra_e2e::{ProgramCall, calls, check_resource, commands, is_open, judge};
use orkestra_ground::Backoff;
use orkestra_language::{
    api::e2e::{DEFAULT_TIMEOUT, Expectation},
    diagnostics::FieldPath,
};
use orkestra_plan::Gate;
use tokio::time::{Duration, Instant};

use super::{Run, reported_objects};
use crate::e2e::{Case, TestOutcome, objects};

/// The polling interval.
const PAUSE: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(2),
    factor: 1.5,
};

/// The additional time for a poll that begins at the end of the timeout.
const GRACE: Duration = Duration::from_secs(2);

/// An expectation, its position, and its conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolledExpectation<'a> {
    pub(crate) expected: &'a Expectation,
    pub(crate) place: &'a FieldPath,
    pub(crate) gate: &'a Gate,
}

impl PolledExpectation<'_> {
    fn case(&self, took: Duration, outcome: TestOutcome) -> Case {
        Case {
            path: self.place.to_string(),
            name: self.expected.name.clone().unwrap_or_default(),
            took,
            outcome,
            details: Vec::new(),
        }
    }

    pub(crate) fn skipped(&self, why: &str) -> Case {
        self.case(Duration::ZERO, TestOutcome::Skipped(why.to_owned()))
    }
}

/// The result of one poll of the cluster.
#[derive(Default)]
struct PollResult {
    diff: Vec<String>,
    /// True if another poll would have the same result.
    is_lasting: bool,
    /// True if a call timed out.
    is_late: bool,
}

impl Run<'_> {
    /// Polls an expectation until it is met or times out.
    pub(crate) async fn look(&self, look: &PolledExpectation<'_>) -> Case {
        let began = Instant::now();
        let expected = look.expected;
        if !expected.gates.when.is_empty() || !expected.gates.or.is_empty() {
            let resource = self.first_resource().await;
            match is_open(look.gate, &resource, Timestamp::now()) {
                Ok(true) => {}
                Ok(false) => return look.skipped("its conditions do not hold"),
                Err(why) => {
                    let diff = vec![format!("+ {why}")];
                    return look.case(began.elapsed(), TestOutcome::Failed(diff));
                }
            }
        }
        let wait = expected.wait.map_or(Duration::ZERO, |span| span.0);
        let polled = async {
            tokio::time::sleep(wait).await;
            self.poll(look).await
        };
        let diff = tokio::select! {
            diff = polled => diff,
            () = self.options.stop.cancelled() => return look.skipped("interrupted"),
        };
        if diff.is_empty() {
            return look.case(began.elapsed(), TestOutcome::Passed);
        }
        let mut case = look.case(began.elapsed(), TestOutcome::Failed(diff));
        if let Some(block) = &expected.on_failure {
            case.details = self.print(block, &look.place.field("onFailure")).await;
        }
        case
    }

    /// Returns the unmet assertions of the last poll.
    async fn poll(&self, look: &PolledExpectation<'_>) -> Vec<String> {
        let timeout = look.expected.timeout.map_or(DEFAULT_TIMEOUT, |span| span.0);
        let deadline = Instant::now() + timeout;
        let (mut done, mut round) = (BTreeSet::new(), 0);
        let mut last = Vec::new();
        loop {
            let until = deadline.max(Instant::now() + GRACE);
            let seen = self.see(look, until, &mut done).await;
            // What was seen before says more than that there was no time to look again.
            if !seen.is_late || last.is_empty() {
                last = seen.diff;
            }
            if last.is_empty() || seen.is_lasting || Instant::now() >= deadline {
                return last;
            }
            let next = Instant::now() + PAUSE.after(round);
            tokio::time::sleep_until(deadline.min(next)).await;
            round += 1;
        }
    }

    /// Polls once. Calls that change something run before anything is read, and are not repeated after they succeeded:
    /// `done` contains their positions.
    async fn see(
        &self,
        look: &PolledExpectation<'_>,
        deadline: Instant,
        done: &mut BTreeSet<usize>,
    ) -> PollResult {
        let (expected, mut seen) = (look.expected, PollResult::default());
        let mut all: Vec<ProgramCall<'_>> = Vec::new();
        if let Some(kubectl) = &expected.kubectl {
            all.extend(calls(kubectl, &look.place.field("kubectl")));
        }
        let of_shell = commands(&expected.commands, &look.place.field("commands"));
        let (writes, reads): (Vec<ProgramCall<'_>>, Vec<ProgramCall<'_>>) =
            all.into_iter().partition(|call| call.is_once);
        for (index, call) in writes.iter().enumerate() {
            if done.contains(&index) {
                continue;
            }
            self.call(call, deadline, &mut seen).await;
            if !seen.diff.is_empty() {
                return seen;
            }
            done.insert(index);
        }
        for (index, resource) in expected.resources.iter().enumerate() {
            let found = objects::find(self.cluster(), resource);
            let diff = match tokio::time::timeout_at(deadline, found).await {
                Ok(Ok(found)) => check_resource(resource, &found),
                Ok(Err(error)) => vec![format!("+ {}", reported_objects(&error))],
                Err(_) => {
                    seen.is_late = true;
                    vec!["+ the cluster did not answer in time".to_owned()]
                }
            };
            if !diff.is_empty() {
                let at = look.place.field("resources").index(index);
                seen.diff.push(format!("  {at}: {}", resource.kind));
                seen.diff.extend(diff);
            }
        }
        for call in of_shell.iter().chain(&reads) {
            self.call(call, deadline, &mut seen).await;
        }
        seen
    }

    /// Runs a call and adds its failed assertions.
    async fn call(&self, call: &ProgramCall<'_>, deadline: Instant, seen: &mut PollResult) {
        let diff = match self.caller().run(call, deadline).await {
            Ok(answer) => judge(call, &answer),
            Err(error) => {
                seen.is_lasting |= error.is_lasting();
                seen.is_late |= error.is_late();
                vec![format!("+ {error}")]
            }
        };
        if !diff.is_empty() {
            seen.diff.push(format!("  {}: {}", call.path, call.title));
            seen.diff.extend(diff);
        }
    }
}
