//! Custom resource definitions: scope, versions, schemas and defaults.

mod check;
mod defaults;
mod generated;
mod object;
mod upgrade;

use std::{collections::BTreeMap, sync::Arc};

use crate::{Coerce, GroupKind, ResourceType, kinds};
use orkestra_language::{
    api::{ApiTypes, KatalogSpec},
    diagnostics::nearest,
    schema::{NestedSchema, Schema},
};
use orkestra_object::value::{Key, Node, Path, PathStep};

pub use self::generated::{
    CrdNames, SchemaProblem, add_status, crd_document, object_schema, root_of, schema_problems,
    version_document,
};
pub use self::{
    check::check_crd,
    generated::{GeneratedCrd, generated_crds},
    upgrade::{DefinitionChange, compare, harm},
};

/// The reason why a manifest is not a usable definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotACrd {
    /// Another kind.
    #[error("the manifest is not a CustomResourceDefinition of apiextensions.k8s.io/v1")]
    Kind,
    /// A field is missing or malformed.
    #[error("the CustomResourceDefinition has no {0}")]
    Field(&'static str),
}

/// The relevant parts of a custom resource definition.
#[derive(Debug, Clone, PartialEq)]
pub struct CrdShape {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// REST plural.
    pub plural: String,
    /// True if the kind is namespaced.
    pub namespaced: bool,
    /// Its versions, in the definition's order.
    pub versions: Vec<CrdVersion>,
}

/// One version of a custom resource definition.
#[derive(Debug, Clone, PartialEq)]
pub struct CrdVersion {
    /// Its name, such as `v1alpha1`.
    pub name: String,
    /// True if the API server serves it.
    pub served: bool,
    /// True if it is the storage version.
    pub storage: bool,
    /// True if it has the status subresource.
    pub status: bool,
    /// The path that the scale subresource writes, such as `.spec.replicas`; none without that subresource.
    pub scale: Option<Key>,
    /// `openAPIV3Schema`, null if missing.
    pub schema: Arc<Node>,
}

impl CrdShape {
    /// Reads a definition.
    ///
    /// # Errors
    /// [`NotACrd`] if the manifest is something else, or lacks a field that the API server requires.
    ///
    /// Source: Kubernetes API reference, `CustomResourceDefinition v1 apiextensions`.
    pub fn from_crd(crd: &Node) -> Result<Self, NotACrd> {
        let is = |field, wanted| crd.get(field).and_then(Node::as_str) == Some(wanted);
        if !is("kind", "CustomResourceDefinition") || !is("apiVersion", "apiextensions.k8s.io/v1") {
            return Err(NotACrd::Kind);
        }
        let spec = crd.get("spec").ok_or(NotACrd::Field("spec"))?;
        let names = spec.get("names").ok_or(NotACrd::Field("spec.names"))?;
        let text = |node: &Node, key, field| {
            node.get(key)
                .and_then(Node::as_str)
                .map(str::to_owned)
                .ok_or(NotACrd::Field(field))
        };
        let versions = spec
            .get("versions")
            .and_then(Node::as_list)
            .ok_or(NotACrd::Field("spec.versions"))?;
        Ok(Self {
            group: text(spec, "group", "spec.group")?,
            kind: text(names, "kind", "spec.names.kind")?,
            plural: text(names, "plural", "spec.names.plural")?,
            namespaced: text(spec, "scope", "spec.scope")? == "Namespaced",
            versions: versions
                .iter()
                .map(CrdVersion::read)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the kind without a version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: Key::from(&*self.group),
            kind: Key::from(&*self.kind),
        }
    }

    /// True if `version` is served.
    pub fn serves(&self, version: &str) -> bool {
        self.versions
            .iter()
            .any(|known| known.served && known.name == version)
    }

    /// Returns the served versions, each in quotes for a message.
    pub fn served(&self) -> Vec<String> {
        self.versions
            .iter()
            .filter(|version| version.served)
            .map(|version| format!("`{}`", version.name))
            .collect()
    }

    /// Returns the default version: the stored one if it is served, else the first served one.
    pub fn preferred(&self) -> Option<&CrdVersion> {
        let mut served = self.versions.iter().filter(|version| version.served);
        served
            .clone()
            .find(|version| version.storage)
            .or_else(|| served.next())
    }

    /// Returns the version with that name.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.name == name)
    }
}

/// The type of a field of custom resources in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A value of this type.
    Takes(Coerce),
    /// Any value, or unknown to the schema.
    Open,
    /// An unknown field: the API server drops it.
    Absent,
}

impl CrdVersion {
    fn read(node: &Node) -> Result<Self, NotACrd> {
        let flag = |key| node.get(key).and_then(Node::as_bool);
        let name = node
            .get("name")
            .and_then(Node::as_str)
            .ok_or(NotACrd::Field("spec.versions[].name"))?;
        Ok(Self {
            name: name.to_owned(),
            served: flag("served").unwrap_or(false),
            storage: flag("storage").unwrap_or(false),
            status: node
                .get("subresources")
                .is_some_and(|subresources| subresources.get("status").is_some()),
            scale: scale_path(node),
            schema: node
                .get("schema")
                .and_then(|schema| schema.get("openAPIV3Schema"))
                .cloned()
                .map(Arc::new)
                .unwrap_or_default(),
        })
    }

    /// Returns the type in the schema of a path below `root`: `spec` or `status`.
    pub fn field_type(&self, root: &str, path: &Path) -> FieldType {
        if *self.schema == Node::Null {
            return FieldType::Open;
        }
        let below = match Schema::of_objects(&self.schema, None).field(root) {
            NestedSchema::Schema(root) => root.at_path(path),
            other => other,
        };
        let schema = match below {
            NestedSchema::Schema(schema) => schema,
            NestedSchema::Anything => return FieldType::Open,
            NestedSchema::Nowhere => return FieldType::Absent,
        };
        match schema.type_word() {
            Some("int-or-string") => FieldType::Takes(Coerce::IntOrText),
            Some("integer") => FieldType::Takes(Coerce::Int),
            Some("number") => FieldType::Takes(Coerce::Float),
            Some("boolean") => FieldType::Takes(Coerce::Bool),
            Some("string") => FieldType::Takes(Coerce::Text),
            _ => FieldType::Open,
        }
    }
}

/// Returns the path that the scale subresource of a version writes.
pub fn scale_path(version: &Node) -> Option<Key> {
    let scale = version.get("subresources")?.get("scale")?;
    scale
        .get("specReplicasPath")
        .and_then(Node::as_str)
        .map(Key::from)
}

impl CrdVersion {
    /// Suggests a path below `root` for one that the schema does not have.
    pub fn near(&self, root: &str, path: &Path) -> Option<Path> {
        let mut near = Path::root();
        let NestedSchema::Schema(mut at) = Schema::of_objects(&self.schema, None).field(root)
        else {
            return None;
        };
        for step in path.steps() {
            let step = match (at.at(std::slice::from_ref(step)), step) {
                (NestedSchema::Nowhere, PathStep::Field(key)) => {
                    PathStep::Field(Key::from(nearest(key, at.fields())?))
                }
                _ => step.clone(),
            };
            match at.at(std::slice::from_ref(&step)) {
                NestedSchema::Schema(below) => at = below,
                NestedSchema::Anything | NestedSchema::Nowhere => return None,
            }
            near = near.steps().iter().cloned().chain([step]).collect();
        }
        Some(near)
    }
}

/// Known custom resource definitions, read from files or found in the cluster.
#[derive(Debug, Clone, Default)]
pub struct Schemas {
    kinds: BTreeMap<GroupKind, CrdShape>,
    files: BTreeMap<String, GroupKind>,
    /// Plurals that the Katalog itself declares.
    plurals: BTreeMap<GroupKind, Key>,
    is_trusting: bool,
}

impl Schemas {
    /// Returns the same for a Katalog that was accepted before: schema errors are then warnings, since newer checks, or a
    /// changed definition, must not stop a running operator.
    #[must_use]
    pub fn trusting(mut self) -> Self {
        self.is_trusting = true;
        self
    }

    /// True if schema errors are warnings.
    pub fn is_trusting(&self) -> bool {
        self.is_trusting
    }

    /// Creates the schemas of one definition.
    ///
    /// # Errors
    /// As [`CrdShape::from_crd`].
    pub fn from_crd(crd: &Node) -> Result<Self, NotACrd> {
        let mut schemas = Self::default();
        schemas.insert(CrdShape::from_crd(crd)?);
        Ok(schemas)
    }

    /// Adds a definition; a later one for the same kind replaces the earlier.
    pub fn insert(&mut self, shape: CrdShape) {
        self.kinds.insert(shape.group_kind(), shape);
    }

    /// Adds the definition in the `crdFile` of the entry `name` of `spec.crds`.
    pub fn insert_file(&mut self, name: &str, shape: CrdShape) {
        self.files.insert(name.to_owned(), shape.group_kind());
        self.insert(shape);
    }

    /// Returns the same with the plurals of the kinds that `spec` declares: its operators may create each other's
    /// resources.
    #[must_use]
    pub fn with_plurals_of(&self, spec: &KatalogSpec) -> Self {
        let types = spec
            .crds
            .values()
            .filter_map(|entry| entry.api_types.as_ref());
        let plurals = types.filter_map(|types| {
            let plural = types.plural.as_deref()?;
            Some((kind_named(types)?, Key::from(plural)))
        });
        Self {
            plurals: plurals.collect(),
            ..self.clone()
        }
    }

    /// Returns the plural of a kind that the Katalog itself declares.
    pub fn declared_plural(&self, kind: &GroupKind) -> Option<&Key> {
        self.plurals.get(kind)
    }

    /// Returns the definition of a kind.
    pub fn kind(&self, kind: &GroupKind) -> Option<&CrdShape> {
        self.kinds.get(kind)
    }

    /// Returns the definition in the `crdFile` of the entry `name`, if it was read.
    pub fn crd_file(&self, name: &str) -> Option<&CrdShape> {
        self.kinds.get(self.files.get(name)?)
    }
}

/// Returns the kind that `apiTypes` names, as far as it is known without definitions.
pub fn kind_named(types: &ApiTypes) -> Option<GroupKind> {
    if let Some(built_in) = built_in(types) {
        return Some(built_in.group_kind());
    }
    Some(GroupKind {
        group: Key::from(types.group.as_deref()?),
        kind: Key::from(types.kind.as_deref()?),
    })
}

/// Returns the built-in kind that `apiTypes` names, by its kind alone or with its group.
pub fn built_in(types: &ApiTypes) -> Option<ResourceType> {
    let found = kinds::named(types.kind.as_deref()?)?;
    let group = types.group.as_deref().map(str::trim);
    group
        .is_none_or(|group| *group == *found.group)
        .then_some(found)
}
