#![doc = "x"]

pub mod meta;
pub mod runtime;
