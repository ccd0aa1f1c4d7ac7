//! The approval of new revisions of sources and Motifs: what a composition needs beyond the revision in force.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::essence;
use super::inputs::UsedMotifs;
use super::result::UsedInputs;
use super::weakened::weakened;
use crate::compose::claims::Claims;
use crate::compose::{Artifact, Fetched, SourceRecord};
use orkestra_plan::Plan;

/// How many rules a message names.
const NAMED: usize = 10;
/// What the identity of a Motif begins with.
const MOTIF: &str = "motif/";

/// The revision that runs.
#[derive(Clone, Debug)]
pub struct RevisionInForce {
    /// Its plan.
    pub plan: Arc<Plan>,
    /// What it was compiled from.
    pub used: UsedInputs,
}

/// A revision of a source or Motif that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapproved {
    /// The identity of the source, or of the Motif.
    pub source: String,
    /// The digest to approve.
    pub digest: String,
    /// The permissions that it adds, a line for each resource, and the protection that it takes away.
    pub rules: Vec<String>,
}

impl Unapproved {
    /// Returns the new revision of a Motif.
    fn of_motif(name: &str, digest: String, rules: Vec<String>) -> Self {
        Self {
            source: format!("{MOTIF}{name}"),
            digest,
            rules,
        }
    }

    /// Returns the name of the Motif, if it is one.
    pub fn motif(&self) -> Option<&str> {
        self.source.strip_prefix(MOTIF)
    }
}

impl fmt::Display for Unapproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.rules.iter().take(NAMED).cloned();
        let named = named.collect::<Vec<_>>().join("; ");
        match self.motif() {
            Some(motif) => write!(f, "the new revision of Motif {motif}")?,
            None => write!(f, "the new revision of source {}", self.source)?,
        }
        write!(f, " needs additional permissions: {named}")?;
        if self.rules.len() > NAMED {
            write!(f, "; and {} more", self.rules.len() - NAMED)?;
        }
        write!(f, "; add {} to `spec.approve` to approve it", self.digest)
    }
}

/// What a compilation is compared with.
#[derive(Clone, Copy)]
pub(crate) struct Approvals<'a> {
    pub(crate) in_force: Option<&'a RevisionInForce>,
    pub(crate) approved: &'a BTreeSet<String>,
    pub(crate) held: &'a [Unapproved],
}

impl<'a> Approvals<'a> {
    /// Returns the artifact that runs, if the newest one of the source is held back.
    pub(crate) fn artifact(self, source: &str) -> Option<&'a Arc<Artifact>> {
        let mut held = self.held.iter();
        held.find(|held| held.motif().is_none() && held.source == source)?;
        self.in_force?.used.artifacts.get(source)
    }

    /// Returns the Motif that runs, if the newest one is held back.
    pub(crate) fn motif(self, name: &str) -> Option<&'a Arc<Value>> {
        let mut held = self.held.iter();
        held.find(|held| held.motif() == Some(name))?;
        motif_of(&self.in_force?.used.motifs, name)
    }

    /// Returns the sources and Motifs whose new revision needs permissions that the running one did not, that is not approved,
    /// and that is not held back already. One that did not run before is approved by the document that names it.
    pub(crate) fn find(
        self,
        (plan, used): (&Plan, &UsedInputs),
        by_document: &BTreeSet<String>,
    ) -> Vec<Unapproved> {
        let Some(in_force) = self.in_force else {
            return Vec::new();
        };
        let is_approved =
            |digest: &String| by_document.contains(digest) || self.approved.contains(digest);
        let (running, new) = (in_force.of(), (plan, &*used.sources));
        let mut unapproved = Vec::new();
        for record in &used.sources {
            let mut before = in_force.used.sources.iter();
            let before = before.find(|before| before.source == record.source);
            let changed = before.is_some_and(|before| before.digest != record.digest);
            if !changed || is_approved(&record.digest) {
                continue;
            }
            let rules = added(&record.source, new, running);
            if !rules.is_empty() {
                unapproved.push(Unapproved {
                    source: record.source.clone(),
                    digest: record.digest.clone(),
                    rules,
                });
            }
        }
        for (name, motif) in &used.motifs {
            let (Some(motif), Some(before)) = (motif, motif_of(&in_force.used.motifs, name)) else {
                continue;
            };
            if Arc::ptr_eq(motif, before) {
                continue;
            }
            let digest = motif_digest(motif);
            if digest == motif_digest(before) || is_approved(&digest) {
                continue;
            }
            // Any operator may use it, through other Motifs too.
            let claims = |plan| Claims::of(plan, |_| true);
            let rules = claims(plan).added(&claims(&in_force.plan)).lines();
            if !rules.is_empty() {
                unapproved.push(Unapproved::of_motif(name, digest, rules));
            }
        }
        unapproved.retain(|one| self.held.iter().all(|held| held.source != one.source));
        unapproved
    }
}

impl RevisionInForce {
    fn of(&self) -> (&Plan, &[SourceRecord]) {
        (&self.plan, &self.used.sources)
    }
}

fn motif_of<'m>(motifs: &'m UsedMotifs, name: &str) -> Option<&'m Arc<Value>> {
    motifs.get(name)?.as_ref()
}

/// Returns the digest of a Motif: of the parts of it that affect operators.
pub fn motif_digest(motif: &Value) -> String {
    Artifact::digest_of(&[Fetched {
        name: String::new(),
        text: essence(motif).to_string(),
    }])
}

/// Returns the permissions that the operators which a source affects need in `new` and did not need in `old`, a line for each
/// resource.
pub(crate) fn added(
    source: &str,
    new: (&Plan, &[SourceRecord]),
    old: (&Plan, &[SourceRecord]),
) -> Vec<String> {
    let mut rules = claims(source, new).added(&claims(source, old)).lines();
    let affected = affected(source, new.1);
    rules.extend(weakened(new.0, old.0, |name| affected.contains(name)));
    rules
}

/// Returns the permissions of the operators that a source affects.
fn claims(source: &str, (plan, records): (&Plan, &[SourceRecord])) -> Claims {
    let affected = affected(source, records);
    Claims::of(plan, |name| affected.contains(name))
}

/// Returns the operators that a source affects: its own, those of sources that it names, and entries of compositions among its
/// documents.
fn affected<'r>(source: &str, records: &'r [SourceRecord]) -> BTreeSet<&'r str> {
    let record = records.iter().find(|record| record.source == source);
    let operators = record.map(|record| &*record.affected).unwrap_or_default();
    operators.iter().map(String::as_str).collect()
}
