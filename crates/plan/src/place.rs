//! The positions in documents at which the parts of a plan are declared.

use std::{fmt, ops::Deref};

/// The place of a part of a plan, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`; in a Motif,
/// after the name of its document: `motifs/cache.yaml: spec.resources.services[0]`.
///
/// Only the compiler makes one, and it keeps the position of each: so a problem that is found in a plan has its line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanPlace(Box<str>);

/// A place of a plan, or a field below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceRef<'a> {
    /// The place.
    pub place: &'a PlanPlace,
    /// The field; `None` is the place itself.
    pub field: Option<&'static str>,
}

impl PlanPlace {
    /// Creates a place from its text. For `At::kept` of the compiler, which keeps its position.
    pub fn new(text: Box<str>) -> Self {
        Self(text)
    }

    /// Returns the place itself.
    pub fn here(&self) -> PlaceRef<'_> {
        self.into()
    }

    /// Returns a field of the place.
    pub fn field(&self, name: &'static str) -> PlaceRef<'_> {
        PlaceRef {
            place: self,
            field: Some(name),
        }
    }
}

impl<'a> From<&'a PlanPlace> for PlaceRef<'a> {
    fn from(place: &'a PlanPlace) -> Self {
        Self { place, field: None }
    }
}

impl Deref for PlanPlace {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PlanPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<PlanPlace> for Box<str> {
    fn from(place: PlanPlace) -> Self {
        place.0
    }
}
