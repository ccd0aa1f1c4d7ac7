//! The pure half of Orkestra: the Katalog language, its compilation to plans, and the reconcile pass.

pub mod api;
pub mod plan;
pub mod reconcile;
