//! Requests to the API server with [`Node`] bodies, each with a deadline, and errors classified by their consequence.
//!
//! One file: every request passes through the same deadline, account and breaker.

mod error;
mod find;
mod list;
mod review;
mod served;
mod stream;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures::TryFutureExt as _;
use http::{Method, Request, header, request::Builder};
use orkestra_ground::Backoff;
pub use orkestra_object::record::Form;
#[cfg(doc)]
use orkestra_object::value::Fault;
use orkestra_object::{ObjectKey, value::Node};
use tokio::{sync::Semaphore, time::Instant};

use self::{error::RequestSubject, list::PAGES_AT_ONCE};
pub use self::{
    error::{Cause, ClusterError, is_missed},
    list::{Listed, PageOf},
    review::RawResponse,
    served::{Served, autoscalers},
    stream::{Event, Watch},
};
use super::reach::Reach;
use crate::client::flow::{Flow, RequestPermit, Share};
use served::Query;

/// The deadline of a request.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The delays after requests that failed, for a task that repeats its request until it succeeds.
pub const RETRY: Backoff = Backoff::doubling(Duration::from_millis(500), Duration::from_secs(30));

/// The delay before a throttled request is repeated, if the API server names none.
const THROTTLED: Duration = Duration::from_secs(1);

/// Objects per page of [`Cluster::list_all`].
const PAGE: u32 = 500;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// JSON is YAML, and this is the content type that every server supports.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// An unknown field is an error that names it; it is not dropped silently.
const STRICT: &str = "Strict";

/// The API server, as one client identity sees it. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    reach: Reach,
    /// Flow control and the account of requests.
    flow: Option<(Flow, Share)>,
    /// Permits to read a page of a list.
    pages: Arc<Semaphore>,
    /// Whether the readable rest of a partly unreadable response is returned.
    in_part: bool,
    /// Whether writes are checked and not stored.
    dry_run: bool,
    /// How long a request that the API server throttles is repeated.
    patience: Duration,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// One page of a list.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects. The API server omits `apiVersion` and `kind` in the items of built-in kinds.
    pub items: Vec<Node>,
    /// The resourceVersion of all pages of one list.
    pub resource_version: String,
    /// The continue token of the next page; `None` on the last.
    pub next: Option<String>,
}

/// The objects of a list or watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The namespace; `None` for all, and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Label selector, in the syntax of `kubectl -l`.
    pub selector: Option<String>,
    /// Field selector, in the syntax of `kubectl --field-selector`.
    pub fields: Option<String>,
}

/// What happens to an object's dependents when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes them afterwards.
    Background,
    /// The object is deleted after them.
    Foreground,
    /// They stay.
    Orphan,
}

/// The options of a deletion.
#[derive(Clone, Debug)]
pub struct Deletion<'a> {
    /// What happens to the object's dependents.
    pub propagation: Propagation,
    /// Delete only if the object has this uid, so that a new object of the same name is safe.
    pub uid: Option<&'a str>,
    /// Delete only if the object has this resourceVersion.
    pub resource_version: Option<&'a str>,
}

impl Cluster {
    /// Requests through `client`, with a deadline of [`DEADLINE`] each.
    pub fn new(client: kube::Client) -> Self {
        Self::reaching(client, Reach::unquestioned())
    }

    /// The same, with outcomes reported to `reach`.
    pub fn reaching(client: kube::Client, reach: Reach) -> Self {
        Self {
            client,
            reach,
            flow: None,
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
            in_part: false,
            dry_run: false,
            patience: Duration::ZERO,
        }
    }

    /// The same, with each request waiting for its turn in `flow`; the deadline starts after that.
    #[must_use]
    pub fn in_turn(mut self, flow: Flow) -> Self {
        self.flow = Some((flow, Share::new("process")));
        self
    }

    /// The same requests; if a response is partly unreadable, the rest is returned, and [`Fault::all_of`] lists what is missing.
    /// For callers that make records of responses.
    #[must_use]
    pub fn in_part(&self) -> Self {
        Self {
            in_part: true,
            ..self.clone()
        }
    }

    /// The same requests; the API server checks objects that are created or applied, and does not store them.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self {
            dry_run: true,
            ..self.clone()
        }
    }

    /// The same requests; one that the API server throttles is repeated for that long, when it says so. For commands that people run: the
    /// API server answers 429 for a kind whose definition it is about to serve.
    #[must_use]
    pub fn patient(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// The same requests on another account.
    #[must_use]
    pub fn on_account_of(&self, share: Share) -> Self {
        let flow = self.flow.as_ref().map(|(flow, _)| (flow.clone(), share));
        Self {
            flow,
            ..self.clone()
        }
    }

    /// Waits for the turn of a request, to be put into the request's extensions. `None` if requests do not wait.
    async fn turn(&self) -> Option<RequestPermit> {
        let (flow, share) = self.flow.as_ref()?;
        Some(flow.turn(share).await)
    }

    /// The reachability of the API server, as observed by requests.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The namespace of the kubeconfig's context or of the Pod.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Returns the version of the API server, such as `v1.34.4`.
    ///
    /// # Errors
    /// Any failure of the request.
    pub async fn server_version(&self) -> Result<String, ClusterError> {
        let asked = RequestSubject::discovery("");
        let version = self.node(&asked, Method::GET, "/version", None).await?;
        let name = version.get("gitVersion").and_then(Node::as_str);
        Ok(name.unwrap_or_default().to_owned())
    }

    /// Returns the object.
    ///
    /// # Errors
    /// [`ClusterError::NotFound`] if there is no such object, [`ClusterError::NotServed`] if the kind is not served.
    pub async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Node, ClusterError> {
        let asked = RequestSubject::of("get", kind, key.namespace.as_deref());
        self.node(&asked, Method::GET, &kind.object_path(key, None), None)
            .await
    }

    /// Returns one page of a list: the first, or the one for `next` of the last page; a `limit` of 0 is no limit.
    ///
    /// No resourceVersion is requested, so a first page is never older than any state that was returned before. A partly
    /// unreadable object is included without the unreadable part, see [`Fault::all_of`].
    ///
    /// # Errors
    /// [`ClusterError::Gone`] if `next` is too old: the list has to start again.
    pub async fn list_page(
        &self,
        kind: &Served,
        scope: &Scope,
        limit: u32,
        next: Option<&str>,
    ) -> Result<Page, ClusterError> {
        let asked = RequestSubject::of("list", kind, scope.namespace.as_deref());
        let mut query = Query::default();
        query.add("labelSelector", scope.selector.as_deref());
        query.add("fieldSelector", scope.fields.as_deref());
        query.add("limit", (limit > 0).then(|| limit.to_string()).as_deref());
        query.add("continue", next);
        let path = query.onto(kind.collection_path(scope.namespace.as_deref()));
        let text = self.text(&asked, Method::GET, &path, None).await?;
        list::read_whole(&text)
    }

    /// Returns the objects of all pages of a list, see [`Self::list_page`]. They are in memory together: what users may create in any
    /// number and size, a controller reads with [`Self::list_each`].
    ///
    /// # Errors
    /// The error of a page.
    pub async fn list_all(&self, kind: &Served, scope: &Scope) -> Result<Vec<Node>, ClusterError> {
        let (mut all, mut next) = (Vec::new(), None::<String>);
        loop {
            let page = self.list_page(kind, scope, PAGE, next.as_deref()).await?;
            all.extend(page.items);
            next = page.next;
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Creates an object, as field manager `manager`; returns it as stored.
    ///
    /// # Errors
    /// [`ClusterError::AlreadyExists`].
    pub async fn create(
        &self,
        kind: &Served,
        key: &ObjectKey,
        manager: &str,
        body: &Node,
    ) -> Result<Node, ClusterError> {
        let namespace = key.namespace.as_deref();
        let asked = RequestSubject::of("create", kind, namespace);
        let mut query = Query::default();
        query.add("fieldManager", Some(manager));
        query.add("fieldValidation", Some(STRICT));
        query.add("dryRun", self.dry_run.then_some("All"));
        let path = query.onto(kind.collection_path(namespace));
        let answer = self
            .node(&asked, Method::POST, &path, Some((JSON, body)))
            .await;
        self.wrote(kind, key, answer)
    }

    /// Server-side apply, as field manager `manager`; returns the object as stored.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`]: its causes name the managers if other managers own fields; it has no causes if the
    /// resourceVersion in `body` is not the object's.
    pub async fn apply(
        &self,
        kind: &Served,
        key: &ObjectKey,
        manager: &str,
        force: bool,
        body: &Node,
    ) -> Result<Node, ClusterError> {
        let asked = RequestSubject::of("patch", kind, key.namespace.as_deref());
        let mut query = Query::default();
        query.add("fieldManager", Some(manager));
        query.add("force", force.then_some("true"));
        query.add("fieldValidation", Some(STRICT));
        query.add("dryRun", self.dry_run.then_some("All"));
        let path = query.onto(kind.object_path(key, None));
        let answer = self
            .node(&asked, Method::PATCH, &path, Some((APPLY_PATCH, body)))
            .await;
        self.wrote(kind, key, answer)
    }

    /// JSON merge patch of the object or of a subresource such as `status`; returns the object as stored.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] if `body` has a resourceVersion that is not the object's.
    pub async fn merge_patch(
        &self,
        kind: &Served,
        key: &ObjectKey,
        subresource: Option<&str>,
        manager: &str,
        body: &Node,
    ) -> Result<Node, ClusterError> {
        let asked = RequestSubject::of("patch", kind, key.namespace.as_deref());
        let mut query = Query::default();
        query.add("fieldManager", Some(manager));
        let path = query.onto(kind.object_path(key, subresource));
        let answer = self
            .node(&asked, Method::PATCH, &path, Some((MERGE_PATCH, body)))
            .await;
        self.wrote(kind, key, answer)
    }

    /// Deletes an object. Returns it if finalizers keep it, `None` if it is gone.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] if the preconditions do not match.
    pub async fn delete(
        &self,
        kind: &Served,
        key: &ObjectKey,
        how: &Deletion<'_>,
    ) -> Result<Option<Node>, ClusterError> {
        let asked = RequestSubject::of("delete", kind, key.namespace.as_deref());
        let path = kind.object_path(key, None);
        let answer = self
            .node(&asked, Method::DELETE, &path, Some((JSON, &how.body())))
            .await?;
        self.reach.note_deleted(|| find::path(kind, key));
        let is_status = answer.get("kind").and_then(Node::as_str) == Some("Status");
        let stays = answer.meta("deletionTimestamp").is_some();
        Ok((!is_status && stays).then_some(answer))
    }

    /// Remembers the response to a write, which reveals a restored etcd. An Event does not: it expires.
    fn wrote(
        &self,
        kind: &Served,
        key: &ObjectKey,
        answer: Result<Node, ClusterError>,
    ) -> Result<Node, ClusterError> {
        if let Ok(object) = &answer
            && !kind.expires()
        {
            self.reach.note_written(|| find::path(kind, key), object);
        }
        answer
    }

    /// Returns how the API server serves a kind of that group and version; `None` if it does not.
    ///
    /// # Errors
    /// Any failure of the request.
    pub async fn discover(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Served>, ClusterError> {
        let asked = RequestSubject::discovery(group);
        let path = served::api_path(group, version);
        let list = match self.node(&asked, Method::GET, &path, None).await {
            Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => return Ok(None),
            other => other?,
        };
        let resources = list
            .get("resources")
            .and_then(Node::as_list)
            .unwrap_or_default();
        Ok(resources
            .iter()
            .find_map(|resource| served::read_resource(resource, group, version, kind)))
    }

    /// Returns the versions in which a group is served, the preferred one first; empty if the group is not served.
    ///
    /// # Errors
    /// Any failure of the request.
    pub async fn versions(&self, group: &str) -> Result<Vec<String>, ClusterError> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let asked = RequestSubject::discovery(group);
        let answer = match self
            .node(&asked, Method::GET, &format!("/apis/{group}"), None)
            .await
        {
            Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => return Ok(Vec::new()),
            other => other?,
        };
        let version = |node: &Node| {
            node.get("version")
                .and_then(Node::as_str)
                .map(str::to_owned)
        };
        let listed = answer
            .get("versions")
            .and_then(Node::as_list)
            .unwrap_or_default()
            .iter()
            .filter_map(version);
        let mut versions: Vec<String> = answer
            .get("preferredVersion")
            .and_then(version)
            .into_iter()
            .chain(listed)
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        versions.retain(|version| seen.insert(version.clone()));
        Ok(versions)
    }

    async fn node(
        &self,
        asked: &RequestSubject<'_>,
        method: Method,
        path: &str,
        body: Option<(&str, &Node)>,
    ) -> Result<Node, ClusterError> {
        RequestSubject::parse(&self.text(asked, method, path, body).await?, self.in_part)
    }

    async fn text(
        &self,
        asked: &RequestSubject<'_>,
        method: Method,
        path: &str,
        body: Option<(&str, &Node)>,
    ) -> Result<String, ClusterError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, JSON);
        let mut bytes = Vec::new();
        if let Some((content_type, node)) = body {
            request = request.header(header::CONTENT_TYPE, content_type);
            bytes = serde_json::to_vec(node).map_err(|_| asked.unwritable())?;
        }
        self.send(asked, request, bytes).await
    }

    /// Sends a request in its turn, within the deadline, and reports to the breaker whether it was answered.
    async fn send(
        &self,
        asked: &RequestSubject<'_>,
        request: Builder,
        body: Vec<u8>,
    ) -> Result<String, ClusterError> {
        let request = request.body(body).map_err(|_| asked.unwritable())?;
        // Not `request::<Node>`: kube logs the complete text of a response that it cannot parse.
        let sent = |request| {
            let answer = self.client.request_text(request);
            answer.map_err(|error| asked.sort(error))
        };
        let until = Instant::now() + self.patience;
        loop {
            let answer = self.answered(request.clone(), sent).await;
            let Err(ClusterError::TooManyRequests { retry_after }) = &answer else {
                return answer;
            };
            let pause = retry_after.unwrap_or(THROTTLED);
            if Instant::now() + pause > until {
                return answer;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits for the turn of a request, has `sent` send it within the deadline, and reports to the breaker whether it was
    /// answered.
    async fn answered<B, T, F>(
        &self,
        mut request: Request<B>,
        sent: impl FnOnce(Request<B>) -> F,
    ) -> Result<T, ClusterError>
    where
        F: Future<Output = Result<T, ClusterError>>,
    {
        if let Some(turn) = self.turn().await {
            request.extensions_mut().insert(turn);
        }
        let answer = in_time(sent(request)).await;
        self.reach.heard(is_missed(&answer));
        answer
    }
}

/// Returns the response, if it arrives within [`DEADLINE`].
async fn in_time<T>(
    answer: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(ClusterError::Unavailable(format!(
            "no answer within {} s",
            DEADLINE.as_secs()
        ))),
    }
}

impl Deletion<'_> {
    fn body(&self) -> Node {
        let propagation = match self.propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let conditions = [
            ("uid", self.uid),
            ("resourceVersion", self.resource_version),
        ];
        let conditions = conditions
            .into_iter()
            .filter_map(|(field, value)| Some((field.into(), Node::from(value?))));
        let mut fields = vec![
            ("apiVersion".into(), Node::from("v1")),
            ("kind".into(), Node::from("DeleteOptions")),
            ("propagationPolicy".into(), Node::from(propagation)),
        ];
        if self.uid.is_some() || self.resource_version.is_some() {
            fields.push(("preconditions".into(), Node::Map(conditions.collect())));
        }
        Node::Map(fields.into_iter().collect())
    }
}
