//! `ork schema`

use anyhow::Context as _;
use orkestra_language::{document::DocumentKind, reference};

use super::{Failure, output};

/// Print the JSON Schema of a kind of document, for editors
///
/// Editors use the schema to complete fields, show their documentation and mark errors. With the YAML language server,
/// write the schema to a file and name that file in the first line of a document:
/// `# yaml-language-server: $schema=katalog.schema.json`
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Kind of document
    #[arg(value_enum, default_value_t = SchemaKind::Katalog)]
    kind: SchemaKind,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SchemaKind {
    Katalog,
    Motif,
    Komposer,
    #[value(name = "e2e")]
    E2e,
    Simulate,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let kind = match args.kind {
        SchemaKind::Katalog => DocumentKind::Katalog,
        SchemaKind::Motif => DocumentKind::Motif,
        SchemaKind::Komposer => DocumentKind::Komposer,
        SchemaKind::E2e => DocumentKind::E2e,
        SchemaKind::Simulate => DocumentKind::Simulate,
    };
    let schema = reference::json_schema(kind).context("the kind has no schema")?;
    let text = serde_json::to_string_pretty(&schema).context("cannot write the schema")?;
    Ok(output::print(&format!("{text}\n"))?)
}
