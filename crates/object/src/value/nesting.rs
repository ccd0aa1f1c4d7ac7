//! Values that are nested more deeply than the stack of a usual thread permits.
//!
//! The API server stores objects of up to 10,000 levels in fields that keep unknown content, and `serde_json` stops at 128. A
//! part that no reader asks for is skipped without recursion ([`Projection`](super::Projection)). Where a whole object has to be
//! carried over, as in a conversion, it is processed on a thread whose stack is large enough.

use std::{io, thread};

use serde::Deserialize as _;

use super::{Cause, Fault, Node, PathStep, scan};

/// The levels that every thread has room for; `serde_json` has the same limit.
pub const USUAL_LEVELS: usize = 128;

/// The most levels of an object: the limit of Go's `encoding/json`, with which the API server reads objects.
pub const MOST_LEVELS: usize = 10_000;

/// The stack for one level, in bytes: several times what parsing, copying, printing and dropping a [`Node`] take in a debug build.
const STACK_PER_LEVEL: usize = 8 << 10;

/// The stack for everything else, in bytes: that of a usual thread.
const STACK: usize = 2 << 20;

/// Returns how deeply a JSON text is nested: 0 for a scalar. It is iterative, and does not check the syntax.
pub fn levels(json: &str) -> usize {
    scan::levels(json.as_bytes())
}

/// Runs `work` on a thread with a stack of that many bytes; a panic of it is a value, as from [`std::thread::JoinHandle::join`].
///
/// # Errors
/// The thread cannot start: there is no memory for its stack.
pub fn on_stack<T: Send>(
    bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> io::Result<thread::Result<T>> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(bytes);
        Ok(builder.spawn_scoped(scope, work)?.join())
    })
}

/// Runs `work` with a stack that is large enough for recursion over a [`Node`] of that many levels: in place if every thread has
/// room for it.
///
/// # Errors
/// [`Cause::TooDeep`] if there are more than [`MOST_LEVELS`], or if there is no memory for the thread.
pub fn with_room<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Result<T, Cause> {
    if levels <= USUAL_LEVELS {
        return Ok(work());
    }
    if levels > MOST_LEVELS {
        return Err(Cause::TooDeep);
    }
    match on_stack(STACK + levels * STACK_PER_LEVEL, work) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => Err(Cause::TooDeep),
    }
}

/// Reads a JSON text of any depth: only within [`with_room`].
///
/// # Errors
/// Those of `serde_json`, but for the depth.
pub fn read(json: &str) -> serde_json::Result<Node> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    let node = Node::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(node)
}

/// Returns the value without the parts that are nested more than [`USUAL_LEVELS`] deep, and a fault for each of them; none if no
/// part is.
pub fn shallow(node: &Node) -> Option<(Node, Vec<Fault>)> {
    let mut faults = Vec::new();
    is_deeper(node, USUAL_LEVELS).then(|| (cut(node, &mut Vec::new(), &mut faults), faults))
}

/// True if the value has more than that many levels.
fn is_deeper(node: &Node, levels: usize) -> bool {
    let below = |node: &Node| is_deeper(node, levels.saturating_sub(1));
    match node {
        Node::Map(map) => levels == 0 || map.iter().any(|(_, value)| below(value)),
        Node::List(items) => levels == 0 || items.iter().any(below),
        _ => false,
    }
}

fn cut(node: &Node, at: &mut Vec<PathStep>, faults: &mut Vec<Fault>) -> Node {
    let is_scalar = !matches!(node, Node::Map(_) | Node::List(_));
    if !is_scalar && at.len() >= USUAL_LEVELS {
        faults.push(Fault {
            path: at.iter().cloned().collect(),
            cause: Cause::TooDeep,
        });
        return Node::Null;
    }
    let mut below = |step: PathStep, node: &Node| {
        at.push(step);
        let copy = cut(node, at, faults);
        at.pop();
        copy
    };
    match node {
        Node::Map(map) => {
            let fields = map
                .iter()
                .map(|(key, value)| (key.clone(), below(PathStep::Field(key.clone()), value)));
            Node::Map(fields.collect())
        }
        Node::List(items) => {
            let items = items.iter().enumerate();
            Node::List(
                items
                    .map(|(index, item)| below(PathStep::Index(index), item))
                    .collect(),
            )
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize, open: &str, close: &str) -> String {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    }

    #[test]
    fn levels_are_counted_outside_of_texts() {
        for (json, expected) in [
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{"b":1}],"c":[]}"#, 3),
            (r#"["[[[[","\\\"[{",{"{":1}]"#, 2),
            ("]]][", 1),
            ("\"[", 0),
        ] {
            assert_eq!(levels(json), expected, "{json}");
        }
        assert_eq!(levels(&nested(MOST_LEVELS, "[", "]")), MOST_LEVELS);
    }

    #[test]
    fn values_of_every_legal_depth_are_read_copied_and_printed() {
        for levels in [1, USUAL_LEVELS, USUAL_LEVELS + 1, MOST_LEVELS] {
            for text in [nested(levels, "[", "]"), nested(levels, r#"{"a":"#, "}")] {
                let printed = with_room(super::levels(&text), || {
                    let node = read(&text).unwrap();
                    let copy = node.clone();
                    assert!(copy == node);
                    copy.to_text().into_owned()
                });
                assert!(printed.unwrap() == text, "{levels}");
            }
        }
        assert_eq!(with_room(MOST_LEVELS + 1, || ()), Err(Cause::TooDeep));
    }

    #[test]
    fn what_is_too_deep_is_cut_off_with_its_path() {
        let text = format!(r#"{{"a":{},"b":[1]}}"#, nested(USUAL_LEVELS, "[", "]"));
        let node = with_room(levels(&text), || read(&text).unwrap()).unwrap();
        let (copy, faults) = shallow(&node).unwrap();
        assert_eq!(copy.get("b"), node.get("b"));
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].path.steps().len(), USUAL_LEVELS);
        assert_eq!(shallow(copy.get("b").unwrap()), None);
    }
}
