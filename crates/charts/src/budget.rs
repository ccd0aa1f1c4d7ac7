//! What rendering one chart may cost.

/// What rendering a chart may cost, all of its templates together.
///
/// The default ends the worst chart within a few seconds and 256 MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps: one for each expression, statement and iteration, and for what functions go through.
    pub steps: u64,
    /// Bytes built, intermediate results and output alike.
    pub bytes: u64,
    /// Bytes of one text, so also of one rendered file.
    pub text_bytes: u64,
    /// Levels of nesting of statements, expressions and calls of templates, which bounds the stack.
    pub depth: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            steps: 20_000_000,
            bytes: 256 << 20,
            text_bytes: 8 << 20,
            depth: 300,
        }
    }
}
