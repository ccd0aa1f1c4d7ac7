//! The shape of a document, read from the API types' schemas.
//!
//! JSON Schema can express the same constraint in many ways; [`Shape`] has one way for each. The check of documents, the custom
//! resource definitions and the reference documents are therefore short walks over it.

mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;

/// Fields whose maps earlier documents write as lists of `{key, value}`.
pub(crate) const PAIRS: [&str; 2] = ["labels", "annotations"];

/// Blocks of rules that earlier documents write as the list alone.
pub(crate) const RULES: [&str; 2] = ["validation", "mutation"];

/// What a value may look like.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Anything.
    #[default]
    Free,
    /// Text, a number or a boolean; templates are text.
    Scalar,
    /// Text without templates.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer within bounds, both included.
    Int {
        /// The least.
        min: Option<i64>,
        /// The greatest.
        max: Option<i64>,
    },
    /// A duration, as text.
    Duration,
    /// One of some words.
    Enum {
        /// The words.
        values: Vec<String>,
        /// Words of the language that are not built yet.
        later: Vec<String>,
    },
    /// Values in order.
    List(Box<Shape>),
    /// Values by key.
    Object(Arc<ObjectShape>),
    /// One of some shapes, distinguished by being a map, a list or neither.
    OneOf(Vec<Shape>),
    /// A value with parts, or one template that returns it.
    OrTemplate(Box<Shape>),
}

/// What a map may hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectShape {
    /// The type's name; empty for maps of the user's own keys.
    pub name: String,
    /// The type's doc comment.
    pub description: String,
    /// Fields by name.
    pub fields: BTreeMap<String, Field>,
    /// The values of other keys; none when there may be none.
    pub rest: Option<Box<Shape>>,
}

/// A field of a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Field {
    /// What the value may look like.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// The doc comment.
    pub description: String,
    /// What counts when the field is left out, as the doc comment says it: Markdown.
    pub default: Option<String>,
    /// How far it is supported.
    pub support: Support,
}

impl Field {
    /// Whether it does something.
    pub fn works(&self) -> bool {
        self.support == Support::Works
    }
}

/// How far a field is supported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Support {
    /// It works.
    #[default]
    Works,
    /// The language has it, and it is not built yet.
    Later,
    /// It is accepted and has no effect here, for this reason; empty says nothing more.
    Ignored(String),
    /// It is not accepted, for this reason.
    Refused(String),
}

impl Shape {
    /// The shape of a type.
    pub fn of<T: JsonSchema>() -> Self {
        read::shape_of::<T>()
    }

    /// The shape of the value when it is written out, not returned by one template.
    pub fn written(&self) -> &Shape {
        match self {
            Shape::OrTemplate(written) => written,
            other => other,
        }
    }

    /// A map that has one field, which must be there.
    pub(crate) fn map_of_one(name: &str, shape: Shape) -> Self {
        let field = Field {
            shape,
            required: true,
            description: String::new(),
            default: None,
            support: Support::Works,
        };
        Shape::Object(Arc::new(ObjectShape {
            fields: BTreeMap::from([(name.to_owned(), field)]),
            ..ObjectShape::default()
        }))
    }

    /// What is expected, for messages: `a list`.
    pub fn describe(&self) -> String {
        match self {
            Shape::Free => "anything".to_owned(),
            Shape::Scalar => "a single value".to_owned(),
            Shape::Text => "text".to_owned(),
            Shape::Bool => "`true` or `false`".to_owned(),
            Shape::Int { .. } => "an integer".to_owned(),
            Shape::Duration => "a duration such as `30s`".to_owned(),
            Shape::Enum { values, .. } => one_of(values.iter().map(|value| format!("`{value}`"))),
            Shape::List(_) => "a list".to_owned(),
            Shape::Object(_) => "a map".to_owned(),
            Shape::OneOf(shapes) => one_of(shapes.iter().map(Shape::describe)),
            Shape::OrTemplate(written) => written.describe(),
        }
    }
}

fn one_of(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::KatalogSpec;

    fn object(shape: &Shape) -> &ObjectShape {
        match shape {
            Shape::Object(object) => object,
            other => panic!("{other:?} is not a map"),
        }
    }

    fn field<'a>(shape: &'a Shape, name: &str) -> &'a Shape {
        &object(shape).fields[name].shape
    }

    #[test]
    fn shapes_follow_from_the_types() {
        let spec = Shape::of::<KatalogSpec>();
        let entry = object(field(&spec, "crds")).rest.as_deref().unwrap();
        assert_eq!(
            *field(entry, "workers"),
            Shape::Int {
                min: Some(1),
                max: Some(1000)
            }
        );
        assert_eq!(*field(entry, "enabled"), Shape::Bool);
        assert_eq!(object(entry).fields["serve"].support, Support::Later);
        assert_eq!(
            object(entry).fields["mode"].support,
            Support::Ignored(String::new())
        );
        assert!(matches!(field(entry, "setup"), Shape::OneOf(shapes) if shapes.len() == 2));
        let lifecycle = field(field(entry, "operatorBox"), "onCreate");
        let declared = object(field(entry, "operatorBox"));
        assert_eq!(declared.fields["providers"].support, Support::Later);
        assert!(
            matches!(field(lifecycle, "jobs"), Shape::List(job) if object(job).fields["image"].required)
        );
        let refused = &object(lifecycle).fields["serviceMonitors"].support;
        assert!(matches!(refused, Support::Refused(why) if why.contains("custom")));
        let Shape::List(deployment) = field(lifecycle, "deployments") else {
            panic!()
        };
        the_fields_of_a_deployment_have_their_shapes(deployment);
        let Shape::List(custom) = field(lifecycle, "custom") else {
            panic!()
        };
        assert_eq!(object(custom).rest.as_deref(), Some(&Shape::Free));
    }

    /// Checks shapes, defaults and descriptions of fields of an entry of `deployments`.
    fn the_fields_of_a_deployment_have_their_shapes(deployment: &Shape) {
        assert!(object(deployment).fields["image"].required);
        assert!(!object(deployment).fields["port"].required);
        assert_eq!(*field(deployment, "port"), Shape::Scalar);
        assert_eq!(object(deployment).fields["forEach"].support, Support::Works);
        assert_eq!(object(field(deployment, "forEach")).name, "ForEach");
        assert_eq!(
            object(deployment).fields["replicas"].default.as_deref(),
            Some("`1`")
        );
        assert_eq!(
            object(deployment).fields["name"]
                .description
                .lines()
                .count(),
            1
        );
        assert_eq!(
            *field(deployment, "onFalse"),
            Shape::Enum {
                values: vec!["delete".into(), "keep".into()],
                later: vec![]
            }
        );
        assert!(
            matches!(field(deployment, "env").written(), Shape::OneOf(shapes) if shapes.len() == 2)
        );
        assert_eq!(
            *field(deployment, "volumes"),
            Shape::OrTemplate(Box::new(Shape::List(Box::new(Shape::Free))))
        );
    }
}
