//! What informers keep of each kind of object.

use orkestra_object::{
    Identity, Uid,
    record::{Record, Spec, Unrecorded, fully_readable},
};

use super::{
    crd::CrdRecord,
    observe::ObservedRecord,
    record::{ChildRecord, CrRecord},
    related::Related,
    scaler::Scaler,
};
use orkestra_object::value::{Fault, Node, Projection};

impl Record for CrRecord {
    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(object, &spec.paths)?)
    }

    fn fault(&self) -> Option<&Fault> {
        self.unread.as_deref()
    }

    fn projection(spec: &Spec) -> Projection {
        Self::projection(&spec.paths)
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }
}

impl Record for ChildRecord {
    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(&spec.kind, object, &spec.paths)?)
    }

    fn fault(&self) -> Option<&Fault> {
        self.unread()
    }

    fn projection(spec: &Spec) -> Projection {
        Self::projection(&spec.paths)
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }

    fn owner(&self) -> Option<&Uid> {
        self.owner()
    }
}

impl Record for Related {
    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(&spec.kind, fully_readable(object)?)?)
    }

    fn projection(_: &Spec) -> Projection {
        Self::projection()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }

    fn owner(&self) -> Option<&Uid> {
        self.of.as_ref()
    }
}

impl Record for ObservedRecord {
    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(fully_readable(object)?, &spec.paths)?)
    }

    fn projection(_: &Spec) -> Projection {
        Self::projection()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }
}

impl Record for Scaler {
    fn read(object: &Node, _: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(fully_readable(object)?)?)
    }

    fn projection(_: &Spec) -> Projection {
        Self::projection()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }

    fn owner(&self) -> Option<&Uid> {
        self.target.as_ref()
    }
}

impl Record for CrdRecord {
    fn read(object: &Node, _: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self::read(fully_readable(object)?)?)
    }

    fn projection(_: &Spec) -> Projection {
        Self::projection()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.differs(before)
    }
}
