//! Types of values.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_object::value::Node;

/// A note that tests one value.
const ASKS: BuiltInNote = BuiltInNote {
    result: NoteType::Bool,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "typeOf",
        doc: "The type of the value: `string`, `number`, `bool`, `map`, `slice` or `null`.",
        example: ("{{ typeOf .spec }} {{ typeOf .spec.domains }}", "map slice"),
        result: NoteType::Text,
        run: NoteBody::Eager(type_of),
        ..PLAIN
    },
    BuiltInNote {
        name: "typeMap",
        doc: "True if the value is a map.",
        example: ("{{ typeMap .spec }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["map"])),
        ..ASKS
    },
    BuiltInNote {
        name: "typeList",
        doc: "True if the value is a list.",
        example: (r#"{{ typeList "a" }}"#, "false"),
        run: NoteBody::Eager(|call| is(call, &["slice"])),
        ..ASKS
    },
    BuiltInNote {
        name: "typeString",
        doc: "True if the value is text.",
        example: ("{{ typeString .spec.region }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["string"])),
        ..ASKS
    },
    BuiltInNote {
        name: "typeNumber",
        doc: "True if the value is a number.",
        example: (r#"{{ typeNumber 3 }} {{ typeNumber "3" }}"#, "true false"),
        run: NoteBody::Eager(|call| is(call, &["number"])),
        ..ASKS
    },
    BuiltInNote {
        name: "typeBool",
        doc: "True if the value is a boolean.",
        example: ("{{ typeBool false }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["bool"])),
        ..ASKS
    },
    BuiltInNote {
        name: "typeNull",
        doc: "True if the value is null or missing.",
        example: ("{{ typeNull .spec.missing }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["null"])),
        ..ASKS
    },
    BuiltInNote {
        name: "isScalar",
        doc: "True if the value is text, a number or a boolean.",
        example: ("{{ isScalar 3 }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["string", "number", "bool"])),
        ..ASKS
    },
    BuiltInNote {
        name: "isComposite",
        doc: "True if the value is a map or a list.",
        example: ("{{ isComposite .spec.tiers }}", "true"),
        run: NoteBody::Eager(|call| is(call, &["map", "slice"])),
        ..ASKS
    },
    BuiltInNote {
        name: "isEmpty",
        aliases: &["Empty"],
        doc: "True if the value is null or an empty text, list or map; 0 and false are not empty here.",
        example: (r#"{{ isEmpty "" }} {{ isEmpty 0 }}"#, "true false"),
        run: NoteBody::Eager(is_empty),
        ..ASKS
    },
];

/// Returns the type in the words that templates compare with.
fn word(node: &Node) -> &'static str {
    match node {
        Node::Null => "null",
        Node::Bool(_) => "bool",
        Node::Int(_) | Node::UInt(_) | Node::Float(_) => "number",
        Node::Str(_) => "string",
        Node::List(_) => "slice",
        Node::Map(_) => "map",
    }
}

fn type_of<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(Node::from(word(call.node(0))).into())
}

fn is<'d>(call: &NoteCall<'_, 'd>, words: &[&str]) -> Result<Value<'d>, EvalFailure> {
    Ok(words.contains(&word(call.node(0))).into())
}

fn is_empty<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let empty = match call.node(0) {
        Node::Bool(_) | Node::Int(_) | Node::UInt(_) | Node::Float(_) => false,
        node => node.is_empty_value(),
    };
    Ok(empty.into())
}
