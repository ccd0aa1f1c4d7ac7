//! What an operator remembers about a custom resource between passes. Losing it costs a request, never correctness.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use orkestra_engine::reconcile::{
    emit::EmittedBefore, hold_reason::HoldReason, reason::Reason, standing::Standing,
};
use orkestra_object::{decode::Version, value::Path};
use orkestra_plan::ChildKey;
use tokio::time::Instant;

pub(crate) use super::waiting::Waiting;

/// A field forced this many times within [`FIGHT_WINDOW`] is contested by another writer.
const FIGHT_AFTER: usize = 3;
/// The period in which forced writes count.
const FIGHT_WINDOW: Duration = Duration::from_mins(10);
/// A contested field is written at most this often.
const FIGHT_PAUSE: Duration = Duration::from_mins(1);

/// The memory of one custom resource.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Whether it was ready after its last pass.
    pub(crate) ready: bool,
    /// The reason of its last pass, if that was under the plan in force.
    pub(crate) reason: Option<Reason>,
    /// How it stands under the revision in force.
    pub(crate) standing: Standing,
    /// The event reported by the last pass; it is reported once.
    pub(crate) reported: Option<String>,
    /// Why the custom resource is held back, if it is.
    pub(crate) held_back: Option<HoldReason>,
    /// The last reported event about ignored inventory entries.
    pub(crate) ignored: Option<String>,
    /// The last reported event about objects with the marks of children where none are permitted.
    pub(crate) strangers: Option<String>,
    /// The last reported event of rules that only warn.
    pub(crate) warned: Option<String>,
    /// The state of the custom resource for which a normalized one was last stored or refused.
    pub(crate) normalized: Option<String>,
    /// The comparisons that conditions could not make in the last pass; reported once.
    pub(crate) doubted: Option<String>,
    /// The declared Events whose conditions held in the last pass; none before the first pass.
    pub(crate) emitted: Option<EmittedBefore>,
    /// Since when children are not ready, and why.
    pub(crate) waiting: Option<Waiting>,
    children: HashMap<ChildKey, ChildMemory>,
}

#[derive(Debug, Default)]
struct ChildMemory {
    /// Hash and resourceVersion of an apply that changed nothing though fields are missing: it would change nothing again.
    settled: Option<(String, Version)>,
    /// When each field was forced.
    forced: HashMap<Path, VecDeque<Instant>>,
}

/// Memory between two passes. For most custom resources it holds only how they stand.
#[derive(Debug, Default)]
pub(crate) struct PassMemory {
    /// As in [`Memory`].
    pub(crate) ready: bool,
    /// As in [`Memory`].
    pub(crate) reason: Option<Reason>,
    /// As in [`Memory`].
    pub(crate) standing: Standing,
    /// As in [`Memory`].
    pub(crate) held_back: Option<HoldReason>,
    more: Option<Box<Memory>>,
}

impl PassMemory {
    /// Takes the memory for a pass, except how the custom resource stands.
    pub(crate) fn take(&mut self) -> Memory {
        Memory {
            ready: self.ready,
            reason: self.reason,
            standing: self.standing,
            held_back: self.held_back,
            ..self.more.take().map(|more| *more).unwrap_or_default()
        }
    }
}

impl PassMemory {
    /// Another revision is in force.
    pub(crate) fn under_another(&mut self) {
        (self.ready, self.reason) = (false, None);
        self.standing = self.standing.under_another();
    }
}

impl From<Memory> for PassMemory {
    fn from(memory: Memory) -> Self {
        let (ready, held_back) = (memory.ready, memory.held_back);
        let (reason, standing) = (memory.reason, memory.standing);
        let more = (!memory.is_bare()).then(|| Box::new(memory));
        Self {
            ready,
            reason,
            standing,
            held_back,
            more,
        }
    }
}

impl Memory {
    /// True if it holds only how the custom resource stands.
    fn is_bare(&self) -> bool {
        let Self {
            ready: _,
            reason: _,
            standing: _,
            held_back: _,
            reported,
            ignored,
            strangers,
            warned,
            normalized,
            doubted,
            emitted,
            waiting,
            children,
        } = self;
        let texts = [reported, ignored, strangers, warned, normalized, doubted];
        let is_silent = texts.into_iter().all(Option::is_none) && emitted.is_none();
        is_silent && waiting.is_none() && children.is_empty()
    }

    fn child(&mut self, key: &ChildKey) -> &mut ChildMemory {
        self.children.entry(key.clone()).or_default()
    }

    /// True if an apply of `hash` over `resource_version` is known to change nothing.
    pub(crate) fn is_settled(
        &self,
        key: &ChildKey,
        hash: &str,
        resource_version: &Version,
    ) -> bool {
        let settled = self
            .children
            .get(key)
            .and_then(|child| child.settled.as_ref());
        settled.is_some_and(|(known, version)| known == hash && version == resource_version)
    }

    /// Records that an apply of `hash` left the object at `resource_version`.
    pub(crate) fn settle(&mut self, key: &ChildKey, hash: &str, resource_version: &Version) {
        self.child(key).settled = Some((hash.to_owned(), resource_version.clone()));
    }

    /// Records that fields are forced now.
    pub(crate) fn force(&mut self, key: &ChildKey, paths: &[Path], now: Instant) {
        let child = self.child(key);
        for path in paths {
            child.forced.entry(path.clone()).or_default().push_back(now);
        }
    }

    /// Returns the contested fields among `paths`, and how long not to write them.
    pub(crate) fn fights(
        &mut self,
        key: &ChildKey,
        paths: &[Path],
        now: Instant,
    ) -> Option<RevertedFields> {
        let child = self.children.get_mut(key)?;
        for times in child.forced.values_mut() {
            while times
                .front()
                .is_some_and(|first| now.duration_since(*first) > FIGHT_WINDOW)
            {
                times.pop_front();
            }
        }
        child.forced.retain(|_, times| !times.is_empty());
        let fought = |path: &&Path| {
            child
                .forced
                .get(*path)
                .is_some_and(|times| times.len() >= FIGHT_AFTER)
        };
        let paths: Vec<Path> = paths.iter().filter(fought).cloned().collect();
        let last = paths
            .iter()
            .filter_map(|path| child.forced.get(path)?.back())
            .max()?;
        Some(RevertedFields {
            pause: FIGHT_PAUSE.saturating_sub(now.duration_since(*last)),
            paths,
        })
    }

    /// Drops the children for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&ChildKey) -> bool) {
        self.children.retain(|key, _| keep(key));
    }
}

/// Fields that another writer keeps reverting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RevertedFields {
    /// The fields.
    pub(crate) paths: Vec<Path>,
    /// The delay before they are written again; zero means now.
    pub(crate) pause: Duration,
}

#[cfg(test)]
mod tests {
    use orkestra_plan::{GroupKind, ObjectKey};

    use super::*;

    fn key() -> ChildKey {
        ChildKey {
            kind: GroupKind::parse("ConfigMap"),
            object: ObjectKey {
                namespace: Some("shop".into()),
                name: "web".into(),
            },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_field_forced_three_times_in_ten_minutes_is_a_fight() {
        let (mut memory, paths) = (Memory::default(), [Path::parse("data.a").unwrap()]);
        for _ in 0..3 {
            assert_eq!(memory.fights(&key(), &paths, Instant::now()), None);
            memory.force(&key(), &paths, Instant::now());
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        let fight = memory.fights(&key(), &paths, Instant::now()).unwrap();
        assert_eq!(fight.pause, Duration::from_secs(50));
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(
            memory.fights(&key(), &paths, Instant::now()).unwrap().pause,
            Duration::ZERO
        );
        tokio::time::advance(FIGHT_WINDOW).await;
        assert_eq!(memory.fights(&key(), &paths, Instant::now()), None);
    }

    #[test]
    fn what_is_kept_between_passes_is_all_of_it_and_how_the_resource_stands_stays() {
        let stands = || Memory {
            ready: true,
            held_back: Some(HoldReason::Gated),
            ..Memory::default()
        };
        let mut kept = PassMemory::from(stands());
        assert!(kept.more.is_none());
        for _ in 0..2 {
            let taken = kept.take();
            assert_eq!(
                (taken.ready, taken.held_back),
                (true, Some(HoldReason::Gated))
            );
        }
        let mut memory = stands();
        memory.settle(&key(), "h", &"7".into());
        let mut kept = PassMemory::from(memory);
        assert!(kept.take().is_settled(&key(), "h", &"7".into()));
        assert!(kept.ready && kept.more.is_none());
        for set in [
            |memory: &mut Memory| memory.reported = Some(String::new()),
            |memory: &mut Memory| memory.warned = Some(String::new()),
            |memory: &mut Memory| memory.normalized = Some(String::new()),
            |memory: &mut Memory| memory.doubted = Some(String::new()),
            |memory: &mut Memory| memory.emitted = Some(EmittedBefore::default()),
        ] {
            let mut memory = stands();
            set(&mut memory);
            assert!(PassMemory::from(memory).more.is_some());
        }
    }

    #[test]
    fn an_apply_that_changed_nothing_is_remembered_for_that_state_only() {
        let mut memory = Memory::default();
        memory.settle(&key(), "h", &"7".into());
        assert!(memory.is_settled(&key(), "h", &"7".into()));
        assert!(!memory.is_settled(&key(), "h", &"8".into()));
        assert!(!memory.is_settled(&key(), "g", &"7".into()));
    }
}
