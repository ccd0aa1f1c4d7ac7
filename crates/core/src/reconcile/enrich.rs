//! What `enrich` adds to children, as a pass sees them.

use jiff::Timestamp;

use super::{
    children::children_data,
    record::{Observed, ObservedChild},
    related::{RelatedRead, belonging},
    render::{RenderError, Renderer, Setting},
    sources::{Answer, Read, Sources},
};
use crate::{
    plan::{ChildAlias, EnrichPlan, Number, OperatorPlan},
    template::Budget,
    value::{Key, Path, Step},
};

/// Puts what is added to children into the sources, as far as it is known; what cannot be read becomes unavailable.
///
/// # Errors
/// The reads that are not answered yet.
pub(super) fn fill(
    plan: &OperatorPlan,
    observed: &Observed,
    now: Timestamp,
    sources: &mut Sources,
) -> Result<(), Vec<Read>> {
    let mut lacking = Vec::new();
    let (owner, manager) = (plan.resource.group_kind(), plan.field_manager());
    let setting = Setting::of(plan, observed);
    for entry in &plan.enrich {
        let is_read = |child: &&ObservedChild| {
            entry.is_read(&plan.reads, &child.key.kind)
                && child.record.is_ours(&observed.cr.id.uid, &manager)
        };
        let children: Vec<_> = observed.children.iter().filter(is_read).collect();
        if children.is_empty() {
            continue;
        }
        match is_open(plan, entry, observed, now, (sources, &setting)) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                for child in children {
                    hide(plan, entry, child, &error.message, sources);
                }
                continue;
            }
        }
        for child in children {
            let read = Read::Related(RelatedRead {
                target: entry.target,
                of: belonging(
                    entry.target,
                    (&owner, &observed.cr.id.key),
                    &child.key,
                    &child.record.id.uid,
                ),
            });
            match observed.answers.get(&read) {
                None => lacking.push(read),
                Some(Answer::Ready(found)) => {
                    let key = (child.key.clone(), entry.target.key());
                    sources.added.insert(key, found.as_ref().clone());
                }
                Some(Answer::Absent) => {}
                Some(Answer::Unavailable(why)) => hide(plan, entry, child, why, sources),
            }
        }
    }
    sources.heard(&setting.turns);
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(lacking)
    }
}

fn is_open(
    plan: &OperatorPlan,
    entry: &EnrichPlan,
    observed: &Observed,
    now: Timestamp,
    (sources, setting): (&Sources, &Setting<'_>),
) -> Result<bool, RenderError> {
    if entry.gate.is_empty() {
        return Ok(true);
    }
    let frame = setting.frame(sources);
    let children = children_data(plan, observed, &plan.field_manager(), frame);
    let data = sources.data(observed).with("children", &children).at(now);
    let mut renderer = Renderer {
        data: &data,
        budget: &mut Budget::default(),
        frame,
    };
    renderer.gate(&entry.gate)
}

/// Whoever reads what would be added to the child cannot tell.
fn hide(
    plan: &OperatorPlan,
    entry: &EnrichPlan,
    child: &ObservedChild,
    why: &str,
    sources: &mut Sources,
) {
    let aliases = plan.children_names.iter();
    for alias in aliases.filter(|alias| alias.kind == child.key.kind) {
        let path = place(alias, child, entry.target.key());
        sources.unavailable.push((path, why.into()));
    }
}

fn place(alias: &ChildAlias, child: &ObservedChild, key: &str) -> Path {
    let mut path = Path::from_iter([
        Step::Field(Key::from("children")),
        Step::Field(alias.name.clone()),
    ]);
    if alias.number == Number::Plural {
        path.push_field(&*child.key.object.name);
    }
    path.push_field(key);
    path
}
