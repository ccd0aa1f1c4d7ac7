//! Events of an object and of everything below it, or of everything that Orkestra reports.
//!
//! ```text
//!  KIND/NAME ── tree ──► uids ─┐
//!  lists of Events ────────────┴──► rows, the newest last
//! ```

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use orkestra_cluster::requests::Served;
use orkestra_language::api::names;
use orkestra_object::ObjectKey;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{Follower, ListChange, ListRequest, Reader, Subject, Tree, Unavailable, list, tree};
use crate::operate::Error;

/// Where Events about cluster-scoped objects are. Source: Kubernetes, client-go `events`.
const DEFAULT: &str = "default";
/// The most namespaces that are read.
const NAMESPACES: usize = 20;

/// How often objects that were created in the meantime are looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The Events that are asked for.
#[derive(Clone, Debug)]
pub struct EventsRequest {
    /// The object; without one, those that Orkestra reports.
    pub object: Option<(Served, ObjectKey)>,
    /// Whether only Events of the object itself are wanted, and not of what is below it.
    pub alone: bool,
    /// The namespace; all if there is none. It does not count for an object.
    pub namespace: Option<String>,
    /// Whether only Warnings are wanted.
    pub warnings: bool,
    /// The most Events, the newest.
    pub most: usize,
}

/// Events, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Events {
    /// The Events.
    pub items: Vec<EventRow>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
}

/// An Event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// When it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its reason.
    pub reason: String,
    /// The kind of its object.
    pub kind: String,
    /// The namespace of its object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of its object.
    pub name: String,
    /// Its message.
    pub message: String,
    /// How often it was seen.
    pub count: i64,
    /// Who reports it.
    pub reporter: String,
    /// The uid of its object.
    #[serde(skip)]
    uid: String,
}

impl EventRow {
    fn read(event: &Value) -> Self {
        let text = |pointer: &str| {
            let text = event.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        let owned = |pointer: &str| text(pointer).unwrap_or_default().to_owned();
        let times = [
            "/series/lastObservedTime",
            "/deprecatedLastTimestamp",
            "/eventTime",
            "/metadata/creationTimestamp",
        ];
        let counts = ["/series/count", "/deprecatedCount"];
        let mut counts = counts
            .iter()
            .filter_map(|at| event.pointer(at).and_then(Value::as_i64));
        Self {
            last: times.iter().find_map(|at| text(at)?.parse().ok()),
            type_: owned("/type"),
            reason: owned("/reason"),
            kind: owned("/regarding/kind"),
            namespace: text("/regarding/namespace").map(str::to_owned),
            name: owned("/regarding/name"),
            message: owned("/note"),
            count: counts.next().unwrap_or(1),
            reporter: text("/reportingController")
                .or_else(|| text("/deprecatedSource/component"))
                .unwrap_or_default()
                .to_owned(),
            uid: owned("/regarding/uid"),
        }
    }
}

/// The objects whose Events are wanted.
#[derive(Debug)]
struct About {
    /// Their uids; none for those that Orkestra reports.
    uids: Option<BTreeSet<String>>,
    /// Where the Events are; all namespaces if there is none.
    namespaces: Vec<Option<String>>,
    unavailable: Vec<Unavailable>,
}

impl About {
    /// Finds the objects.
    async fn find(reader: &Reader, request: &EventsRequest) -> Result<Self, Error> {
        let Some((kind, key)) = &request.object else {
            return Ok(Self {
                uids: None,
                namespaces: vec![request.namespace.clone()],
                unavailable: Vec::new(),
            });
        };
        let tree = tree(reader, kind, key).await?;
        Ok(Self::below(&tree, request))
    }

    /// The objects of a tree.
    fn below(tree: &Tree, request: &EventsRequest) -> Self {
        let (mut uids, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        tree.root.walk(&mut |node, depth| {
            if depth > 0 && request.alone {
                return;
            }
            uids.extend(node.object.uid.clone());
            let namespace = node.object.namespace.as_deref().unwrap_or(DEFAULT);
            namespaces.insert(namespace.to_owned());
        });
        let mut unavailable = match request.alone {
            true => Vec::new(),
            false => tree.unavailable.clone(),
        };
        if namespaces.len() > NAMESPACES {
            let what = "Events in further namespaces".to_owned();
            unavailable.push(Unavailable::beyond(what, NAMESPACES));
        }
        Self {
            uids: Some(uids),
            namespaces: namespaces.into_iter().take(NAMESPACES).map(Some).collect(),
            unavailable,
        }
    }

    /// Adds the objects that another look has found.
    fn add(&mut self, later: Self) {
        if let (Some(known), Some(found)) = (&mut self.uids, later.uids) {
            known.extend(found);
        }
    }

    fn admits(&self, request: &EventsRequest, row: &EventRow) -> bool {
        let is_about = match &self.uids {
            Some(uids) => uids.contains(&row.uid),
            None => row.reporter == names::EVENT_CONTROLLER,
        };
        is_about && (!request.warnings || row.type_ == "Warning")
    }

    /// Returns the selector of the Events, as far as the API server can select them.
    fn fields(&self, request: &EventsRequest) -> Option<String> {
        let mut fields = Vec::new();
        match &self.uids {
            None => fields.push(format!("reportingController={}", names::EVENT_CONTROLLER)),
            Some(uids) if uids.len() == 1 => {
                fields.extend(uids.iter().map(|uid| format!("regarding.uid={uid}")));
            }
            Some(_) => {}
        }
        if request.warnings {
            fields.push("type=Warning".to_owned());
        }
        (!fields.is_empty()).then(|| fields.join(","))
    }
}

/// Returns the Events.
///
/// # Errors
/// [`Error::Request`] if the object cannot be read.
pub async fn events(reader: &Reader, request: &EventsRequest) -> Result<Events, Error> {
    let about = About::find(reader, request).await?;
    Ok(events_about(reader, &about, request).await)
}

/// Returns the Events of the objects of a tree.
pub(crate) async fn events_below(reader: &Reader, tree: &Tree, request: &EventsRequest) -> Events {
    events_about(reader, &About::below(tree, request), request).await
}

async fn events_about(reader: &Reader, about: &About, request: &EventsRequest) -> Events {
    let mut events = Events::default();
    for namespace in &about.namespaces {
        let listing = list(reader, &list_of(about, request, namespace.clone())).await;
        let rows = listing.items.iter().map(EventRow::read);
        let rows = rows.filter(|row| about.admits(request, row));
        events.items.extend(rows);
        events.unavailable.extend(listing.unavailable);
    }
    events.unavailable.extend(about.unavailable.iter().cloned());
    events.items.sort_by(|a, b| a.last.cmp(&b.last));
    let more = events.items.len().saturating_sub(request.most);
    events.items.drain(..more);
    events
}

/// Follows Events.
#[derive(Debug)]
pub struct EventFollower<'r> {
    reader: &'r Reader,
    request: EventsRequest,
    about: About,
    looked: Instant,
    follower: Follower,
}

impl<'r> EventFollower<'r> {
    /// Starts to watch Events: in the namespace of the object, and for a cluster-scoped one in all namespaces. Must be called on a
    /// tokio runtime.
    ///
    /// # Errors
    /// [`Error::Request`] if the object cannot be read.
    pub async fn start(reader: &'r Reader, request: EventsRequest) -> Result<Self, Error> {
        let about = About::find(reader, &request).await?;
        let namespace = match &request.object {
            Some((_, key)) => key.namespace.as_deref().map(str::to_owned),
            None => request.namespace.clone(),
        };
        let mut list = list_of(&about, &request, namespace);
        // Objects that are created later are followed, too.
        if request.object.is_some() && !request.alone {
            list.fields = request.warnings.then(|| "type=Warning".to_owned());
        }
        let (follower, _) = Follower::start(reader, list).await;
        follower.looked_at().await;
        Ok(Self {
            reader,
            request,
            about,
            looked: Instant::now(),
            follower,
        })
    }

    /// Returns what could not be read, and why Events cannot be watched at present; that is retried.
    pub fn unavailable(&self) -> Vec<Unavailable> {
        let problems = self.follower.problems().into_iter();
        let problems = problems.map(|message| Unavailable {
            what: "Events".to_owned(),
            permission: None,
            message,
        });
        self.about
            .unavailable
            .iter()
            .cloned()
            .chain(problems)
            .collect()
    }

    /// True if Events cannot be watched at present.
    pub fn is_blind(&self) -> bool {
        self.follower.is_blind()
    }

    /// Waits for Events: at first all that exist, the newest last. Cancel safe.
    pub async fn next(&mut self) -> Vec<EventRow> {
        loop {
            let changes = self.follower.next().await.into_iter();
            let changes = changes.filter(|change| change.change != ListChange::Deleted);
            let mut rows: Vec<EventRow> = changes
                .map(|change| EventRow::read(&change.object))
                .collect();
            let is_new = |row: &EventRow| {
                let uids = self.about.uids.as_ref();
                uids.is_some_and(|uids| !uids.contains(&row.uid))
            };
            let is_due = self.looked.elapsed() >= LOOK_AGAIN && !self.request.alone;
            if is_due && rows.iter().any(is_new) {
                // An object that is gone has no new children.
                if let Ok(about) = About::find(self.reader, &self.request).await {
                    self.about.add(about);
                }
                self.looked = Instant::now();
            }
            rows.retain(|row| self.about.admits(&self.request, row));
            rows.sort_by(|a, b| a.last.cmp(&b.last));
            let more = rows.len().saturating_sub(self.request.most);
            rows.drain(..more);
            if !rows.is_empty() {
                return rows;
            }
        }
    }
}

/// Returns the list that has the Events of a namespace.
fn list_of(about: &About, request: &EventsRequest, namespace: Option<String>) -> ListRequest {
    ListRequest {
        subject: Subject::Kind(Box::new(Served::events())),
        namespace,
        names: Vec::new(),
        selector: None,
        fields: about.fields(request),
        whole: true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_events_are_read() {
        let new = json!({
            "metadata": { "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "eventTime": "2026-01-01T00:00:01.5Z", "series": { "count": 4, "lastObservedTime": "2026-01-01T00:05:00Z" },
            "type": "Normal", "reason": "Applied", "note": "applied ConfigMap a", "reportingController": "orkestra",
            "regarding": { "kind": "Pond", "namespace": "shop", "name": "north", "uid": "u1" }
        });
        let row = EventRow::read(&new);
        assert_eq!(
            (row.count, &*row.reporter, &*row.uid),
            (4, "orkestra", "u1")
        );
        assert_eq!(row.last, "2026-01-01T00:05:00Z".parse().ok());
        let old = json!({
            "deprecatedCount": 7, "deprecatedLastTimestamp": "2026-01-02T00:00:00Z", "deprecatedSource": { "component": "kubelet" },
            "reportingController": "", "type": "Warning", "reason": "Failed", "regarding": { "kind": "Pod" }
        });
        let row = EventRow::read(&old);
        assert_eq!(
            (row.count, &*row.reporter, row.namespace),
            (7, "kubelet", None)
        );
        assert_eq!(row.last, "2026-01-02T00:00:00Z".parse().ok());
        // Nothing is required.
        assert_eq!(EventRow::read(&json!([])).count, 1);
    }
}
