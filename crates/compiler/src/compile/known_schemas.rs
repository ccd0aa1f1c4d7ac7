//! The schemas that are available while a Katalog is compiled.

use orkestra_language::schema::{BuiltIn, NestedSchema, Schema, Type};
use orkestra_object::value::Node;
use orkestra_plan::{ResourceType, definitions::Schemas};

/// The known schemas.
#[derive(Clone, Copy)]
pub(crate) struct KnownSchemas<'s> {
    /// Custom resource definitions.
    pub(crate) schemas: &'s Schemas,
    /// Built-in kinds.
    pub(crate) built_in: &'s BuiltIn,
}

impl<'s> KnownSchemas<'s> {
    /// Returns the schema of whole objects of a kind.
    pub(crate) fn kind(&self, kind: &ResourceType) -> Option<Schema<'s>> {
        match self.schemas.kind(&kind.group_kind()) {
            Some(shape) => {
                let schema = &shape.version(&kind.version)?.schema;
                (**schema != Node::Null).then(|| Schema::of_objects(schema, Some(self.built_in)))
            }
            None => self.built_in.kind(&kind.group, &kind.version, &kind.kind),
        }
    }

    /// Returns the type of whole objects of a kind.
    pub(crate) fn objects(&self, kind: &ResourceType) -> Type<'s> {
        self.kind(kind).map_or_else(Type::any, Type::of_schema)
    }

    /// Returns the type of a root of a custom resource with this schema.
    pub(crate) fn root(&self, schema: Option<Schema<'s>>, root: &str) -> Type<'s> {
        let below = match schema {
            Some(schema) => schema.field(root),
            None => match root {
                "metadata" => (self.built_in.object_meta())
                    .map_or(NestedSchema::Anything, NestedSchema::Schema),
                _ => NestedSchema::Anything,
            },
        };
        match below {
            NestedSchema::Nowhere => Type::of_schema(Schema::empty()),
            below => Type::of_below(below),
        }
    }
}
