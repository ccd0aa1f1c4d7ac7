//! The pure half of Orkestra.

pub mod plan;
pub mod reconcile;
