//! What a Katalog takes from outside of itself.

/// Motifs and included files, already read.
#[derive(Debug, Clone, Default)]
pub struct Library {}
