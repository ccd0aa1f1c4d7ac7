//! The sources of a Komposer, or of a Katalog that names some: which artifacts it is composed from.

use std::sync::Arc;

use orkestra_compiler::compose::Artifacts;
use orkestra_plan::Declaring;

use super::{
    super::{
        calls::RequestError, sources::KomposerSources, sources::SourceReport, sources::report,
        status::Verdict,
    },
    KatalogController,
};

impl KatalogController {
    /// True if it is composed from sources.
    pub(crate) fn is_composed(&self) -> bool {
        self.reference.kind == Declaring::Komposer || !self.judgement.requests().is_empty()
    }

    /// Follows the sources that it needs, while this process leads.
    pub(crate) fn follow_sources(&mut self) {
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
    pub(crate) fn artifacts(&self) -> Artifacts {
        let running = self.running.as_ref().map(|running| &running.used.artifacts);
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

    /// Returns the state of each source that the verdict depends on.
    pub(crate) fn source_states(&self) -> Vec<(String, String)> {
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

    /// Runs the last stored composition after a restart, before any source is fetched.
    pub(crate) async fn load_composed(&mut self) -> Result<(), RequestError> {
        if !self.is_composed() || self.running.is_some() || self.looked {
            return Ok(());
        }
        let candidate = self.judgement.take_candidate();
        self.load_last_good().await?;
        if self.running.is_some() {
            // The newest one is judged again, against what runs now.
            self.judgement.invalidate();
            self.judge().await;
        } else {
            self.judgement.restore(candidate);
        }
        Ok(())
    }

    /// True if a follower does not run the revision that the leader stored last.
    pub(crate) fn is_behind(&self) -> bool {
        match &self.running {
            None => !self.looked,
            Some(running) => {
                let stored = self.object.status.revision.as_deref();
                self.is_composed() && stored.is_some_and(|stored| *stored != *running.revision)
            }
        }
    }

    /// Describes its sources for the status.
    pub(crate) fn report_sources(&self) -> SourceReport {
        if *self.judgement.verdict() == Verdict::Deleted {
            return SourceReport::default();
        }
        let none = Artifacts::new();
        let running = self
            .running
            .as_ref()
            .map_or(&none, |running| &running.used.artifacts);
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
pub(crate) async fn changed(sources: Option<&mut KomposerSources>) {
    match sources {
        Some(sources) => sources.changed().await,
        None => std::future::pending().await,
    }
}
