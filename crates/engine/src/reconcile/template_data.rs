//! The data of a pass for templates and conditions, other than the custom resource and its children.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    failure::Failure, gate_effects::GateEffects, hooks::HookAnswers, prepared::Prepared,
    record::Observed, sources::Answer,
};
use orkestra_language::{
    api::conditions::{CLEANUP_PENDING, Condition, ConditionStatus},
    reasons::Remark,
};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};
use orkestra_plan::{ChildKey, EXTERNAL, GroupKind, Moment, OLD, OPERATION};
use orkestra_template::Data;

/// The data for templates and conditions of a pass beside the custom resource's own fields and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateData {
    /// The custom resource as templates see it, if it differs from the one read: normalized and completed.
    pub cr: Option<Node>,
    /// The result of preparing it.
    pub prepared: Prepared,
    /// The moment at which rules are evaluated.
    pub moment: Moment,
    /// `.old` and `.operation` of rules; null in passes.
    pub written: (Node, Node),
    /// Further roots that the plan reads: `.cross`, `.events`, `.health`, `.metrics`, `.ork` and `._normalizeChanges`.
    pub roots: BTreeMap<&'static str, Node>,
    /// The additions to children, by child and key.
    pub added: BTreeMap<(ChildKey, &'static str), Node>,
    /// The data that cannot be read at the moment: the path from the root, such as `cross.db`, and the reason. A condition
    /// that reads it neither creates nor deletes.
    pub unavailable: Vec<(Path, Box<str>)>,
    /// `.external`, for the Katalog and for the Motif of each import.
    pub external: BTreeMap<Option<usize>, Node>,
    /// The answers of hooks.
    pub hooks: HookAnswers,
    /// Objects below `.children` that the operator does not create, by kind: a map by name.
    pub watched: BTreeMap<GroupKind, Node>,
    /// When the result of a condition evaluated so far changes.
    pub wake: Option<Timestamp>,
    /// The comparisons that they could not make.
    pub doubts: Vec<Failure>,
    /// The state of the custom resource if the conditions of its cleanup hold.
    pub cleanup: Option<CleanupState>,
    /// Whether other custom resources have the same text at the paths that `unique` checks.
    pub same: BTreeMap<Path, Answer>,
}

impl TemplateData {
    /// Adds an entry to the root `root`, a map by name.
    pub(crate) fn put(&mut self, root: &'static str, name: &Key, value: Node) {
        let map = self.roots.entry(root).or_default();
        if !matches!(map, Node::Map(_)) {
            *map = Node::Map(Map::default());
        }
        if let Node::Map(map) = map {
            map.insert(name.clone(), value);
        }
    }

    /// Makes the data at the path of these fields unavailable, for the reason `why`.
    pub(crate) fn hide(&mut self, fields: impl IntoIterator<Item = Key>, why: &str) {
        let path = fields.into_iter().map(PathStep::Field).collect();
        self.unavailable.push((path, why.into()));
    }

    /// True if no child is created for the custom resource in its current form.
    pub(crate) fn is_refused(&self) -> bool {
        !self.prepared.failures.is_empty()
    }

    /// Records the side results of conditions.
    pub(crate) fn heard(&mut self, effects: &GateEffects) {
        self.wake = self.wake.into_iter().chain(effects.first()).min();
        for doubt in effects.doubts() {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// Returns the roots of the templates, without `.children`.
    pub(crate) fn data<'a>(&'a self, observed: &'a Observed) -> Data<'a> {
        self.data_of(self.cr.as_ref().unwrap_or(&observed.cr.view))
    }

    /// Returns the same with `cr` as the custom resource.
    pub(crate) fn data_of<'a>(&'a self, cr: &'a Node) -> Data<'a> {
        let roots = self.roots.iter();
        let data = roots.fold(Data::of(cr), |data, (root, value)| data.with(root, value));
        let data = match &self.written {
            (_, Node::Null) => data,
            (old, operation) => data.with(OLD, old).with(OPERATION, operation),
        };
        self.with_calls(data, None)
    }

    /// Returns `data` with the answers to the calls of an import, or of the Katalog.
    pub(crate) fn with_calls<'a>(&'a self, data: Data<'a>, import: Option<usize>) -> Data<'a> {
        match self.external.get(&import) {
            Some(external) => data.with(EXTERNAL, external),
            None => data,
        }
    }

    /// Returns why one of `paths` cannot be read, if any.
    pub(crate) fn why_not<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Option<String> {
        if self.unavailable.is_empty() {
            return None;
        }
        paths.into_iter().find_map(|path| {
            let touches = |(gone, _): &&(Path, Box<str>)| path.overlaps(gone);
            let (gone, why) = self.unavailable.iter().find(touches)?;
            Some(format!("`.{gone}` cannot be read: {why}"))
        })
    }
}

/// The state of a custom resource whose conditions for a cleanup hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanupState {
    /// It is deleted at that moment, if they still hold.
    Pending(Timestamp),
    /// It is deleted now.
    Due,
    /// It is not deleted, with the reason.
    Refused(String),
}

impl CleanupState {
    /// Returns the condition that reports it; none if the custom resource is deleted.
    pub(crate) fn condition(&self) -> Option<Condition> {
        let (reason, message) = match self {
            Self::Due => return None,
            Self::Pending(due) => {
                let message = format!("the custom resource is deleted at {due}");
                (Remark::CleanupScheduled, message)
            }
            Self::Refused(why) => {
                let message = format!("the custom resource is not deleted: {why}");
                (Remark::CleanupRefused, message)
            }
        };
        Some(Condition::new(
            CLEANUP_PENDING,
            ConditionStatus::True,
            reason.as_str(),
            &message,
        ))
    }
}
