//! Everything that needs more than one module, and all that needs a cluster: one binary, a module a behaviour.
//!
//! The control plane is genuine (`orkestra-testbed`); tests share one and keep apart by namespaces and identities of their own.

mod cli;
mod control_plane;
mod katalogs;
