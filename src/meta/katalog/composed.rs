//! The sources of a Komposer, or of a Katalog that names some: which artifacts it is composed from.

use std::sync::Arc;

use orkestra_core::{
    compose::{Artifact, Artifacts},
    diagnostics::Code,
    plan::Declaring,
    reasons::KatalogReason,
};
use serde_json::{Map, Value};

use super::{
    super::{
        calls::RequestError, sources::KomposerSources, sources::SourceReport,
        sources::approval::Unapproved, sources::approval::added, sources::report, status::Verdict,
    },
    KatalogController,
    judge::RunnableRevision,
    used_motifs::Locks,
};
use crate::meta::status::Refusal;

impl KatalogController {
    /// True if it is composed from sources.
    pub(super) fn is_composed(&self) -> bool {
        self.reference.kind == Declaring::Komposer || !self.judgement.requests().is_empty()
    }

    /// Follows the sources that it needs, while this process leads.
    pub(super) fn follow_sources(&mut self) {
        let requests = self.judgement.requests();
        if !self.lead.is_leader() || requests.is_empty() || self.is_deleting() {
            self.sources = None;
            return;
        }
        let sources = self
            .sources
            .get_or_insert_with(|| KomposerSources::start(&self.shared.sources, &self.reference));
        let requested = self.object.requested.as_ref();
        let requested = requested.map(|requested| requested.latest().to_owned());
        sources.want(requests.to_vec(), requested);
    }

    /// Returns the newest artifacts of its sources; of a source that has none yet, the one that runs.
    pub(super) fn artifacts(&self) -> Artifacts {
        let running = self.running.as_ref().map(|running| &running.artifacts);
        let mut artifacts = running.cloned().unwrap_or_default();
        if let Some(sources) = &self.sources {
            for (id, known) in sources.known().iter() {
                if let Some(artifact) = &known.artifact {
                    artifacts.insert(id.clone(), Arc::clone(artifact));
                }
            }
        }
        artifacts
    }

    /// Returns its artifacts with those that run in place of those that are not approved.
    pub(super) fn approved_artifacts(&self) -> Artifacts {
        let mut artifacts = self.artifacts();
        let running = self.running.as_ref().map(|running| &running.artifacts);
        for unapproved in self.judgement.unapproved() {
            let earlier = running.and_then(|running| running.get(&unapproved.source));
            if let Some(earlier) = earlier {
                artifacts.insert(unapproved.source.clone(), Arc::clone(earlier));
            }
        }
        artifacts
    }

    /// Returns the state of each source that the verdict depends on.
    pub(super) fn source_states(&self) -> Vec<(String, String)> {
        let mut states: Vec<(String, String)> = (self.artifacts().iter())
            .map(|(id, artifact)| {
                (
                    id.clone(),
                    format!("{} {}", artifact.revision, artifact.digest),
                )
            })
            .collect();
        if let Some(sources) = &self.sources {
            for (id, known) in sources
                .known()
                .iter()
                .filter(|(_, known)| known.artifact.is_none())
            {
                let problem = known.problem.as_ref().map(ToString::to_string);
                states.push((id.clone(), problem.unwrap_or_default()));
            }
        }
        states
    }

    /// Returns the sources whose new revision needs permissions that the running one did not, and that is not approved. A
    /// source that did not run before is approved by being listed.
    pub(super) fn find_unapproved(
        &self,
        judged: &RunnableRevision,
        locks: Option<&Locks>,
    ) -> Vec<Unapproved> {
        let (Some(running), Some(locks)) = (&self.running, locks) else {
            return Vec::new();
        };
        let is_approved = |digest: &String| {
            locks.approved.contains(digest) || self.object.approved.contains(digest)
        };
        let mut unapproved = Vec::new();
        for record in &judged.sources {
            let before = running
                .sources
                .iter()
                .find(|before| before.source == record.source);
            let changed = before.is_some_and(|before| before.digest != record.digest);
            if !changed || is_approved(&record.digest) {
                continue;
            }
            let new = (&*judged.plan, &*judged.sources);
            let rules = added(&record.source, new, (&running.plan, &running.sources));
            if !rules.is_empty() {
                unapproved.push(Unapproved {
                    source: record.source.clone(),
                    digest: record.digest.clone(),
                    rules,
                });
            }
        }
        unapproved
    }

    /// Returns the refusal with the problems of the sources that it waits for.
    pub(super) fn explain(&self, refusal: Refusal) -> Refusal {
        let Some(sources) = self
            .sources
            .as_ref()
            .filter(|_| refusal.reason == KatalogReason::Fetching)
        else {
            return refusal;
        };
        let known = sources.known();
        let problems = self.judgement.requests().iter().filter_map(|request| {
            let known = known.get(&request.id)?;
            let problem = known
                .problem
                .as_ref()
                .filter(|_| known.artifact.is_none())?;
            let message = format!("source {} cannot be fetched: {problem}", request.id);
            Some(request.problem(Code::Unreadable, message).to_string())
        });
        let problems: Vec<String> = problems.collect();
        if problems.is_empty() {
            return refusal;
        }
        Refusal {
            reason: KatalogReason::SourceFailed,
            message: problems.join("\n"),
        }
    }

    /// Runs the last stored composition after a restart, before any source is fetched.
    pub(super) async fn load_composed(&mut self) -> Result<(), RequestError> {
        if !self.is_composed() || self.running.is_some() || self.looked {
            return Ok(());
        }
        let candidate = self.judgement.take_candidate();
        self.load_last_good().await?;
        if self.running.is_some() {
            // The newest one is judged again, against what runs now.
            self.judgement.invalidate();
            self.judge_by_schemas().await;
        } else {
            self.judgement.restore(candidate);
        }
        Ok(())
    }

    /// True if a follower does not run the revision that the leader stored last.
    pub(super) fn is_behind(&self) -> bool {
        match &self.running {
            None => !self.looked,
            Some(running) => {
                let stored = self.object.status.revision.as_deref();
                self.is_composed() && stored.is_some_and(|stored| *stored != *running.revision)
            }
        }
    }

    /// Describes its sources for the status.
    pub(super) fn report_sources(&self) -> SourceReport {
        if *self.judgement.verdict() == Verdict::Deleted {
            return SourceReport::default();
        }
        let none = Artifacts::new();
        let running = self
            .running
            .as_ref()
            .map_or(&none, |running| &running.artifacts);
        let known = self
            .sources
            .as_ref()
            .map(KomposerSources::known)
            .unwrap_or_default();
        let judgement = &self.judgement;
        report(
            judgement.requests(),
            running,
            &known,
            judgement.unapproved(),
        )
    }
}

/// Returns when more is known about the sources.
pub(super) async fn changed(sources: Option<&mut KomposerSources>) {
    match sources {
        Some(sources) => sources.changed().await,
        None => std::future::pending().await,
    }
}

/// Returns artifacts in their stored form.
pub(super) fn stored(artifacts: Option<&Artifacts>) -> Map<String, Value> {
    let artifacts = artifacts.into_iter().flatten();
    let stored = artifacts.map(|(id, artifact)| {
        // Texts and fixed names, which always serialize.
        let artifact = serde_json::to_value(&**artifact).unwrap_or_default();
        (id.clone(), artifact)
    });
    stored.collect()
}

/// Reads stored artifacts; one that cannot be read is missing.
pub(crate) fn read(stored: &Map<String, Value>) -> Artifacts {
    let artifacts = stored.iter().filter_map(|(id, artifact)| {
        let artifact: Artifact = serde_json::from_value(artifact.clone()).ok()?;
        Some((id.clone(), Arc::new(artifact)))
    });
    artifacts.collect()
}
