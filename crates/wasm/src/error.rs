//! Errors of modules and of their runs.

use super::MOST_UNPACKED;

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// It is compressed, and cannot be decompressed.
    #[error("it is not a valid gzip file")]
    Compressed,
    /// It is too large.
    #[error("it has more than {} MiB when decompressed: build it without debug information", MOST_UNPACKED >> 20)]
    TooLarge,
    /// It is not WebAssembly.
    #[error("it is not a WebAssembly module")]
    NotWasm,
    /// It is a component.
    #[error(
        "it is a component, as of WASI preview 2: build a module for WASI preview 1, such as with `GOOS=wasip1 GOARCH=wasm` or \
         `--target wasm32-wasip1`"
    )]
    Component,
    /// It is not valid, or uses an unsupported feature.
    #[error("it is not a valid module: {0}")]
    Invalid(String),
    /// It imports what no hook gets.
    #[error(
        "it imports `{module}.{name}`: only functions of `wasi_snapshot_preview1` are available; build it for WASI preview 1, such as \
         with `GOOS=wasip1 GOARCH=wasm` or `--target wasm32-wasip1`"
    )]
    Import {
        /// The module that it is imported from.
        module: String,
        /// The imported item.
        name: String,
    },
    /// It is not a command.
    #[error(
        "it exports no function `_start`: build a command (a program with `main`), not a library"
    )]
    NoStart,
    /// It has no memory that functions of WASI can use.
    #[error("it exports no memory `memory`")]
    NoMemory,
}

/// Why a run has no answer. The same request fails in the same way again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It ended with another status than 0.
    #[error("it exited with status {status}{}", said(stderr))]
    Exit {
        /// The status.
        status: i32,
        /// What it wrote to standard error, cut.
        stderr: String,
    },
    /// It did what is not permitted, such as an access outside of its memory.
    #[error("it was stopped: {what}{}", said(stderr))]
    Trap {
        /// The problem.
        what: String,
        /// What it wrote to standard error, cut.
        stderr: String,
    },
    /// It executed too many instructions.
    #[error("it did not end within {} million instructions{}", fuel / 1_000_000, said(stderr))]
    OutOfFuel {
        /// The limit.
        fuel: u64,
        /// What it wrote to standard error, cut.
        stderr: String,
    },
    /// It needs more memory at its start than permitted.
    #[error("it needs more than {} MiB of memory", most >> 20)]
    Memory {
        /// The limit, in bytes.
        most: usize,
    },
    /// It wrote too much.
    #[error("it answered with more than {} KiB", most >> 10)]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// Its answer is not UTF-8.
    #[error("its answer is not valid UTF-8")]
    NotText,
}

/// Returns what a module wrote to standard error, as the end of a message.
fn said(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!(": {stderr}")
    }
}
