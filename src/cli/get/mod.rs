//! `ork get`

mod columns;
mod watch;

use anyhow::anyhow;
use jiff::Timestamp;
use orkestra_admin::inspect::{self, Column, Content, ListRequest, Listing, Reader, Subject};
use serde_json::Value;

use self::columns::{CustomColumn, custom_columns};
use super::{
    Failure,
    connection::ConnectionOptions,
    history::age,
    options::parse_namespace,
    output::{self, DocumentFormat},
    tree::{styled, unavailable},
};

/// List Katalogs, Komposers, operators or custom resources
///
/// WHAT is `katalogs`, `komposers`, `operators` (the entries of Katalogs and Komposers), `instances` (the custom resources of all
/// operators), or a kind of the cluster, such as `ponds`. Objects that you may not list are reported with the missing permission, and
/// the rest is printed.
///
/// JSON and YAML have the objects themselves, of an operator its row in the status of its Katalog; what could not be read is listed
/// under `unavailable`. With `--watch`, they are a document for each change, with `type` and `object`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What is listed, or one object as KIND/NAME
    #[arg(value_name = "WHAT")]
    what: String,
    /// Names; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Namespace [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Label selector, such as `tier=gold`; that of an operator is about its Katalog
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Output format: human, wide, json, yaml, or custom-columns=TITLE:PATH,... with paths as in kubectl
    #[arg(short, long, value_name = "FORMAT", default_value = "human", value_parser = parse_format)]
    output: Format,
    /// Print changes until the command is interrupted, after the list; kinds that are declared later are not watched
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

/// The formats of a list.
#[derive(Clone, Debug)]
enum Format {
    /// Columns for a terminal.
    Human,
    /// All columns.
    Wide,
    /// A document.
    Document(DocumentFormat),
    /// Columns of the caller's choice.
    Custom(Vec<CustomColumn>),
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text {
        "human" => Ok(Format::Human),
        "wide" => Ok(Format::Wide),
        "json" => Ok(Format::Document(DocumentFormat::Json)),
        "yaml" => Ok(Format::Document(DocumentFormat::Yaml)),
        _ => match text.strip_prefix("custom-columns=") {
            Some(columns) => custom_columns(columns).map(Format::Custom),
            None => {
                Err("expected human, wide, json, yaml or custom-columns=TITLE:PATH,...".to_owned())
            }
        },
    }
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let connection = args.cluster.connect().await?;
    let reader = Reader::new(&connection).await?;
    let (what, mut names) = (args.what.as_str(), args.names);
    let what = match what.split_once('/') {
        Some((kind, name)) => {
            names.push(name.to_owned());
            kind
        }
        None => what,
    };
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace());
    let request = ListRequest {
        subject: Subject::parse(what, &reader)?,
        namespace: (!args.all_namespaces).then(|| namespace.to_owned()),
        names,
        selector: args.selector,
        fields: None,
        whole: matches!(args.output, Format::Document(_) | Format::Custom(_)),
    };
    let shown = Shown {
        columns: columns(&request, &args.output),
        output: args.output,
    };
    if args.watch {
        return watch::follow(&reader, request, &shown).await;
    }
    let listing = output::progress("reading the objects", inspect::list(&reader, &request)).await;
    print(&shown, &request, &listing)
}

/// How documents are shown.
struct Shown {
    output: Format,
    columns: Vec<&'static Column>,
}

/// Returns the columns of the request: those of wide lists, and the namespace, only if they are asked for.
fn columns(request: &ListRequest, output: &Format) -> Vec<&'static Column> {
    let is_wide = matches!(output, Format::Wide);
    let all = inspect::columns(&request.subject).iter();
    all.filter(|column| is_wide || !column.is_wide)
        .filter(|column| column.title != "NAMESPACE" || request.namespace.is_none())
        .collect()
}

impl Shown {
    fn head(&self) -> Vec<String> {
        match &self.output {
            Format::Custom(columns) => columns.iter().map(CustomColumn::title).collect(),
            _ => (self.columns.iter())
                .map(|column| column.title.to_owned())
                .collect(),
        }
    }

    fn row(&self, document: &Value, now: Timestamp) -> Vec<String> {
        match &self.output {
            Format::Custom(columns) => columns.iter().map(|column| column.cell(document)).collect(),
            _ => (self.columns.iter())
                .map(|column| cell(&(column.content)(document), now))
                .collect(),
        }
    }

    /// The width of the terminal, where rows are cut to it.
    fn width(&self) -> Option<usize> {
        output::terminal_width().filter(|_| matches!(self.output, Format::Human))
    }
}

fn cell(content: &Content, now: Timestamp) -> String {
    match content {
        Content::Text(text) => output::cell(text),
        Content::Since(moment) => age(now, *moment),
        Content::State(word, health) => styled(*health, &output::cell(word)),
    }
}

fn print(shown: &Shown, request: &ListRequest, listing: &Listing) -> Result<(), Failure> {
    let missing = request.names.iter().filter(|name| {
        let mut items = listing.items.iter();
        !items.any(|item| item["metadata"]["name"] == **name || item["name"] == **name)
    });
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if let Format::Document(format) = shown.output {
        let text = output::document(listing, format)?.unwrap_or_default();
        output::print(&text)?;
    } else if !listing.items.is_empty() {
        let now = Timestamp::now();
        let mut rows = vec![shown.head()];
        rows.extend(listing.items.iter().map(|item| shown.row(item, now)));
        output::print(&output::table_within(&rows, shown.width()))?;
    }
    unavailable(&listing.unavailable);
    let place = match request.namespace.as_deref() {
        Some(namespace) => format!("namespace {namespace}"),
        None => "any namespace".to_owned(),
    };
    if !missing.is_empty() {
        return Err(anyhow!("not found in {place}: {}", missing.join(", ")).into());
    }
    if listing.items.is_empty() {
        if !listing.unavailable.is_empty() {
            return Err(Failure::Reported);
        }
        if !matches!(shown.output, Format::Document(_)) {
            output::note(&format!("nothing found in {place}"));
        }
    }
    Ok(())
}
