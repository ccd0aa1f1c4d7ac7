//! Results as documents for programs.

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;

/// The formats of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Human-readable text
    #[default]
    Human,
    /// A JSON document with the same content
    Json,
    /// The same document in YAML
    Yaml,
}

/// Returns a value as a document; none for text, which each command writes itself.
pub(crate) fn document(
    value: &impl Serialize,
    format: DocumentFormat,
) -> anyhow::Result<Option<String>> {
    match format {
        DocumentFormat::Human => Ok(None),
        DocumentFormat::Json => {
            let text = serde_json::to_string_pretty(value);
            Ok(Some(
                text.context("cannot write the result as JSON")? + "\n",
            ))
        }
        DocumentFormat::Yaml => {
            let text = serde_saphyr::to_string(value);
            Ok(Some(text.context("cannot write the result as YAML")?))
        }
    }
}
