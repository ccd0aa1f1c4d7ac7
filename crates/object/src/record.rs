//! The records that are kept of objects instead of the objects.

use crate::{
    identity::{Identity, Malformed, Uid},
    keys::GroupKind,
    value::{Fault, Node, Path, Projection},
};

/// How much of objects is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Complete objects.
    Whole,
    /// Metadata only: the content of a Secret is not transferred.
    Metadata,
}

/// Why an object cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrecorded {
    /// It does not have the shape of an object.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A part of it is unreadable, and the record is useless without it.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Returns the object, if all of it is readable.
///
/// # Errors
/// Its first unreadable part.
pub fn fully_readable(object: &Node) -> Result<&Node, Unrecorded> {
    match Fault::all_of(object).into_iter().next() {
        Some(fault) => Err(fault.into()),
        None => Ok(object),
    }
}

/// The data that is kept of an object, instead of the object.
pub trait Record: Send + Sync + Sized + 'static {
    /// Records `object`, as far as `spec` requires.
    ///
    /// # Errors
    /// [`Unrecorded`]: the previous record of the object stays.
    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded>;

    /// The unreadable part that the record lacks.
    fn fault(&self) -> Option<&Fault> {
        None
    }

    /// The paths that [`Record::read`] uses: an object filtered by this projection gives the same record.
    fn projection(spec: &Spec) -> Projection;

    /// The identity of the object, and its resourceVersion.
    fn identity(&self) -> &Identity;

    /// Bytes on the heap, without data that records share.
    fn heap_bytes(&self) -> usize;

    /// True if subscribers have to be notified: for most records, if anything but the resourceVersion differs.
    fn differs(&self, before: &Self) -> bool;

    /// The form in which objects are requested from the API server.
    const FORM: Form = Form::Whole;

    /// The owner: the uid of an object, or for objects that belong to children, the identification of the child.
    fn owner(&self) -> Option<&Uid> {
        None
    }
}

/// How records are read: the union of what all readers of an informer need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The objects' kind.
    pub kind: GroupKind,
    /// Paths that are kept; none is below another.
    pub paths: Vec<Path>,
}

impl Spec {
    /// Keeps `paths` of objects of that kind.
    pub fn new(kind: GroupKind, paths: &[Path]) -> Self {
        let mut spec = Self {
            kind,
            paths: Vec::new(),
        };
        spec.widen(paths);
        spec
    }

    /// True if everything under `paths` is kept.
    pub fn covers(&self, paths: &[Path]) -> bool {
        paths.iter().all(|path| self.keeps(path))
    }

    /// Keeps `paths` too.
    pub fn widen(&mut self, paths: &[Path]) {
        for path in paths {
            if !self.keeps(path) {
                self.paths.retain(|kept| !kept.starts_with(path));
                self.paths.push(path.clone());
            }
        }
    }

    fn keeps(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept))
    }
}

/// The existence of an object, with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The identity of the object.
    pub id: Identity,
}

impl Record for Presence {
    const FORM: Form = Form::Metadata;

    fn read(object: &Node, _: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self {
            id: Identity::read(object)?,
        })
    }

    fn projection(_: &Spec) -> Projection {
        Identity::projection()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.id.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_covers_what_lies_below_its_paths() {
        let path = |text: &str| Path::parse(text).unwrap();
        let mut spec = Spec::new(
            GroupKind::parse("Website.shop.example"),
            &[path("spec.image"), path("spec.image.tag")],
        );
        assert_eq!(spec.paths, [path("spec.image")]);
        assert!(spec.covers(&[path("spec.image.tag")]) && !spec.covers(&[path("spec")]));
        spec.widen(&[path("spec"), path("status.phase")]);
        assert_eq!(spec.paths, [path("spec"), path("status.phase")]);
    }
}
