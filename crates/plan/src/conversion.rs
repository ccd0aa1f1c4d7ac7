//! Conversions between the versions of a kind.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{GroupKind, ObjectTree};
use orkestra_language::api::Conversion;
use orkestra_object::value::{Key, Node, Path};

/// The conversions between the versions of one kind.
#[derive(Debug)]
pub struct ConversionPlan {
    /// The kind.
    pub kind: GroupKind,
    /// Its plural, for the name of the definition: `<plural>.<group>`.
    pub plural: Key,
    /// The version that is stored.
    pub storage: Box<str>,
    /// True if the gateway writes the webhook into the definition.
    pub update_crd: bool,
    /// True if fields that a version does not have are kept in an annotation.
    pub preserve: bool,
    /// The declared paths, sorted by source and result.
    pub steps: Box<[ConversionStep]>,
    /// The schemas of the versions, as far as they are known.
    pub schemas: BTreeMap<Box<str>, Arc<Node>>,
    /// The declaration, from which the plan can be compiled again without its Katalog.
    pub declared: DeclaredConversion,
}

/// The path from one version to another.
#[derive(Debug)]
pub struct ConversionStep {
    /// The version of the source.
    pub from: Box<str>,
    /// The version of the result.
    pub to: Box<str>,
    /// The fields that differ: the path from the root of the result, and the value over the source.
    pub fields: Box<[(Path, ObjectTree)]>,
}

impl ConversionPlan {
    /// Returns the declared path between two versions.
    pub fn step(&self, from: &str, to: &str) -> Option<&ConversionStep> {
        let key = |step: &ConversionStep| (step.from.clone(), step.to.clone());
        let found = self
            .steps
            .binary_search_by_key(&(from.into(), to.into()), key);
        found.ok().map(|at| &self.steps[at])
    }

    /// Returns the steps between two versions: the declared path, else that through the storage version.
    pub fn route(&self, from: &str, to: &str) -> Option<Vec<&ConversionStep>> {
        if from == to {
            return Some(Vec::new());
        }
        if let Some(step) = self.step(from, to) {
            return Some(vec![step]);
        }
        let (first, second) = (self.step(from, &self.storage), self.step(&self.storage, to));
        Some(vec![first?, second?])
    }

    /// Returns the name of the definition.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.kind.group)
    }
}

/// A conversion as an entry declares it, with the notes that its templates may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredConversion {
    /// The declaration.
    pub conversion: Conversion,
    /// Expressions by the name of the note; none if no template calls one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}
