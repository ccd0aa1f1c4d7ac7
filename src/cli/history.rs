//! `ork history`

use jiff::Timestamp;
use orkestra_controller::{AcceptedRevision, History, HistoryError};

use super::{Failure, katalog::KatalogOptions, output};

/// List the accepted revisions of a Katalog or Komposer
///
/// Each revision that was accepted has a number, and the last ones are kept: `spec.revisionHistoryLimit` before the newest one. `ork diff
/// NAME@1 NAME@2` compares two of them, and `ork rollback` returns to one.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    katalog: KatalogOptions,
    /// Print the document of this revision, in YAML
    #[arg(long, value_name = "N")]
    revision: Option<i64>,
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        let is_unreachable = matches!(&error, HistoryError::Call(call) if call.is_unreachable());
        Self::of(error, is_unreachable)
    }
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let (_, _, history) = args.katalog.history().await?;
    if let Some(number) = args.revision {
        let document = document(&history, number)?;
        let text = serde_saphyr::to_string(document).map_err(anyhow::Error::from)?;
        return Ok(output::print(&text)?);
    }
    Ok(output::print(&table(&history, Timestamp::now()))?)
}

/// Returns the document of a kept revision.
///
/// # Errors
/// Which ones are kept.
pub(crate) fn document(
    history: &History,
    number: i64,
) -> Result<&serde_json::Value, anyhow::Error> {
    let revision = find(history, number)?;
    let document = revision.document.as_ref();
    document.ok_or_else(|| anyhow::anyhow!("revision {number} cannot be read: it is damaged"))
}

/// Returns a kept revision.
///
/// # Errors
/// Which ones are kept.
pub(crate) fn find(history: &History, number: i64) -> Result<&AcceptedRevision, anyhow::Error> {
    let mut all = history.revisions.iter();
    all.find(|one| one.number == number).ok_or_else(|| {
        let kept: Vec<String> = history
            .revisions
            .iter()
            .map(|one| one.number.to_string())
            .collect();
        anyhow::anyhow!("revision {number} is not kept: {}", kept.join(", "))
    })
}

/// Returns the table of the revisions, the newest last.
fn table(history: &History, now: Timestamp) -> String {
    let mut rows = vec![["REVISION", "HASH", "AGE", "APPLIED BY", "NOTE"].map(str::to_owned)];
    for one in &history.revisions {
        let hash = one.name.rsplit_once('-').map_or("", |(_, hash)| hash);
        let age = one.accepted.map(|at| age(now, at));
        let note = if history.in_force.as_deref() == Some(&*one.name) {
            "in force"
        } else {
            ""
        };
        rows.push([
            one.number.to_string(),
            hash.to_owned(),
            age.unwrap_or_default(),
            one.author.clone().unwrap_or_default(),
            note.to_owned(),
        ]);
    }
    output::table(&rows)
}

/// Returns how old a moment is, in its largest unit: `3d`. Source: kubectl, `HumanDuration`.
fn age(now: Timestamp, at: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_listed_with_their_age_and_the_one_in_force() {
        let revision = |number, name: &str, at: &str, author: Option<&str>| AcceptedRevision {
            number,
            name: name.to_owned(),
            accepted: at.parse().ok(),
            author: author.map(str::to_owned),
            document: None,
            motifs: serde_json::Map::new(),
            sources: Vec::new(),
        };
        let history = History {
            object: serde_json::Value::Null,
            in_force: Some("ponds-bbbb".to_owned()),
            revisions: vec![
                revision(1, "ponds-aaaa", "2026-03-01T08:00:00Z", None),
                revision(
                    12,
                    "ponds-bbbb",
                    "2026-03-04T07:59:30Z",
                    Some("argocd-controller"),
                ),
            ],
        };
        let now = "2026-03-04T08:00:00Z".parse().unwrap();
        assert_eq!(
            table(&history, now),
            "REVISION   HASH   AGE   APPLIED BY          NOTE\n\
             1          aaaa   3d\n\
             12         bbbb   30s   argocd-controller   in force\n"
        );
        let error = find(&history, 2).unwrap_err().to_string();
        assert_eq!(error, "revision 2 is not kept: 1, 12");
    }
}
