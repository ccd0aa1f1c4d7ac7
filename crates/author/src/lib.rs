//! The tools of authors: what a Katalog does, before it does it.
//!
//! ```text
//!  render    the objects of a pass, without a cluster
//!  simulate  passes over a world in memory, compared with expectations
//!  e2e       tests on a cluster, or on a control plane that it starts
//!  plan      what a Katalog would do to every custom resource; reads only
//!  why       why a field of a child is as it is; reads only
//!  diff      the changes that a Katalog would make in a cluster; reads only
//!  init      a first Katalog
//!  publish   folders to artifacts for registries
//! ```

pub mod diff;
pub mod e2e;
pub mod init;
mod junit;
mod live;
pub mod plan;
pub mod publish;
pub mod render;
pub mod simulate;
pub mod why;
