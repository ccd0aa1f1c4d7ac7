//! A record of an object that scales a workload: a `HorizontalPodAutoscaler`.

use super::{
    identity::{Identity, Uid},
    metadata::{Malformed, in_metadata},
};
use orkestra_object::value::{Key, Node, Path, Projection};
use orkestra_plan::{ChildKey, GroupKind, ObjectKey};

/// The field with the workload.
const TARGET: [&str; 2] = ["spec", "scaleTargetRef"];

/// The record of an object that scales a workload: its identity and the workload. Its status changes every few seconds and is
/// not part of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaler {
    /// Its identity.
    pub id: Identity,
    /// The workload, as [`Scaler::of_target`] formats it; none if it names no workload.
    pub target: Option<Uid>,
}

impl Scaler {
    /// Records `object`.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Identity::read`].
    pub fn read(object: &Node) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let target = target(object, id.key.namespace.as_ref());
        let target = target.as_ref().map(Self::of_target);
        Ok(Self { id, target })
    }

    /// Returns the fields that [`Scaler::read`] reads.
    pub fn projection() -> Projection {
        let own = Identity::FIELDS.map(|field| in_metadata(&[field]));
        let target = Path::of_fields(TARGET);
        Projection::new(own.iter().chain([&target]))
    }

    /// Returns the text that identifies a workload, in the form of an owner, by which stores index records.
    pub fn of_target(workload: &ChildKey) -> Uid {
        Uid::from(&*workload.to_string())
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.target.as_ref().map_or(0, Uid::heap_bytes)
    }

    /// True if it is another object, or scales another workload.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, target } = self;
        id.uid != before.id.uid || *target != before.target
    }
}

/// Returns the workload that an autoscaler names: always in its own namespace.
fn target(object: &Node, namespace: Option<&Key>) -> Option<ChildKey> {
    let target = object.at(&Path::of_fields(TARGET))?;
    let text = |field| target.get(field).and_then(Node::as_str);
    let version = text("apiVersion").unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Some(ChildKey {
        kind: GroupKind {
            group: group.into(),
            kind: text("kind")?.into(),
        },
        object: ObjectKey {
            namespace: namespace.cloned(),
            name: text("name")?.into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(spec: &str, status: &str) -> Scaler {
        let text = format!(
            r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"7"}},"spec":{spec},"status":{status}}}"#
        );
        Scaler::read(&serde_json::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn the_target_is_a_workload_of_its_own_namespace() {
        let web = ChildKey {
            kind: GroupKind::parse("Deployment.apps"),
            object: ObjectKey {
                namespace: Some("shop".into()),
                name: "web".into(),
            },
        };
        let of = |target: &str| scaler(&format!(r#"{{"scaleTargetRef":{target}}}"#), "{}").target;
        let deployment = r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}"#;
        assert_eq!(of(deployment), Some(Scaler::of_target(&web)));
        for other in [
            r#"{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web"}"#,
            r#"{"apiVersion":"other/v1","kind":"Deployment","name":"web"}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"db"}"#,
        ] {
            assert_ne!(of(other), Some(Scaler::of_target(&web)), "{other}");
        }
        for none in ["{}", "7", r#"{"kind":7,"name":"web"}"#] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn only_another_target_is_a_difference() {
        let (web, db) = (
            r#"{"scaleTargetRef":{"kind":"Deployment","name":"web"}}"#,
            r#"{"scaleTargetRef":{"kind":"Deployment","name":"db"}}"#,
        );
        let before = scaler(web, r#"{"currentReplicas":1}"#);
        assert!(!scaler(web, r#"{"currentReplicas":2}"#).differs(&before));
        assert!(scaler(db, "{}").differs(&before));
    }
}
