//! `ork get --watch`: the list, and then each change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use orkestra_admin::inspect::{Followed, Follower, ListChange, ListRequest, Reader};
use textwrap::core::display_width;

use super::{Format, Shown, output, unavailable};
use crate::cli::Failure;

/// What follows the row of an object that is gone.
const DELETED: &str = "(deleted)";

/// Prints the list, and then each change, until the process is interrupted.
pub(super) async fn follow(
    reader: &Reader,
    request: ListRequest,
    shown: &Shown,
) -> Result<(), Failure> {
    let (mut follower, listing) = Follower::start(reader, request).await;
    unavailable(&listing.unavailable);
    output::progress("reading the objects", follower.looked_at()).await;
    let is_blind = follower.is_blind();
    let retried = if is_blind { "" } else { "; it is retried" };
    for problem in follower.problems() {
        output::note(&output::cell(&format!("{problem}{retried}")));
    }
    if is_blind {
        return Err(Failure::Reported);
    }
    let mut rows = Rows::default();
    let mut changes = follower.drain();
    rows.begin(shown, &changes)?;
    loop {
        for change in &changes {
            rows.print(shown, change)?;
        }
        changes = follower.next().await;
    }
}

/// The rows that were printed.
#[derive(Default)]
struct Rows {
    /// A row as wide as the columns.
    ruler: Vec<String>,
    /// The last row of each object: a change that does not show is not printed.
    last: BTreeMap<String, Vec<String>>,
}

impl Rows {
    /// Prints the head, with columns for the rows that are known.
    fn begin(&mut self, shown: &Shown, changes: &[Followed]) -> Result<(), Failure> {
        if matches!(shown.output, Format::Document(_)) {
            return Ok(());
        }
        let head = shown.head();
        let now = Timestamp::now();
        let mut widths: Vec<usize> = head.iter().map(|cell| display_width(cell)).collect();
        for change in changes {
            for (width, cell) in widths.iter_mut().zip(shown.row(&change.object, now)) {
                *width = (*width).max(display_width(&cell));
            }
        }
        self.ruler = widths.into_iter().map(|width| " ".repeat(width)).collect();
        Ok(self.line(shown, head)?)
    }

    fn print(&mut self, shown: &Shown, change: &Followed) -> Result<(), Failure> {
        if let Format::Document(format) = shown.output {
            return print_document(change, format);
        }
        let mut row = shown.row(&change.object, Timestamp::now());
        let key = format!(
            "{}/{}/{}/{}",
            change.object["katalog"],
            change.object["name"],
            change.object["kind"],
            change.object["metadata"]["uid"]
        );
        if change.change == ListChange::Deleted {
            self.last.remove(&key);
            if let Some(last) = row.last_mut() {
                *last = format!("{last} {DELETED}").trim_start().to_owned();
            }
        } else {
            // Its age changes all the time.
            let content = shown.row(&change.object, Timestamp::UNIX_EPOCH);
            if self.last.get(&key) == Some(&content) {
                return Ok(());
            }
            self.last.insert(key, content);
        }
        Ok(self.line(shown, row)?)
    }

    fn line(&self, shown: &Shown, row: Vec<String>) -> anyhow::Result<()> {
        let text = output::table_within(&[self.ruler.clone(), row], shown.width());
        let line = text.lines().nth(1).unwrap_or_default();
        output::print(&format!("{line}\n"))
    }
}

fn print_document(change: &Followed, format: output::DocumentFormat) -> Result<(), Failure> {
    let text = output::document(change, format)?.unwrap_or_default();
    let text = match format {
        output::DocumentFormat::Yaml => format!("---\n{text}"),
        _ => text,
    };
    Ok(output::print(&text)?)
}
