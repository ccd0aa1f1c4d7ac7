//! The additions of `enrich` to children, as template data of a pass.

use jiff::Timestamp;

use super::{
    super::{
        identity::Uid,
        record::{Observed, ObservedChild},
        related::{RelatedBy, RelatedRead},
        render::{RenderError, Setting, workload_label},
        sources::{Answer, Read},
        template_data::TemplateData,
        view::PassView,
    },
    DataSource, Given, PassInput, ReadsDependOn, all_answered,
};
use orkestra_language::enrich::{self, Addition, EnrichSource};
use orkestra_object::value::{Key, Node, Path, PathStep};
use orkestra_plan::{
    ChildAlias, EnrichPlan, GroupKind, NameForm, ObjectKey, OperatorPlan, is_read, roots::CHILDREN,
};

/// The additions to children.
pub(crate) struct Additions;

impl DataSource for Additions {
    fn depends_on(&self) -> ReadsDependOn {
        ReadsDependOn::Resource
    }

    fn fill(&self, input: PassInput<'_>, sources: &mut TemplateData) -> Result<(), Vec<Read>> {
        let PassInput {
            plan,
            observed,
            now,
        } = input;
        let mut lacking = Vec::new();
        let setting = Setting::of(plan, observed);
        for entry in &plan.enrich {
            let wanted = wanted(plan, entry, observed);
            if wanted.is_empty() {
                continue;
            }
            match is_open(plan, entry, observed, now, (sources, &setting)) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    for (addition, child) in wanted {
                        hide(plan, addition, child, &error.message, sources);
                    }
                    continue;
                }
            }
            for (addition, child) in wanted {
                if let Some(read) = add(plan, observed, addition, child, sources)
                    && !lacking.contains(&read)
                {
                    lacking.push(read);
                }
            }
        }
        sources.heard(&setting.effects);
        all_answered(lacking)
    }

    /// A custom resource that is being deleted has none.
    fn hide(&self, _plan: &OperatorPlan, _sources: &mut TemplateData, _why: &str) {}

    /// No such objects are given.
    fn assumed(&self, read: &Read, _given: Given<'_>) -> Option<Answer> {
        matches!(read, Read::Related(_)).then_some(Answer::Absent)
    }
}

/// Returns the children with additions of `entry` that templates read.
fn wanted<'a>(
    plan: &OperatorPlan,
    entry: &EnrichPlan,
    observed: &'a Observed,
) -> Vec<(&'static Addition, &'a ObservedChild)> {
    let manager = plan.field_manager();
    let mut wanted = Vec::new();
    for addition in entry.target.additions() {
        let children = observed.children.iter().filter(|child| {
            is_read(addition, &plan.reads, &child.key.kind)
                && child.record.is_ours(&observed.cr.id.uid, &manager)
        });
        wanted.extend(children.map(|child| (addition, child)));
    }
    wanted
}

/// Adds one key of one child to the sources; returns the read if it is not answered yet.
fn add(
    plan: &OperatorPlan,
    observed: &Observed,
    addition: &'static Addition,
    child: &ObservedChild,
    sources: &mut TemplateData,
) -> Option<Read> {
    let key = || (child.key.clone(), addition.key);
    if addition.source.relation().is_none() {
        let shaped = (addition.shape)(std::slice::from_ref(&child.record.view));
        sources.added.extend(shaped.map(|value| (key(), value)));
        return None;
    }
    let owner = (&plan.resource.group_kind(), &observed.cr.id.key);
    let read = Read::Related(related_read(addition, owner, child)?);
    match observed.answers.get(&read) {
        None => return Some(read),
        Some(Answer::Ready(found)) => {
            let shaped = (addition.shape)(found.as_list().unwrap_or_default());
            sources.added.extend(shaped.map(|value| (key(), value)));
        }
        Some(Answer::Absent) => {}
        Some(Answer::Unavailable(why)) => hide(plan, addition, child, why, sources),
    }
    None
}

/// Returns the read for `addition` to a child of the custom resource of kind and key `owner`. None if the addition is
/// made from the child itself, or from an object that no field of the child names.
pub fn related_read(
    addition: &Addition,
    owner: (&GroupKind, &ObjectKey),
    child: &ObservedChild,
) -> Option<RelatedRead> {
    let object = &child.key.object;
    let (relation, by) = match addition.source {
        EnrichSource::Itself(_) => return None,
        EnrichSource::Workload(relation) => {
            let label = workload_label(owner.0, owner.1, &child.key.kind, &object.name);
            (relation, RelatedBy::Belonging(Uid::from(&*label)))
        }
        EnrichSource::Uid(relation) => {
            (relation, RelatedBy::Belonging(child.record.id.uid.clone()))
        }
        EnrichSource::Key(relation) => (
            relation,
            RelatedBy::Belonging(Uid::from(&*object.to_string())),
        ),
        EnrichSource::Field(relation, path) => {
            let named = child.record.view.at(&enrich::path(path))?;
            (relation, RelatedBy::Key(key_in(named)?))
        }
    };
    Some(RelatedRead { relation, by })
}

/// Returns the key in a field: a name, or a map with `namespace` and `name`.
fn key_in(named: &Node) -> Option<ObjectKey> {
    let text = |key| named.get(key).and_then(Node::as_str).map(Key::from);
    let key = match named.as_str() {
        Some(name) => ObjectKey {
            namespace: None,
            name: name.into(),
        },
        None => ObjectKey {
            namespace: text("namespace"),
            name: text("name")?,
        },
    };
    (!key.name.is_empty()).then_some(key)
}

fn is_open(
    plan: &OperatorPlan,
    entry: &EnrichPlan,
    observed: &Observed,
    now: Timestamp,
    (sources, setting): (&TemplateData, &Setting<'_>),
) -> Result<bool, RenderError> {
    if entry.gate.is_empty() {
        return Ok(true);
    }
    let view = PassView::of(plan, (observed, sources), setting, now);
    view.gate(&entry.gate)
}

/// Makes the additions to the child unavailable for all readers.
fn hide(
    plan: &OperatorPlan,
    addition: &Addition,
    child: &ObservedChild,
    why: &str,
    sources: &mut TemplateData,
) {
    let aliases = plan.children_names.iter();
    for alias in aliases.filter(|alias| alias.kind == child.key.kind) {
        let path = place(alias, child, addition.key);
        sources.unavailable.push((path, why.into()));
    }
}

fn place(alias: &ChildAlias, child: &ObservedChild, key: &str) -> Path {
    let mut path = Path::from_iter([
        PathStep::Field(Key::from(CHILDREN)),
        PathStep::Field(alias.name.clone()),
    ]);
    if alias.number == NameForm::Plural {
        path.push_field(&*child.key.object.name);
    }
    path.push_field(key);
    path
}
