//! What a transfer does: a bar on a terminal, a line a step elsewhere.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::output;

/// Shows the steps of a transfer on standard error.
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
}

impl Steps {
    /// A transfer of so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg:24!} [{bar:30}] {bytes}/{total_bytes}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(bytes).with_style(style.progress_chars("=> "))
        });
        Self { bar }
    }

    /// Begins with one part.
    pub(crate) fn begin(&self, name: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(name.to_owned());
        }
    }

    /// So many bytes more are done.
    pub(crate) fn advance(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// A part is done.
    pub(crate) fn done(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(line)),
            None => output::note(line),
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
