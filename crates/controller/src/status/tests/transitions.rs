//! The conditions of a Katalog after every transition between situations, compared with the rules of kstatus.

use super::kstatus::{Kstatus, faults};
use super::*;

/// The inputs of a Katalog's status.
#[derive(Clone, Copy)]
struct Situation<'a> {
    verdict: &'a Verdict,
    operators: &'a [OperatorStatus],
    releasing: &'a [(&'a str, Option<&'a str>)],
    suspended: bool,
    source_problem: Option<(KatalogReason, &'a str)>,
    waits: Option<&'a str>,
    deletion_problem: Option<&'a str>,
}

impl Situation<'_> {
    /// The status of the Katalog over the one that was written before.
    fn over(&self, written: &KatalogStatus) -> KatalogStatus {
        let wanted = revised("k-1234567890");
        let operators = self.operators.iter();
        let operators: Vec<_> = operators.map(|one| operating(&wanted, one)).collect();
        let inputs = StatusInputs {
            generation: Some(3),
            verdict: self.verdict,
            revision: Some("k-1234567890"),
            operators: &operators,
            disabled: &[],
            stopped: &[],
            operated: &[kind("ponds")],
            releasing: &releases(self.releasing),
            suspended: self.suspended,
            sources: &[],
            source_problem: self.source_problem,
            unenforced: &[],
            enforces: Enforces::default(),
            waits: self.waits,
            deletion_problem: self.deletion_problem,
        };
        compute(&inputs, written, now())
    }

    /// Returns the expected result of kstatus.
    fn expected(&self) -> Kstatus {
        let runs = *self.operators == [running(1)] || self.operators.is_empty();
        let is_settled = self.releasing.is_empty() && self.source_problem.is_none();
        match self.verdict {
            Verdict::Refused { .. } => Kstatus::Failed,
            Verdict::Accepted if runs && is_settled && !self.suspended => Kstatus::Current,
            _ => Kstatus::InProgress,
        }
    }
}

fn verdicts() -> [Verdict; 5] {
    let refused = Verdict::Refused {
        reason: KatalogReason::NoApiTypes,
        message: "no".to_owned(),
    };
    [
        Verdict::Accepted,
        Verdict::Pending(None),
        Verdict::Pending(Some("no".into())),
        refused,
        Verdict::Deleted,
    ]
}

fn operators() -> [Vec<OperatorStatus>; 7] {
    let forbidden = (KatalogReason::Forbidden, "cannot list secrets");
    let starting = OperatorStatus {
        phase: Phase::Starting,
        ..OperatorStatus::default()
    };
    [
        vec![],
        vec![running(1)],
        vec![starting],
        vec![waiting(KatalogReason::CrdMissing)],
        vec![waiting(KatalogReason::Conflict)],
        vec![lagging(&[])],
        vec![running(1), lagging(&[forbidden])],
    ]
}

const RELEASING: [&[(&str, Option<&str>)]; 3] = [&[], &[("ponds", None)], &[("ponds", Some("no"))]];

const SOURCE_PROBLEMS: [Option<(KatalogReason, &str)>; 3] = [
    None,
    Some((KatalogReason::SourceFailed, "connection refused")),
    Some((KatalogReason::PendingApproval, "not approved")),
];

/// The states of a deletion: the reason why it waits, and the problem that prevents it.
const DELETIONS: [(Option<&str>, Option<&str>); 4] = [
    (None, None),
    (Some("2 ponds are left"), None),
    (None, Some("cannot list ponds")),
    (Some("2 ponds are left"), Some("cannot list ponds")),
];

/// Returns every combination of the inputs; those of a deletion are combined only with the verdict `Deleted`.
fn situations<'a>(
    verdicts: &'a [Verdict],
    operators: &'a [Vec<OperatorStatus>],
) -> Vec<Situation<'a>> {
    let mut all = Vec::new();
    for verdict in verdicts {
        let deletions = match verdict {
            Verdict::Deleted => &DELETIONS[..],
            _ => &DELETIONS[..1],
        };
        for operators in operators {
            for (releasing, suspended) in RELEASING.map(|one| [(one, false), (one, true)]).concat()
            {
                for source_problem in SOURCE_PROBLEMS {
                    all.extend(deletions.iter().map(|(waits, deletion_problem)| Situation {
                        verdict,
                        operators,
                        releasing,
                        suspended,
                        source_problem,
                        waits: *waits,
                        deletion_problem: *deletion_problem,
                    }));
                }
            }
        }
    }
    all
}

/// Checklist G3, for every possible written status and every situation.
#[test]
fn the_conditions_keep_to_kstatus_over_every_transition() {
    let (verdicts, operators) = (verdicts(), operators());
    let situations = situations(&verdicts, &operators);
    // A status depends only on the conditions and the revision of the previous one.
    let mut written = BTreeMap::new();
    for situation in &situations {
        let status = situation.over(&KatalogStatus::default());
        let key = (conditions(&status), status.revision.clone());
        written.insert(key, status);
    }
    for before in written.values() {
        for after in &situations {
            let status = after.over(before);
            assert_eq!(
                urgency(&status, &after.over(&status)),
                Urgency::None,
                "it is not stable"
            );
            let object = json!({ "metadata": { "generation": 3 }, "status": status });
            assert_eq!(faults(&object), [""; 0], "{object}");
            assert_eq!(kstatus::kstatus(&object), after.expected(), "{object}");
            // After a change of the spec, the same status is outdated: kstatus reports progress.
            let next = json!({ "metadata": { "generation": 4 }, "status": status });
            assert_eq!(kstatus::kstatus(&next), Kstatus::InProgress);
        }
    }
}
