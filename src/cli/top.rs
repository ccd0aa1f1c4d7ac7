//! `ork top`

use std::time::Duration;

use console::Term;
use orkestra_admin::inspect::{self, Installation, Reader, Sample, Top};
use orkestra_language::api::duration;
use orkestra_object::ObjectKey;
use orkestra_plan::rbac;
use tokio::time::{Instant, sleep_until};

use super::{
    Failure,
    connection::ConnectionOptions,
    options::parse_namespace,
    output::{self, DocumentFormat},
    tree::unavailable,
};

/// How often the token of a service account is requested again: well before it expires.
const TOKEN_AGE: Duration = Duration::from_mins(5);

/// Print rates, errors and queues of operators, live
///
/// On a terminal, the table is drawn again every interval; elsewhere, and with JSON and YAML, each is printed after the other. The
/// numbers are those of the controller's metrics, read through the API server's proxy: the command needs the permission to get
/// `pods/proxy` in the namespace of the controller, and the ClusterRole `orkestra-metrics-reader`. The controller gets the bearer token
/// of the kubeconfig. A kubeconfig without one, such as one with a client certificate, needs `--service-account`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Namespace of the controller
    #[arg(long, value_name = "NS", value_parser = parse_namespace, default_value = rbac::NAMESPACE)]
    system_namespace: String,
    /// Time between two readings
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    interval: Duration,
    /// Number of tables [default: until the command is interrupted]
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// Read the metrics with a short-lived token of this service account; needs the permission to create `serviceaccounts/token`
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_account)]
    service_account: Option<ObjectKey>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: DocumentFormat,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

/// Parses `NAMESPACE/NAME`.
fn parse_account(text: &str) -> Result<ObjectKey, String> {
    let (namespace, name) = text
        .split_once('/')
        .ok_or("expected NAMESPACE/NAME, such as monitoring/prometheus")?;
    let (namespace, name) = (parse_namespace(namespace)?, parse_namespace(name)?);
    Ok(ObjectKey {
        namespace: Some(namespace.as_str().into()),
        name: name.as_str().into(),
    })
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let connection = args.cluster.connect().await?;
    let reader = Reader::new(&connection).await?;
    let of = Installation {
        namespace: args.system_namespace,
        account: args.service_account,
    };
    let interval = args.interval.max(Duration::from_millis(200));
    let mut meter = Meter {
        reader: &reader,
        of,
        token: None,
    };
    let mut before = meter.read().await?.0;
    let mut screen = Screen::default();
    let mut printed = 0;
    let mut next = Instant::now();
    loop {
        next += interval;
        let waited = sleep_until(next);
        if printed == 0 {
            output::progress("measuring", waited).await;
        } else {
            waited.await;
        }
        let (now, unavailable) = meter.read().await?;
        let top = Top {
            operators: now.since(&before),
            unavailable,
        };
        before = now;
        screen.show(&top, args.output)?;
        printed += 1;
        if args.count == Some(printed) {
            return Ok(());
        }
        // A slow answer delays the next reading, and causes no burst.
        next = next.max(Instant::now());
    }
}

/// Reads metrics, with a token that is still valid.
struct Meter<'r> {
    reader: &'r Reader,
    of: Installation,
    token: Option<(Instant, String)>,
}

impl Meter<'_> {
    /// Returns a sample; an error if no Pod could be read.
    async fn read(&mut self) -> Result<(Sample, Vec<inspect::Unavailable>), Failure> {
        let is_due = match &self.token {
            Some((since, _)) => since.elapsed() >= TOKEN_AGE,
            None => self.of.account.is_some(),
        };
        if is_due {
            match self.reader.page_token(&self.of).await {
                Ok(token) => self.token = token.map(|token| (Instant::now(), token)),
                Err(missing) => {
                    unavailable(&[missing]);
                    return Err(Failure::Reported);
                }
            }
        }
        let token = self.token.as_ref().map(|(_, token)| &**token);
        let reading = inspect::sample(self.reader, &self.of, token);
        let (sample, missing) = output::progress("reading metrics", reading).await;
        if sample.pods == 0 {
            unavailable(&missing);
            return Err(Failure::Reported);
        }
        Ok((sample, missing))
    }
}

/// Where tables are printed: on a terminal, each replaces the one before.
#[derive(Default)]
struct Screen {
    lines: usize,
}

impl Screen {
    fn show(&mut self, top: &Top, format: DocumentFormat) -> Result<(), Failure> {
        if let Some(text) = output::document(top, format)? {
            let start = if format == DocumentFormat::Yaml {
                "---\n"
            } else {
                ""
            };
            return Ok(output::print(&format!("{start}{text}"))?);
        }
        let mut text = table(top);
        for missing in &top.unavailable {
            text.push_str(&output::cell(&missing.to_string()));
            text.push('\n');
        }
        let terminal = Term::stdout();
        let is_redrawn = terminal.is_term() && std::env::var("TERM").as_deref() != Ok("dumb");
        if is_redrawn && self.lines > 0 {
            // A terminal that is gone is reported by the print that follows.
            let _ = terminal.clear_last_lines(self.lines);
        } else if self.lines > 0 {
            text.insert(0, '\n');
        }
        let width = output::terminal_width().unwrap_or(usize::MAX);
        let rows = |line: &str| textwrap::core::display_width(line).div_ceil(width).max(1);
        self.lines = text.lines().map(rows).sum();
        Ok(output::print(&text)?)
    }
}

/// Returns the table of rates.
fn table(top: &Top) -> String {
    let head = [
        "KATALOG", "OPERATOR", "PASSES/S", "ERRORS/S", "P99", "QUEUE", "OLDEST", "WORKERS", "READY",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(top.operators.iter().map(|row| {
        let errors = format!("{:.1}", row.errors_per_second);
        let errors = if row.errors_per_second > 0.0 {
            let style = output::BAD;
            format!("{style}{errors}{style:#}")
        } else {
            errors
        };
        [
            output::cell(&row.katalog),
            output::cell(&row.operator),
            format!("{:.1}", row.passes_per_second),
            errors,
            row.p99_seconds.map_or_else(|| "-".to_owned(), time),
            row.queue_depth.to_string(),
            time(row.oldest_seconds),
            row.workers.to_string(),
            format!("{}/{}", row.ready, row.resources),
        ]
    }));
    output::table(&rows)
}

/// Returns a time in its usual unit: `2.5ms`, `1.2s`, `3m`.
fn time(seconds: f64) -> String {
    if seconds <= 0.0 {
        "0s".to_owned()
    } else if seconds < 1.0 {
        format!("{:.1}ms", seconds * 1000.0)
    } else if seconds < 120.0 {
        format!("{seconds:.1}s")
    } else {
        format!("{:.0}m", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit_and_accounts_two_parts() {
        for (seconds, text) in [
            (0.0, "0s"),
            (0.0025, "2.5ms"),
            (1.25, "1.2s"),
            (600.0, "10m"),
        ] {
            assert_eq!(time(seconds), text);
        }
        assert!(parse_account("monitoring/prometheus").is_ok());
        for wrong in ["prometheus", "a/b/c", "/b", "a/"] {
            assert!(parse_account(wrong).is_err(), "{wrong}");
        }
    }
}
