//! Copies: a child takes the parts that it does not declare from another object.

use super::{generated_secret::missing_answer, object::check_name, pass::Pass};
use crate::reconcile::{
    reason::Reason,
    render::{RenderError, Renderer},
    sources::{Answer, Read},
};
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{ChildKey, ChildPlan, Coerce, CopyPlan, Leaf, NameRule, ObjectKey};

/// The most that the copies of one pass may take together: a list of namespaces must not become gigabytes.
const MOST_COPIED: usize = 64 << 20;

impl Pass<'_, '_> {
    /// Adds to `object`, the child `key`, the parts of the object that it copies.
    pub(crate) fn copy(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        object: &mut Node,
        key: &ChildKey,
        (declared, copy): (&ChildPlan, &CopyPlan),
    ) -> Result<(), RenderError> {
        let source = self.source(renderer, key, copy)?;
        let place = &*copy.name.path;
        match self.answer(Read::Object(source.clone())) {
            None => Err(missing_answer(place)),
            Some(Answer::Ready(found)) => {
                let found = found.clone();
                self.copied = self.copied.saturating_add(found.heap_bytes());
                if self.copied > MOST_COPIED {
                    let message =
                        format!("the copies of one resource take more than {MOST_COPIED} bytes");
                    return Err(error(place, Reason::BudgetExhausted, message));
                }
                if declared.kind.kind == copy.kind.kind {
                    merge(object, &found, &copy.parts);
                } else {
                    merge(object, &as_secret(&found), &copy.parts);
                }
                Ok(())
            }
            Some(Answer::Absent) => {
                let message = format!("the copied object {source} does not exist yet");
                Err(error(place, Reason::SourceMissing, message))
            }
            Some(Answer::Unavailable(why)) => {
                let message = format!("the copied object {source} cannot be read: {why}");
                Err(error(place, Reason::Unavailable, message))
            }
        }
    }

    /// Returns the key of the copied object.
    fn source(
        &self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        copy: &CopyPlan,
    ) -> Result<ChildKey, RenderError> {
        let name = named(renderer, &copy.name, NameRule::Subdomain)?;
        let own = self.observed.cr.id.key.namespace.clone();
        let namespace = match &copy.namespace {
            Some(leaf) => Some(named(renderer, leaf, NameRule::Label1123)?),
            None => own.clone(),
        };
        let Some(namespace) = namespace else {
            let message = format!(
                "{} is namespaced and {} is cluster-scoped: set `fromNamespace`",
                copy.kind, self.plan.resource.kind
            );
            return Err(error(&copy.name.path, Reason::InvalidName, message));
        };
        let may = own.as_deref() == Some(&*namespace)
            || copy.allowed.as_ref().is_none_or(|allowed| {
                allowed
                    .iter()
                    .any(|pattern| pattern.allows(&namespace, &name))
            });
        if !may {
            let message = format!(
                "cannot copy {} {namespace}/{name}: `allowedSources` of the entry does not list it; to permit it, add `allowedSources: [{namespace}/{name}]`",
                copy.kind.kind
            );
            return Err(error(&copy.name.path, Reason::SourceRefused, message));
        }
        let source = ChildKey {
            kind: copy.kind.clone(),
            object: ObjectKey {
                namespace: Some(namespace),
                name,
            },
        };
        if source == *key {
            let message = format!("{key} would be a copy of itself; give it another name");
            return Err(error(&copy.name.path, Reason::InvalidName, message));
        }
        Ok(source)
    }
}

/// Renders a name that must not be empty.
fn named(renderer: &mut Renderer<'_, '_>, leaf: &Leaf, rule: NameRule) -> Result<Key, RenderError> {
    let text = renderer.text(leaf)?;
    check_name(leaf, (rule, &text))?;
    Ok(text.into())
}

/// Converts a `ConfigMap` to a Secret.
fn as_secret(map: &Node) -> Node {
    let entries = |part| {
        map.get(part)
            .and_then(Node::as_map)
            .into_iter()
            .flat_map(Map::iter)
    };
    let encoded = |(key, text): (&Key, &Node)| {
        let value = Coerce::Base64.apply(text.clone()).ok().flatten()?;
        Some((key.clone(), value))
    };
    let binary = entries("binaryData").map(|(key, value)| (key.clone(), value.clone()));
    let data = entries("data").filter_map(encoded).chain(binary).collect();
    Node::object([("data", Node::Map(data))])
}

/// Adds the parts that the object does not have; of maps, the missing keys.
fn merge(object: &mut Node, source: &Node, parts: &[Key]) {
    let Node::Map(object) = object else { return };
    for part in parts {
        let Some(found) = source.get(part) else {
            continue;
        };
        match (object.get_mut(part), found) {
            (None, found) => {
                object.insert(part.clone(), found.clone());
            }
            (Some(Node::Map(own)), Node::Map(found)) => {
                let missing: Map = found
                    .iter()
                    .filter(|(key, _)| own.get(key).is_none())
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                own.extend(
                    missing
                        .iter()
                        .map(|(key, value)| (key.clone(), value.clone())),
                );
            }
            (Some(_), _) => {}
        }
    }
}

fn error(path: &str, reason: Reason, message: impl Into<String>) -> RenderError {
    RenderError {
        path: path.into(),
        message: message.into(),
        reason,
    }
}
