//! Objects of `observe.watch`: they are below `.children`, although the operator does not create them.

use std::collections::BTreeSet;

use super::{
    super::{
        observe::with_kind,
        sources::{Answer, Read},
        template_data::TemplateData,
    },
    DataSource, Given, PassInput, ReadsDependOn, all_answered,
};
use orkestra_object::value::{Key, Map, Node, project};
use orkestra_plan::{GroupKind, OperatorPlan, observe::WatchPlan, roots::CHILDREN};

/// The objects of `observe.watch`. Objects that no template reads are not requested.
pub(crate) struct WatchedObjects;

impl DataSource for WatchedObjects {
    fn depends_on(&self) -> ReadsDependOn {
        ReadsDependOn::Plan
    }

    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>> {
        let PassInput { plan, observed, .. } = input;
        let mut lacking = Vec::new();
        for watch in read(plan) {
            let kind = watch.kind.group_kind();
            let read = Read::Watched(kind.clone());
            match observed.answers.get(&read) {
                None => lacking.push(read),
                Some(Answer::Ready(objects)) => {
                    sources.watched.insert(kind, view(watch, objects));
                }
                Some(Answer::Absent) => {}
                Some(Answer::Unavailable(why)) => hide(plan, &kind, sources, why),
            }
        }
        all_answered(lacking)
    }

    fn hide(&self, plan: &OperatorPlan, sources: &mut TemplateData, why: &str) {
        for watch in read(plan) {
            hide(plan, &watch.kind.group_kind(), sources, why);
        }
    }

    /// No such objects are given.
    fn assumed(&self, read: &Read, _given: Given<'_>) -> Option<Answer> {
        matches!(read, Read::Watched(_)).then_some(Answer::Absent)
    }
}

/// Returns the watches that templates read, one for each kind.
fn read(plan: &OperatorPlan) -> impl Iterator<Item = &WatchPlan> {
    let mut kinds = BTreeSet::new();
    let watches = plan.observe.watches.iter();
    let read = watches.filter(|watch| !watch.reads.is_empty());
    read.filter(move |watch| kinds.insert(watch.kind.group_kind()))
}

/// Returns the objects as templates see them: only the fields that they read, so that equal reads compare equal.
fn view(watch: &WatchPlan, objects: &Node) -> Node {
    let objects = objects.as_map().into_iter().flat_map(Map::iter);
    let seen = objects.map(|(name, object)| {
        let object = project(&with_kind(object, &watch.kind), &watch.reads);
        (name.clone(), object)
    });
    Node::Map(seen.collect())
}

fn hide(plan: &OperatorPlan, kind: &GroupKind, sources: &mut TemplateData, why: &str) {
    let aliases = plan.children_names.iter();
    for alias in aliases.filter(|alias| alias.kind == *kind) {
        sources.hide([Key::from(CHILDREN), alias.name.clone()], why);
    }
}
