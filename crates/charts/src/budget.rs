//! Limits on the cost of rendering a chart.

/// The limits for rendering a chart, shared by all of its templates.
///
/// The default ends the worst chart within a few seconds and 256 MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps: one per expression, statement and iteration, and one per element that a function processes.
    pub steps: u64,
    /// Bytes built, both intermediate results and output.
    pub bytes: u64,
    /// The maximum size of one text, and so of one rendered file, in bytes.
    pub text_bytes: u64,
    /// The nesting of statements, expressions and calls of templates, which limits the stack.
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
