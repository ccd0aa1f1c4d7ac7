//! `reconciler`: workers and resync, from the Katalog, an included file and a profile.

use std::time::Duration;

use super::held;
use crate::scope::{At, Library, ReferenceKind, library::Content, profiles::no_include_inside};
use orkestra_language::{
    api::{
        CrdEntry, Reconciler, Scalar, profiles,
        queue::{Queue, QueueBackoff, QueueWaits},
    },
    diagnostics::Code,
};
use orkestra_plan::{BackoffPlan, QueuePlan, RequeuePlan};

/// Default number of concurrent passes.
const DEFAULT_WORKERS: u32 = 3;
/// Default maximum while custom resources wait for a pass: a server with two cores is busy with far fewer, and the limit of
/// requests in flight is per process.
const DEFAULT_MOST_WORKERS: u32 = 32;
/// Maximum number of concurrent passes that one operator may declare.
pub(crate) const MOST_WORKERS: u32 = 1000;
/// Default resync period.
const DEFAULT_RESYNC: Duration = Duration::from_mins(10);

/// Default first delay after a failed pass, if `retryBackoff` omits it.
const DEFAULT_FIRST_WAIT: Duration = Duration::from_millis(500);
/// Default longest delay after failed passes, if `retryBackoff` omits it.
const DEFAULT_LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Largest `multiplier` of delays.
const LARGEST_MULTIPLIER: f64 = 100.0;

/// The pace of an operator.
pub(crate) struct OperatorPace {
    /// Concurrent passes.
    pub(crate) workers: u32,
    /// Concurrent passes while custom resources wait for one.
    pub(crate) most_workers: u32,
    /// Resync period; zero is off.
    pub(crate) resync: Duration,
    /// The queue settings.
    pub(crate) queue: QueuePlan,
    /// Rules that requeue after a successful pass.
    pub(crate) requeue: Box<[RequeuePlan]>,
}

/// Compiles the pace of the entry at `at`. For each field, the reconciler's own value takes precedence, then the included
/// file's, the entry's, the profile's.
pub(crate) fn pace(at: &At<'_>, entry: &CrdEntry, library: &Library) -> OperatorPace {
    let layers = layers(at, entry, library);
    let mut places = vec![(at.field("workers"), entry.workers)];
    places
        .extend((layers.iter()).map(|(at, reconciler)| (at.field("workers"), reconciler.workers)));
    for (at, workers) in &places {
        check_workers(at, *workers);
    }
    let workers = layers.iter().find_map(|(_, reconciler)| reconciler.workers);
    let resync = layers.iter().find_map(|(_, reconciler)| reconciler.resync);
    if let (Some(outer), Some(inner)) = (entry.workers, workers)
        && outer != inner
    {
        let message =
            format!("`operatorBox.reconciler.workers` is also set and takes precedence: {inner}");
        at.field("workers").warn(Code::SetTwice, message);
    }
    let profile = layers
        .iter()
        .find_map(|(at, reconciler)| Some((at.field("profile"), reconciler.profile.as_deref()?)));
    let profile = profile.and_then(|(at, name)| at.symbols()?.profiles.reconciler.get(&at, name));
    let profile = profile.map(|(_, profile)| profile);
    let declared = workers.or(entry.workers).or_else(|| profile?.workers);
    // An operator with an autoscaler gets no automatic extra workers.
    let is_scaled =
        (entry.operator_box.as_ref()).is_some_and(|declared| declared.autoscale.is_some());
    let grows = declared.is_none() && !is_scaled;
    let workers = declared.unwrap_or(DEFAULT_WORKERS);
    OperatorPace {
        workers,
        most_workers: if grows { DEFAULT_MOST_WORKERS } else { workers },
        resync: resync
            .or_else(|| profile?.resync)
            .map_or(DEFAULT_RESYNC, |span| span.0),
        queue: queue(&layers, profile),
        requeue: held::requeue(&layers),
    }
}

/// Compiles the queue; for each field, the reconciler's own value takes precedence, then the included file's, the
/// profile's.
fn queue(layers: &[(At<'_>, &Reconciler)], profile: Option<&profiles::Pace>) -> QueuePlan {
    let declared: Vec<(At<'_>, &Queue)> = layers
        .iter()
        .filter_map(|(at, reconciler)| Some((at.field("queue"), reconciler.queue.as_ref()?)))
        .collect();
    for (at, queue) in &declared {
        if queue.shared == Some(true) {
            at.field("shared").warn_hint(
                Code::NoEffect,
                "`shared` has no effect here: every operator has its own queue, so none waits for another",
                "remove it",
            );
        }
    }
    let first =
        |field: fn(&Queue) -> Option<u32>| declared.iter().find_map(|(_, queue)| field(queue));
    let backoffs = declared
        .iter()
        .filter_map(|(at, queue)| Some((at.field("retryBackoff"), queue.retry_backoff.as_ref()?)))
        .map(|(at, declared)| backoff(&at, declared))
        // All of them are checked.
        .collect::<Vec<_>>();
    let default = QueuePlan::default();
    QueuePlan {
        max_depth: first(|queue| queue.max_depth)
            .or_else(|| profile?.queue.as_ref()?.max_depth)
            .unwrap_or(default.max_depth),
        failure_threshold: first(|queue| queue.failure_threshold)
            .map_or(default.failure_threshold, u64::from),
        failing_percent: first(|queue| queue.failing_percent).unwrap_or(default.failing_percent),
        backoff: backoffs.into_iter().next().unwrap_or_default(),
    }
}

fn backoff(at: &At<'_>, declared: &QueueBackoff) -> BackoffPlan {
    let alone;
    let waits = match declared {
        QueueBackoff::Full(waits) => waits,
        QueueBackoff::Initial(initial) => {
            alone = QueueWaits {
                initial: Some(*initial),
                ..QueueWaits::default()
            };
            &alone
        }
    };
    let first = waits.initial.map_or(DEFAULT_FIRST_WAIT, |span| span.0);
    if first.is_zero() {
        at.error_hint(
            Code::OutOfRange,
            "without a delay, a failed pass would be retried continuously",
            "write a duration such as `500ms`",
        );
    }
    let longest = waits
        .max
        .map_or(DEFAULT_LONGEST_WAIT.max(first), |span| span.0);
    if longest < first {
        let message = "the maximum delay is shorter than the first delay";
        at.field("max").error(Code::OutOfRange, message);
    }
    BackoffPlan {
        first,
        longest,
        factor: waits.multiplier.as_ref().map_or(2.0, |multiplier| {
            factor(&at.field("multiplier"), multiplier)
        }),
    }
}

fn factor(at: &At<'_>, multiplier: &Scalar) -> f64 {
    let factor = multiplier.to_string().trim().parse().ok();
    let factor = factor.filter(|factor| (1.0..=LARGEST_MULTIPLIER).contains(factor));
    factor.unwrap_or_else(|| {
        let message = format!("expected a multiplier from 1 to {LARGEST_MULTIPLIER}");
        at.error(Code::OutOfRange, message);
        2.0
    })
}

/// Returns the declared reconciler, then that of the included file.
fn layers<'a>(
    at: &At<'a>,
    entry: &'a CrdEntry,
    library: &'a Library,
) -> Vec<(At<'a>, &'a Reconciler)> {
    let declared = entry.operator_box.as_ref();
    let Some(own) = declared.and_then(|declared| declared.reconciler.as_ref()) else {
        return Vec::new();
    };
    let at = at.field("operatorBox").field("reconciler");
    let mut layers = vec![(at.clone(), own)];
    if let Some(file) = &own.include
        && let Some(document) = library.open(&at.field("include"), ReferenceKind::Reconciler, file)
        && let Content::Reconciler(included) = &document.content
    {
        let at = at.document(&document.origin).field("reconciler");
        no_include_inside(&at, included.include.is_some());
        layers.push((at, included));
    }
    layers
}

fn check_workers(at: &At<'_>, workers: Option<u32>) {
    match workers {
        Some(0) => at.error_hint(
            Code::OutOfRange,
            "an operator without workers does nothing",
            "write `enabled: false` to stop it",
        ),
        Some(many) if many > MOST_WORKERS => {
            let message = format!("at most {MOST_WORKERS} workers are allowed");
            at.error(Code::OutOfRange, message);
        }
        _ => {}
    }
}
