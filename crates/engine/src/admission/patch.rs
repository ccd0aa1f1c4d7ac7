//! JSON patches.

use serde::Serialize;

use orkestra_object::value::{Map, Node, pointer_token};

/// One operation of a JSON patch.
///
/// Source: RFC 6902.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchOp {
    /// The operation.
    pub op: PatchKind,
    /// The JSON pointer of the field.
    pub path: String,
    /// The value; none if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Node>,
}

/// The operation of a [`PatchOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchKind {
    /// Adds a field.
    Add,
    /// Replaces a field.
    Replace,
    /// Removes a field.
    Remove,
}

/// Returns the patch from `before` to `after`: empty if they are equal. Lists of equal length are compared by item, others
/// replaced.
pub(crate) fn difference(before: &Node, after: &Node) -> Vec<PatchOp> {
    let mut ops = Vec::new();
    differ(before, after, &mut String::new(), &mut ops);
    ops
}

fn differ(before: &Node, after: &Node, at: &mut String, ops: &mut Vec<PatchOp>) {
    match (before, after) {
        _ if before == after => {}
        (Node::Map(old), Node::Map(new)) => maps(old, new, at, ops),
        (Node::List(old), Node::List(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                below(at, &index.to_string(), |at| differ(old, new, at, ops));
            }
        }
        _ => ops.push(PatchOp {
            op: PatchKind::Replace,
            path: at.clone(),
            value: Some(after.clone()),
        }),
    }
}

fn maps(old: &Map, new: &Map, at: &mut String, ops: &mut Vec<PatchOp>) {
    for (key, _) in old.iter().filter(|(key, _)| new.get(key).is_none()) {
        below(at, key, |at| {
            ops.push(PatchOp {
                op: PatchKind::Remove,
                path: at.clone(),
                value: None,
            });
        });
    }
    for (key, value) in new.iter() {
        below(at, key, |at| match old.get(key) {
            Some(old) => differ(old, value, at, ops),
            None => ops.push(PatchOp {
                op: PatchKind::Add,
                path: at.clone(),
                value: Some(value.clone()),
            }),
        });
    }
}

/// Calls `work` with the pointer to a key.
fn below(at: &mut String, key: &str, work: impl FnOnce(&mut String)) {
    let length = at.len();
    at.push('/');
    at.push_str(&pointer_token(key));
    work(at);
    at.truncate(length);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_adds_parents_whole_and_escapes_keys() {
        let before = json!({ "spec": { "a": 1, "gone": true, "list": [1, { "b": 2 }] }, "metadata": { "labels": { "x/y": "1" } } });
        let after = json!({ "spec": { "a": "1", "list": [1, { "b": 3 }], "more": { "depth": 2.5 } }, "metadata": { "labels": { "x/y": "2" } } });
        let ops = difference(&Node::from(&before), &Node::from(&after));
        let expected = json!([
            { "op": "replace", "path": "/metadata/labels/x~1y", "value": "2" },
            { "op": "remove", "path": "/spec/gone" },
            { "op": "replace", "path": "/spec/a", "value": "1" },
            { "op": "replace", "path": "/spec/list/1/b", "value": 3 },
            { "op": "add", "path": "/spec/more", "value": { "depth": 2.5 } },
        ]);
        assert_eq!(serde_json::to_value(&ops).unwrap(), expected);
        assert!(difference(&Node::from(&after), &Node::from(&after)).is_empty());
    }
}
