//! Rolls pods when their configuration changes, by a hash of it on the pod template.

use std::collections::BTreeMap;

use super::{Intent, generated_secret::missing_answer, pass::Pass};
use crate::reconcile::{
    child_metadata::set_in,
    reason::Reason,
    render::RenderError,
    sources::{Answer, Read},
};
use orkestra_language::api::names::ANNOTATION_CONFIG_HASH;
use orkestra_object::value::{Map, Node, hash};
use orkestra_plan::{
    ChildKey, GroupKind, ObjectKey,
    kinds::{config_hash, pod_template},
};

/// The content of a Secret or a `ConfigMap` that pods see.
const CONTENT: [&str; 2] = ["data", "binaryData"];

impl Pass<'_, '_> {
    /// Adds the hash of the configuration that the pods of `object`, the child `key`, use to their template. `place` is for
    /// messages.
    pub(crate) fn roll(
        &mut self,
        object: &mut Node,
        key: &ChildKey,
        place: &str,
    ) -> Result<(), RenderError> {
        let way = template_of(object);
        let Some(template) = at(object, way) else {
            return Ok(());
        };
        let mut all = Map::default();
        let (mut is_asked, mut lacks) = (false, false);
        let mut created = Vec::new();
        for (used, is_needed) in used(template, key) {
            match self.content(&used, place)? {
                Some(content) => {
                    lacks |= is_needed && content.is_empty();
                    created.extend(self.creates(&used).then(|| used.clone()));
                    let name = format!("{}/{}", used.kind.kind, used.object.name);
                    all.insert(name.into(), content.into());
                }
                None => is_asked = true,
            }
        }
        if is_asked {
            return Err(missing_answer(place));
        }
        if !all.is_empty() {
            // New pods could not start without it: running pods keep their configuration. A creation with new random values may be
            // refused, again and again with others; the pass after it counts what exists.
            let is_kept = lacks || !created.is_empty();
            let kept = is_kept.then(|| self.rolled_with(key)).flatten();
            if kept.is_some() {
                self.cycle.rolls_after.extend(created);
            }
            let mark = kept.unwrap_or_else(|| hash(&Node::Map(all)));
            let parents = [way, &["metadata", "annotations"]].concat();
            set_in(object, &parents, ANNOTATION_CONFIG_HASH, mark.into());
        }
        Ok(())
    }

    /// Returns the hash on the pod template of the live workload.
    fn rolled_with(&self, key: &ChildKey) -> Option<String> {
        let record = self.observed.child(key)?;
        let mark = record.view.at(&config_hash(&key.kind.kind))?;
        mark.as_str().map(str::to_owned)
    }

    /// True if this pass creates the object.
    fn creates(&self, used: &ChildKey) -> bool {
        let mut intents = self.cycle.intents.iter();
        intents.any(|intent| matches!(intent, Intent::Create(made) if made.key == *used))
    }

    /// Returns the hash of an object's content; none while it is requested.
    fn content(&mut self, used: &ChildKey, place: &str) -> Result<Option<String>, RenderError> {
        // If this pass writes the object, its rendered content counts.
        let made = self.cycle.intents.iter().find_map(|intent| match intent {
            Intent::Apply(rendered) | Intent::Create(rendered) if rendered.key == *used => {
                Some(content_hash(&rendered.object))
            }
            _ => None,
        });
        if made.is_some() {
            return Ok(made);
        }
        match self.answer(Read::Object(used.clone())) {
            None => Ok(None),
            Some(Answer::Ready(found)) => Ok(Some(content_hash(found))),
            Some(Answer::Absent) => Ok(Some(String::new())),
            Some(Answer::Unavailable(why)) => Err(RenderError {
                path: place.into(),
                message: format!("{used}, which its pods use, cannot be read: {why}"),
                reason: Reason::Unavailable,
            }),
        }
    }
}

fn content_hash(object: &Node) -> String {
    let part = |name: &'static str| {
        let part = object.get(name).filter(|part| !part.is_empty_value());
        (name, part.cloned().unwrap_or_default())
    };
    hash(&Node::object(CONTENT.map(part)))
}

/// Returns the path of the pod template.
fn template_of(object: &Node) -> &'static [&'static str] {
    pod_template(
        object
            .get("kind")
            .and_then(Node::as_str)
            .unwrap_or_default(),
    )
}

fn at<'a>(object: &'a Node, way: &[&str]) -> Option<&'a Node> {
    way.iter().try_fold(object, |node, step| node.get(step))
}

/// The fields by which a source of variables, or of one variable, names its object.
const VARIABLES: [(&str, [&str; 2]); 4] = [
    ("Secret", ["secretRef", "name"]),
    ("ConfigMap", ["configMapRef", "name"]),
    ("Secret", ["secretKeyRef", "name"]),
    ("ConfigMap", ["configMapKeyRef", "name"]),
];
/// The fields by which one of several sources of a volume names its object.
const SOURCES: [(&str, [&str; 2]); 2] = [
    ("Secret", ["secret", "name"]),
    ("ConfigMap", ["configMap", "name"]),
];
/// The fields by which a volume names a Secret: as its content, or as its credentials.
const VOLUMES: [&[&str]; 3] = [
    &["secretName"],
    &["secretRef", "name"],
    &["nodePublishSecretRef", "name"],
];

/// Returns the Secrets and `ConfigMaps` that a pod template of the workload `key` names, and whether its pods need them to
/// start.
fn used(template: &Node, key: &ChildKey) -> BTreeMap<ChildKey, bool> {
    let mut used = BTreeMap::new();
    let mut add = |kind: &str, node: &Node, way: &[&str]| {
        let Some((last, parents)) = way.split_last() else {
            return;
        };
        let source = at(node, parents);
        let name = source.and_then(|source| source.get(last)?.as_str());
        let optional = source.and_then(|source| source.get("optional")?.as_bool());
        // Image pull secrets are always optional.
        let is_image = parents.is_empty() && *last == "name";
        let is_needed = optional != Some(true) && !is_image;
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let object = ChildKey {
                kind: GroupKind::parse(kind),
                object: ObjectKey {
                    namespace: key.object.namespace.clone(),
                    name: name.into(),
                },
            };
            *used.entry(object).or_default() |= is_needed;
        }
    };
    let Some(spec) = template.get("spec") else {
        return used;
    };
    for secret in items(spec, "imagePullSecrets") {
        add("Secret", secret, &["name"]);
    }
    for volume in items(spec, "volumes") {
        add("ConfigMap", volume, &["configMap", "name"]);
        let fields = volume.as_map().into_iter().flat_map(Map::iter);
        for (_, of_kind) in fields {
            for way in VOLUMES {
                add("Secret", of_kind, way);
            }
            for source in items(of_kind, "sources") {
                for (kind, way) in SOURCES {
                    add(kind, source, &way);
                }
            }
        }
    }
    let containers = items(spec, "containers")
        .iter()
        .chain(items(spec, "initContainers"));
    for container in containers {
        let one_by_one = items(container, "env").iter();
        let one_by_one = one_by_one.filter_map(|variable| variable.get("valueFrom"));
        for source in items(container, "envFrom").iter().chain(one_by_one) {
            for (kind, way) in VARIABLES {
                add(kind, source, &way);
            }
        }
    }
    used
}

fn items<'a>(node: &'a Node, field: &str) -> &'a [Node] {
    node.get(field).and_then(Node::as_list).unwrap_or_default()
}
