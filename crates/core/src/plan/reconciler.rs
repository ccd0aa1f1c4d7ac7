//! `reconciler`: workers and resync, from the Katalog, an included file and a profile.

use std::time::Duration;

use super::{
    Library,
    library::{Content, Part},
    profiles::no_include_inside,
};
use crate::{
    api::{CrdEntry, Reconciler},
    diagnostics::Code,
    resources::scope::At,
};

/// Passes at a time, where nothing is declared.
const DEFAULT_WORKERS: u32 = 3;
/// Most passes at a time that one operator may declare.
const MOST_WORKERS: u32 = 1000;
/// Period of the safety net, where nothing is declared.
const DEFAULT_RESYNC: Duration = Duration::from_mins(10);

/// How an operator works through its queue.
pub(crate) struct Pace {
    /// Passes at a time.
    pub(crate) workers: u32,
    /// Period of the safety net; zero is off.
    pub(crate) resync: Duration,
}

/// The pace of the entry at `at`. Of each field the reconciler's own value wins, then the included file's, the entry's,
/// the profile's.
pub(crate) fn pace(at: &At<'_>, entry: &CrdEntry, library: &Library) -> Pace {
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
        let message = format!("`operatorBox.reconciler.workers` is set too and wins: {inner}");
        at.field("workers").warn(Code::SetTwice, message);
    }
    let profile = layers
        .iter()
        .find_map(|(at, reconciler)| Some((at.field("profile"), reconciler.profile.as_deref()?)));
    let profile = profile.and_then(|(at, name)| at.lexicon()?.profiles.reconciler.get(&at, name));
    let profile = profile.map(|(_, profile)| profile);
    Pace {
        workers: workers
            .or(entry.workers)
            .or_else(|| profile?.workers)
            .unwrap_or(DEFAULT_WORKERS),
        resync: resync
            .or_else(|| profile?.resync)
            .map_or(DEFAULT_RESYNC, |span| span.0),
    }
}

/// What is declared, and what the file that is included declares.
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
        && let Some(document) = library.open(&at.field("include"), Part::Reconciler, file)
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
