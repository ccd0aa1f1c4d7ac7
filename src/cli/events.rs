//! `ork events`

use jiff::Timestamp;
use orkestra_admin::inspect::{self, EventFollower, EventRow, EventsRequest, HealthStatus, Reader};
use orkestra_admin::operate::ObjectName;

use super::{
    Failure,
    connection::ConnectionOptions,
    history::age,
    options::parse_namespace,
    output::{self, DocumentFormat},
    tree::{styled, unavailable},
};

/// Print the Events of an object and of everything below it, or those that Orkestra reports
///
/// With KIND/NAME, they are the Events of the object, of its children and of the Pods behind them, from every reporter. Without it,
/// they are those that Orkestra reports in the namespace. The newest come last.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The object, such as `pond/north`
    #[arg(value_name = "KIND/NAME")]
    object: Option<ObjectName>,
    /// Namespace of the object or of the Events [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NS", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Events of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "object"])]
    all_namespaces: bool,
    /// Only Events of the object itself
    #[arg(long, requires = "object")]
    alone: bool,
    /// Only Warnings
    #[arg(long)]
    warnings: bool,
    /// Maximum number of Events
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: usize,
    /// Output format; with `--watch`, one document for each Event
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: DocumentFormat,
    /// Print further Events until the command is interrupted
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let connection = args.cluster.connect().await?;
    let reader = Reader::new(&connection).await?;
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| connection.client.default_namespace());
    let object = args.object.as_ref();
    let object = object.map(|object| reader.kinds().find(object, namespace));
    let request = EventsRequest {
        object: object.transpose()?,
        alone: args.alone,
        namespace: (!args.all_namespaces).then(|| namespace.to_owned()),
        warnings: args.warnings,
        most: args.limit,
    };
    if args.watch {
        return follow(&reader, request, args.output).await;
    }
    let reading = inspect::events(&reader, &request);
    let events = output::progress("reading Events", reading).await?;
    if let Some(text) = output::document(&events, args.output)? {
        output::print(&text)?;
    } else if !events.items.is_empty() {
        output::print(&table(&events.items, Timestamp::now()))?;
    }
    unavailable(&events.unavailable);
    if events.items.is_empty() {
        if !events.unavailable.is_empty() {
            return Err(Failure::Reported);
        }
        if args.output == DocumentFormat::Human {
            output::note("no Events found");
        }
    }
    Ok(())
}

async fn follow(
    reader: &Reader,
    request: EventsRequest,
    format: DocumentFormat,
) -> Result<(), Failure> {
    let starting = EventFollower::start(reader, request);
    let mut follower = output::progress("reading Events", starting).await?;
    unavailable(&follower.unavailable());
    if follower.is_blind() {
        return Err(Failure::Reported);
    }
    let mut is_first = true;
    loop {
        let rows = follower.next().await;
        if format != DocumentFormat::Human {
            for row in &rows {
                let text = output::document(row, format)?.unwrap_or_default();
                let start = if format == DocumentFormat::Yaml {
                    "---\n"
                } else {
                    ""
                };
                output::print(&format!("{start}{text}"))?;
            }
            continue;
        }
        let text = table(&rows, Timestamp::now());
        let text = match text.split_once('\n') {
            Some((_, rows)) if !is_first => rows,
            _ => &text,
        };
        output::print(text)?;
        is_first = false;
    }
}

/// Returns the table of Events; on a terminal, messages are cut to its width.
pub(crate) fn table(items: &[EventRow], now: Timestamp) -> String {
    let head = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(items.iter().map(|row| {
        let health = match &*row.type_ {
            "Normal" => HealthStatus::Current,
            _ => HealthStatus::InProgress,
        };
        let times = match row.count {
            2.. => format!(" (x{})", row.count),
            _ => String::new(),
        };
        [
            row.last.map(|last| age(now, last)).unwrap_or_default(),
            styled(health, &output::cell(&row.type_)),
            output::cell(&row.reason),
            output::cell(&format!("{}/{}", row.kind.to_lowercase(), row.name)),
            output::cell(&row.message) + &times,
        ]
    }));
    output::table_within(&rows, output::terminal_width())
}
