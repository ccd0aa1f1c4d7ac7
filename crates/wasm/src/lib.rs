//! WebAssembly modules as pure functions from a text to a text: a command of WASI preview 1 that reads its request from standard
//! input and writes its answer to standard output. Nothing else reaches it.
//!
//! ```text
//!  bytes, plain or gzip ── Module::load ──► Module ── start(request) ──► Run ── step(fuel) ──► More(Run) … Ended: answer or error
//!                            checked, shared by digest                     its own memory, dropped at the end
//! ```
//!
//! A module sees no files, no network, no environment and no arguments. Its clock starts at the same moment in each run and advances
//! with each reading, and its random numbers are the same in each run: the same request has the same answer. Functions of
//! `wasi_snapshot_preview1` beyond these answer `ENOSYS`, and a module that imports anything else is refused.
//!
//! Instructions, memory, output and the depth of the stack are limited. A run executes on the thread of its caller, for as much fuel as
//! a step is given, so the caller decides on the time and can drop a run between two steps.
//!
//! ```
//! use orkestra_wasm::{Limits, Module};
//!
//! let error = Module::load(b"no module".as_slice().into()).unwrap_err();
//! assert_eq!(error.to_string(), "it is not a WebAssembly module");
//! # let _ = Limits::default();
//! ```
//!
//! Source: WebAssembly System Interface, `snapshot_preview1`; <https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md>.

mod error;
mod module;
mod run;
#[cfg(test)]
mod tests;
mod wasi;

pub use error::{ModuleError, RunError};
pub use module::{MOST_UNPACKED, Module};
pub use run::{Limits, Run, RunStep};
