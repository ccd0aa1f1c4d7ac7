//! Kubernetes objects, without a client and without the language of Orkestra.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`value`] | the compact tree of an object, paths, projections, quantities, networks |
//! | [`decode`] | lists and watches, decoded from bytes as they arrive |
//! | [`keys`] | what identifies a kind and an object |
//! | [`identity`] | the identity and version of one object |
//! | [`message`] | the length of messages |
//! | [`record`] | what is kept of an object instead of the object |

pub mod decode;
pub mod identity;
pub mod keys;
pub mod message;
pub mod record;
pub mod value;

pub use self::{
    identity::{Identity, Malformed, Uid},
    keys::{ChildKey, GroupKind, ObjectKey, ObjectNamespaces, ResourceType},
};
