use orkestra_ground::Entropy;

use super::*;

const TIMING: Timing = Timing {
    lease: Duration::from_secs(9),
    renew_deadline: Duration::from_secs(6),
    renew: Duration::from_secs(2),
    retry: Duration::from_millis(1500),
};

fn after(start: Moment, seconds: f64) -> Moment {
    start + Duration::from_secs_f64(seconds)
}

fn candidate(name: &str) -> Election {
    Election::new(name.into(), TIMING)
}

fn record(version: u32, holder: &str) -> LeaseRecord {
    LeaseRecord {
        version: version.to_string(),
        holder: (!holder.is_empty()).then(|| holder.into()),
        duration: Some(TIMING.lease),
        transitions: 0,
    }
}

#[test]
fn nothing_is_tried_before_anything_is_known_and_a_lease_that_is_not_there_is_made() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    assert_eq!(me.next(start), ElectionStep::Wait(None));
    assert!(!me.has_heard());
    me.see(None, start);
    assert_eq!(me.next(start), ElectionStep::Acquire);
    me.won(record(1, "me"), start);
    assert_eq!(me.next(start), ElectionStep::Wait(Some(after(start, 2.0))));
    assert_eq!(me.leader(start).as_deref(), Some("me"));
}

#[test]
fn anothers_lease_runs_out_a_duration_after_it_was_seen_to_change() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(Some(record(1, "other")), start);
    assert_eq!(me.next(start), ElectionStep::Wait(Some(after(start, 9.0))));
    // A repeated report of the same state is not a change, and does not extend the Lease.
    me.see(Some(record(1, "other")), after(start, 5.0));
    assert_eq!(me.leader(after(start, 8.9)).as_deref(), Some("other"));
    assert_eq!(me.leader(after(start, 9.0)), None);
    me.see(Some(record(2, "other")), after(start, 8.0));
    assert_eq!(
        me.next(after(start, 9.0)),
        ElectionStep::Wait(Some(after(start, 17.0)))
    );
    assert_eq!(me.next(after(start, 17.0)), ElectionStep::Acquire);
    // The duration in the Lease applies, not that of the candidate.
    let long = LeaseRecord {
        duration: Some(Duration::from_mins(1)),
        ..record(3, "other")
    };
    me.see(Some(long), start);
    assert_eq!(me.next(start), ElectionStep::Wait(Some(after(start, 60.0))));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(Some(record(1, "other")), start);
    me.see(Some(record(2, "")), after(start, 1.0));
    assert_eq!(me.next(after(start, 1.0)), ElectionStep::Acquire);
    assert_eq!(me.leader(after(start, 1.0)), None);
}

#[test]
fn a_leader_that_cannot_renew_yields_before_others_may_take_over() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(None, start);
    me.won(record(1, "me"), start);
    assert_eq!(me.next(after(start, 2.0)), ElectionStep::Renew);
    me.failed(after(start, 4.0), TIMING.retry);
    assert_eq!(
        me.next(after(start, 4.0)),
        ElectionStep::Wait(Some(after(start, 5.5)))
    );
    me.failed(after(start, 5.5), TIMING.retry);
    assert_eq!(
        me.next(after(start, 5.5)),
        ElectionStep::Wait(Some(after(start, 6.0))),
        "not at the end of its Lease"
    );
    assert_eq!(me.leads_until(after(start, 6.0)), None);
    assert_eq!(
        me.next(after(start, 6.0)),
        ElectionStep::Wait(Some(after(start, 7.0)))
    );
    assert_eq!(me.leader(after(start, 6.0)), None);
    assert_eq!(
        me.next(after(start, 7.0)),
        ElectionStep::Acquire,
        "the Lease is free"
    );
}

#[test]
fn an_answer_that_comes_after_the_deadline_makes_no_leader() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(None, start);
    me.won(record(1, "me"), start);
    let late = after(start, 6.5);
    assert_eq!(me.leads_until(late), None);
    assert_eq!(me.next(late), ElectionStep::Acquire);
}

#[test]
fn a_write_whose_answer_was_lost_is_made_again_and_counts_from_then() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(None, start);
    me.failed(after(start, 2.0), Duration::from_secs(1));
    me.see(Some(record(1, "me")), after(start, 2.1));
    assert_eq!(me.leads_until(after(start, 2.1)), None);
    assert_eq!(me.next(after(start, 3.0)), ElectionStep::Acquire);
    me.won(record(2, "me"), after(start, 3.0));
    assert_eq!(me.leads_until(after(start, 3.0)), Some(after(start, 9.0)));
}

#[test]
fn a_lease_that_is_stolen_or_deleted_is_lost_at_once() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(None, start);
    me.won(record(1, "me"), start);
    me.see(Some(record(2, "thief")), after(start, 1.0));
    assert_eq!(me.leads_until(after(start, 1.0)), None);
    assert_eq!(
        me.next(after(start, 1.0)),
        ElectionStep::Wait(Some(after(start, 10.0)))
    );
    me.see(Some(record(3, "")), after(start, 4.0));
    me.won(record(4, "me"), after(start, 4.0));
    me.see(None, after(start, 5.0));
    assert_eq!(me.leads_until(after(start, 5.0)), None);
    assert_eq!(me.next(after(start, 5.0)), ElectionStep::Acquire);
}

#[test]
fn who_is_refused_again_and_again_rests() {
    let start = Moment::at(Duration::from_hours(1));
    let mut me = candidate("me");
    me.see(None, start);
    me.conflicted(start, TIMING.retry);
    assert_eq!(me.next(start), ElectionStep::Acquire);
    me.conflicted(start, TIMING.retry);
    assert_eq!(me.next(start), ElectionStep::Wait(Some(after(start, 1.5))));
}

/// A Lease as an API server stores it.
#[derive(Default)]
struct Server {
    version: u32,
    record: Option<LeaseRecord>,
}

impl Server {
    /// Writes the Lease if its state is `on`; returns the new state, or `None` for a conflict.
    fn write(&mut self, on: Option<&LeaseRecord>, holder: &str) -> Option<LeaseRecord> {
        if self.record.as_ref() != on {
            return None;
        }
        self.version += 1;
        self.record = Some(record(self.version, holder));
        self.record.clone()
    }
}

/// A candidate on a network that delays and loses requests. The process is suspended at random times.
struct Process {
    election: Election,
    /// The last state it has seen, for its next write.
    known: Option<LeaseRecord>,
    /// The current attempt: the times of its start, its arrival and its response or timeout, and the state that it is based on.
    attempt: Option<(Moment, Moment, Moment, Option<LeaseRecord>)>,
    /// True if the attempt has reached the server.
    arrived: bool,
    /// The server's response; `None` if the attempt was refused, or the response is lost.
    answer: Option<LeaseRecord>,
    stopped_until: Moment,
}

struct Random(Entropy);

impl Random {
    fn one_in(&self, sides: u64) -> bool {
        self.0.bits().is_multiple_of(sides)
    }

    fn up_to(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * self.0.fraction())
    }
}

impl Process {
    /// Runs one step of the process; if `faults` is true, faults are injected.
    fn turn(
        &mut self,
        name: &str,
        server: &mut Server,
        now: Moment,
        random: &Random,
        faults: bool,
    ) {
        // A request that was sent arrives even if its sender is suspended in the meantime.
        if let Some((_, arrives, _, on)) = &self.attempt
            && !self.arrived
            && now >= *arrives
        {
            let written = if faults && random.one_in(6) {
                None
            } else {
                server.write(on.as_ref(), name)
            };
            let lost = faults && random.one_in(6);
            (self.arrived, self.answer) = (true, written.filter(|_| !lost));
        }
        if now < self.stopped_until {
            return;
        }
        if faults && random.one_in(400) {
            self.stopped_until = now + random.up_to(30.0);
        }
        if let Some((started, _, ends, _)) = self.attempt {
            if now < ends {
                return;
            }
            self.attempt = None;
            self.arrived = false;
            match self.answer.take() {
                Some(record) => {
                    self.known = Some(record.clone());
                    self.election.won(record, started);
                }
                None => self.election.failed(now, random.up_to(1.5)),
            }
        } else if !faults || random.one_in(10) {
            self.known.clone_from(&server.record);
            self.election.see(self.known.clone(), now);
        }
        if matches!(
            self.election.next(now),
            ElectionStep::Acquire | ElectionStep::Renew
        ) {
            let arrives = now + random.up_to(1.0);
            let ends = arrives + random.up_to(1.0);
            self.attempt = Some((now, arrives, ends, self.known.clone()));
        }
    }
}

/// Runs three processes for ten minutes, and returns the number of changes of the leader.
fn simulate(seed: u64) -> usize {
    const TICK: Duration = Duration::from_millis(50);
    let random = Random(Entropy::seeded(seed));
    let names = ["a", "b", "c"];
    let start = Moment::at(Duration::from_hours(1));
    let mut server = Server::default();
    let mut processes = names.map(|name| Process {
        election: candidate(name),
        known: None,
        attempt: None,
        arrived: false,
        answer: None,
        stopped_until: start,
    });
    let (mut now, mut leader, mut changes) = (start, None, 0);
    let (faults_end, end) = (after(start, 600.0), after(start, 640.0));
    while now < end {
        now = now + TICK;
        for (process, name) in processes.iter_mut().zip(names) {
            process.turn(name, &mut server, now, &random, now < faults_end);
        }
        // A suspended process is included: it resumes with the state of its gate.
        let lead = |process: &Process| process.election.leads_until(now).is_some();
        let leaders: Vec<&str> = (processes.iter().zip(names))
            .filter(|(process, _)| lead(process))
            .map(|(_, name)| name)
            .collect();
        assert!(leaders.len() <= 1, "seed {seed}: {leaders:?} all lead");
        if let [one] = leaders[..]
            && leader != Some(one)
        {
            (leader, changes) = (Some(one), changes + 1);
        }
    }
    let leads = processes
        .iter()
        .any(|process| process.election.leads_until(now).is_some());
    assert!(leads, "seed {seed}: no leader after the faults");
    changes
}

#[test]
fn two_never_lead_at_once_whatever_is_lost_late_or_stands_still() {
    let changes: usize = (0..60).map(simulate).sum();
    assert!(
        changes > 120,
        "too few faults: the leader changed {changes} times"
    );
}
