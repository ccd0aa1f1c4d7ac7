//! Renders Helm charts without helm: input is a chart in memory and values, output the rendered documents.
//!
//! ```text
//!  files ──► Chart ─┐
//!  .tgz  ──► Chart ─┤  dependencies      templates          documents, hooks,
//!  values ──────────┼─ conditions, tags ─ one Engine ─────► CRDs, notes
//!  release ─────────┤  imports, globals   one Budget
//!  capabilities ────┘
//! ```
//!
//! The crate does not read a clock, a network or a disk: time and randomness are arguments. A chart is untrusted input: it
//! results in documents or in an [`Error`], within the [`Budget`] of steps, bytes and depth. The differences from helm are
//! listed in `docs/guides/charts.md`; tests compare everything else with helm's output.
//!
//! ```
//! use orkestra_charts::{Budget, Capabilities, Chart, Release, render};
//! use orkestra_object::value::Node;
//!
//! let chart = Chart::from_files([
//!     ("Chart.yaml", &b"apiVersion: v2\nname: pond\nversion: 1.0.0\n"[..]),
//!     ("values.yaml", b"depth: 2\n"),
//!     ("templates/config.yaml", b"kind: ConfigMap\ndata:\n  depth: {{ .Values.depth | quote }}\n"),
//! ])?;
//! let values = Node::object([("depth", Node::from(4_i64))]);
//! let rendered = render(&chart, &values, &Release::new("garden"), &Capabilities::default(), &Budget::default())?;
//! assert_eq!(rendered.documents[0].source, "pond/templates/config.yaml");
//! assert_eq!(rendered.documents[0].text, "kind: ConfigMap\ndata:\n  depth: \"4\"\n");
//! # Ok::<(), orkestra_charts::Error>(())
//! ```

#![allow(
    clippy::format_push_string,
    reason = "writing to a text cannot fail, and `write!` has a result all the same"
)]
#![allow(
    clippy::float_cmp,
    reason = "numbers are compared as Go's templates compare them"
)]
#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "as helm compares them"
)]

pub mod archive;

mod budget;
mod capabilities;
mod chart;
mod dependencies;
mod engine;
mod error;
mod ignore;
mod manifests;
mod metadata;
mod release;
mod render;
mod schema;
mod value;
mod values;
mod yaml;

pub use archive::File;
pub use budget::Budget;
pub use capabilities::Capabilities;
pub use chart::Chart;
pub use engine::functions::function_names;
pub use error::{Error, Frame};
pub use manifests::Document;
pub use metadata::{Dependency, Metadata};
pub use release::Release;
pub use render::{Rendered, render};
pub use values::{merge_values, read_values};
