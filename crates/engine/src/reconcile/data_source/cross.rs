//! `.cross`: custom resources of other operators, as template data of a pass.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    super::{
        metadata::{NAMESPACE, group_kind},
        reason::Reason,
        record::Observed,
        render::{RenderError, Setting},
        sources::{Answer, CrossBy, CrossRead, Read},
        template_data::TemplateData,
    },
    DataSource, Given, PassInput, ReadsDependOn, all_answered,
};
use orkestra_object::value::{Key, Map, Node, PathStep, project};
use orkestra_plan::{
    OperatorPlan,
    cross::{CROSS, CrossPlan, CrossSelectorPlan, CrossTarget, FOUND, label_path},
};
use orkestra_template::EvalBudget;

/// `.cross`.
pub(crate) struct CrossResources;

impl DataSource for CrossResources {
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
        for entry in &plan.cross {
            if !lacking.is_empty() && reads_others(entry) {
                continue;
            }
            match read(plan, entry, observed, now, sources) {
                Ok(Some(read)) => {
                    take(entry, observed, read, sources, &mut lacking);
                }
                // Without a name there is no resource.
                Ok(None) => put(sources, entry, absent()),
                Err(error) => hide(sources, entry, &error.message),
            }
        }
        all_answered(lacking)
    }

    fn hide(&self, plan: &OperatorPlan, sources: &mut TemplateData, why: &str) {
        for entry in &plan.cross {
            hide(sources, entry, why);
        }
    }

    fn assumed(&self, read: &Read, given: Given<'_>) -> Option<Answer> {
        match read {
            Read::Cross(read) => Some(assumed(given, read)),
            Read::Operator(_) => Some(Answer::Absent),
            _ => None,
        }
    }
}

/// Returns the given object for a read: for an entry of the same Katalog an object of its kind, for another Katalog's any that
/// a pass may read.
fn assumed(given: Given<'_>, read: &CrossRead) -> Answer {
    let mut entries = given.plan.cross.iter();
    let Some(entry) = entries.find(|entry| entry.name == read.name) else {
        return Answer::Absent;
    };
    let candidates = given.others.iter();
    let candidates = candidates.filter(|object| is_meant(entry, read, object));
    match candidates.min_by_key(|object| object.meta_text("name")) {
        Some(object) => Answer::Ready(Arc::new(project(object, &entry.reads))),
        None => Answer::Absent,
    }
}

fn is_meant(entry: &CrossPlan, read: &CrossRead, object: &Node) -> bool {
    let found = group_kind(object).ok();
    let is_of_kind = match &entry.target {
        CrossTarget::Own(_, kind) => found.is_some_and(|found| found == kind.group_kind()),
        target @ (CrossTarget::Other(_) | CrossTarget::Labels(_)) => {
            found.is_none_or(|found| target.refusal(&found).is_none())
        }
    };
    let namespace = object.meta_text("namespace");
    let is_there = match read.namespace.as_deref() {
        Some(wanted) => namespace.unwrap_or(NAMESPACE) == wanted,
        None => true,
    };
    let is_chosen = match &read.by {
        CrossBy::Name(name) => object.meta_text("name") == Some(name),
        CrossBy::Labels(labels) => labels.iter().all(|(key, value)| {
            let label = object.at(&label_path(key));
            label.and_then(Node::as_str) == Some(value)
        }),
    };
    is_of_kind && is_there && is_chosen
}

/// True if the selection of the resource depends on other resources.
fn reads_others(entry: &CrossPlan) -> bool {
    let mut paths = entry.leaves().flat_map(|leaf| leaf.template.reads());
    paths.any(|path| match path.steps().first() {
        Some(PathStep::Field(root)) => &**root == CROSS,
        _ => true,
    })
}

/// Returns the read of the entry; none if it selects no resource.
fn read(
    plan: &OperatorPlan,
    entry: &CrossPlan,
    observed: &Observed,
    now: Timestamp,
    sources: &TemplateData,
) -> Result<Option<CrossRead>, RenderError> {
    let setting = Setting::of(plan, observed);
    let data = sources.data(observed).at(now);
    let mut budget = EvalBudget::default();
    let mut renderer = setting.frame(sources).renderer(&data, &mut budget);
    let declared = match &entry.namespace {
        Some(leaf) => renderer.text(leaf)?,
        None => String::new(),
    };
    let by = match &entry.selector {
        CrossSelectorPlan::Name(leaf) => {
            let name = renderer.text(leaf)?;
            if name.is_empty() {
                return Ok(None);
            }
            CrossBy::Name(name.into())
        }
        CrossSelectorPlan::Labels(labels) => {
            let mut texts = BTreeMap::new();
            for (key, leaf) in labels {
                texts.insert(Key::clone(key), renderer.text(leaf)?.into());
            }
            CrossBy::Labels(texts)
        }
    };
    let namespace = if declared.is_empty() {
        observed.cr.id.key.namespace.clone()
    } else {
        Some(declared.into())
    };
    let own = observed.cr.id.key.namespace.as_deref();
    if let (Some(leaf), false) = (&entry.namespace, entry.permits(own, namespace.as_deref())) {
        let namespace = namespace.as_deref().unwrap_or_default();
        return Err(RenderError {
            path: leaf.path.clone().into(),
            message: format!(
                "nothing is read from namespace `{namespace}`: `allowedNamespaces` does not permit it"
            ),
            reason: Reason::SourceRefused,
        });
    }
    Ok(Some(CrossRead {
        name: entry.name.clone(),
        namespace,
        by,
    }))
}

/// Takes the answers to the entry's read, or adds it to the lacking reads.
fn take(
    entry: &CrossPlan,
    observed: &Observed,
    read: CrossRead,
    sources: &mut TemplateData,
    lacking: &mut Vec<Read>,
) {
    let asks_operator = entry.reads_health || entry.reads_metrics;
    let about = asks_operator.then(|| Read::Operator(entry.name.clone()));
    let before = lacking.len();
    let mut answer = |read: Read| {
        let answer = observed.answers.get(&read);
        if answer.is_none() {
            lacking.push(read);
        }
        answer
    };
    let (target, fields) = (answer(Read::Cross(read)), about.and_then(answer));
    if lacking.len() > before {
        return;
    }
    let mut seen = match target {
        Some(Answer::Ready(object)) => with_found(Node::clone(object), true),
        Some(Answer::Absent) | None => absent(),
        Some(Answer::Unavailable(why)) => return hide(sources, entry, why),
    };
    if let (Some(Answer::Ready(fields)), Node::Map(map)) = (fields, &mut seen) {
        let fields = fields.as_map().into_iter().flat_map(Map::iter);
        for (name, field) in fields {
            map.insert(name.clone(), field.clone());
        }
    }
    put(sources, entry, seen);
}

fn absent() -> Node {
    with_found(Node::Map(Map::default()), false)
}

fn with_found(mut object: Node, found: bool) -> Node {
    if let Node::Map(map) = &mut object {
        let found = if found { "true" } else { "false" };
        map.insert(Key::from(FOUND), Node::from(found));
    }
    object
}

fn put(sources: &mut TemplateData, entry: &CrossPlan, seen: Node) {
    sources.put(CROSS, &entry.name, seen);
}

fn hide(sources: &mut TemplateData, entry: &CrossPlan, why: &str) {
    sources.hide([Key::from(CROSS), entry.name.clone()], why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_compiler::{compile, scope::Library};
    use orkestra_language::document::read_stream;
    use orkestra_plan::{KatalogRef, definitions::Schemas};

    #[test]
    fn a_secret_is_given_only_to_an_entry_that_names_an_operator_of_the_same_katalog() {
        let text = "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {name: k}
spec:
  crds:
    key:
      apiTypes: {kind: Secret}
      labelSelector: {a.example/shared: 'yes'}
    pond:
      apiTypes: {group: g.example, version: v1, kind: Pond, plural: ponds}
      operatorBox:
        cross: [{crd: key, selector: {name: k}}, {crd: elsewhere, selector: {name: k}}]
";
        let (documents, _) = read_stream("k.yaml", text).unwrap();
        let reference = KatalogRef::new("n".to_owned(), "k".to_owned());
        let (schemas, library) = (Schemas::default(), Library::default());
        let spec = &documents.katalogs[0].spec;
        let (plan, _) = compile::katalog(&reference, spec, &schemas, &library).unwrap();
        let object = |kind: &str| {
            let metadata = Node::object([("name", Node::from("k"))]);
            Node::object([
                ("apiVersion", Node::from("v1")),
                ("kind", Node::from(kind)),
                ("metadata", metadata),
            ])
        };
        let is_given = |kind: &str, entry: &str| {
            let (object, plan) = (object(kind), &plan.operators[1]);
            let given = Given {
                plan,
                others: &[&object],
            };
            let read = CrossRead {
                name: entry.into(),
                namespace: None,
                by: CrossBy::Name("k".into()),
            };
            matches!(assumed(given, &read), Answer::Ready(_))
        };
        assert!(is_given("Secret", "key"));
        assert!(!is_given("Secret", "elsewhere"));
        assert!(is_given("ConfigMap", "elsewhere"));
    }
}
