//! Logs and pages of Pods, through the API server: with the caller's own permissions, and without a connection of their own.

use futures::{AsyncBufRead, TryFutureExt as _};
use http::{HeaderValue, Method, Request, header};
use orkestra_object::{ObjectKey, value::Node};

use super::{
    Cluster, ClusterError, JSON, RawResponse, Served, error::RequestSubject, in_time, served::Query,
};
use crate::client::credentials;

/// How a Pod's page is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePort {
    /// The number of the port.
    pub number: u16,
    /// Whether it serves HTTPS.
    pub tls: bool,
}

/// Which lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The container; that of the Pod if it has only one.
    pub container: Option<String>,
    /// Whether the log is followed until the container ends.
    pub follow: bool,
    /// Whether it is the log of the container that ended last.
    pub previous: bool,
    /// The last lines; all if there is none.
    pub tail: Option<u32>,
    /// Only lines of the last seconds.
    pub since_seconds: Option<u64>,
}

impl Cluster {
    /// Opens the log of a Pod. There is no deadline after the first byte: a log may be followed.
    ///
    /// # Errors
    /// [`ClusterError::Forbidden`] without the permission to get `pods/log`.
    pub async fn log(
        &self,
        pod: &ObjectKey,
        wanted: &LogQuery,
    ) -> Result<impl AsyncBufRead + Send + use<>, ClusterError> {
        let asked = RequestSubject::of_subresource("get", "", "pods/log", pod.namespace.as_deref());
        let LogQuery {
            container,
            follow,
            previous,
            tail,
            since_seconds,
        } = wanted;
        let mut query = Query::default();
        query.add("container", container.as_deref());
        query.add("follow", follow.then_some("true"));
        query.add("previous", previous.then_some("true"));
        query.add("tailLines", tail.map(|n| n.to_string()).as_deref());
        let since = since_seconds.map(|seconds| seconds.to_string());
        query.add("sinceSeconds", since.as_deref());
        let request = Request::get(query.onto(pods().object_path(pod, Some("log"))))
            // The layer that decompresses cannot separate compressed lines.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Vec::new())
            .map_err(|_| asked.unwritable())?;
        let body = self.client.request_stream(request);
        in_time(body.map_err(|error| asked.sort(error))).await
    }

    /// Returns the response to a GET of a page of a Pod, whatever its status, through the API server's proxy. At most `longest` bytes
    /// of it are read.
    ///
    /// The API server keeps the caller's credentials for itself. The Pod gets `token`, or without one the bearer token of the
    /// kubeconfig, if it has one, in a header of our own.
    ///
    /// # Errors
    /// [`ClusterError::Forbidden`] without the permission to get `pods/proxy`.
    pub async fn page(
        &self,
        pod: &ObjectKey,
        port: &PagePort,
        path: &str,
        token: Option<&str>,
        longest: usize,
    ) -> Result<RawResponse, ClusterError> {
        let namespace = pod.namespace.as_deref();
        let asked = RequestSubject::of_subresource("get", "", "pods/proxy", namespace);
        let scheme = if port.tls { "https:" } else { "" };
        let target = ObjectKey {
            namespace: pod.namespace.clone(),
            name: format!("{scheme}{}:{}", pod.name, port.number).into(),
        };
        let at = format!("{}{path}", pods().object_path(&target, Some("proxy")));
        let credentials = match token {
            Some(token) => HeaderValue::try_from(format!("Bearer {token}")),
            None => Ok(credentials::FORWARD),
        };
        let mut credentials = credentials.map_err(|_| asked.unwritable())?;
        credentials.set_sensitive(true);
        let request = Request::get(at)
            .header(header::ACCEPT, "*/*")
            .header(credentials::HEADER, credentials)
            .body(kube::client::Body::empty())
            .map_err(|_| asked.unwritable())?;
        let answer = self.read_raw(&asked, request, longest).await?;
        match refusal(&answer) {
            Some(status) => Err(asked.sort_refusal(&status)),
            None => Ok(answer),
        }
    }

    /// Returns a token of a service account that expires after `seconds`.
    ///
    /// # Errors
    /// [`ClusterError::Forbidden`] without the permission to create `serviceaccounts/token`.
    pub async fn token(&self, account: &ObjectKey, seconds: u32) -> Result<String, ClusterError> {
        let namespace = account.namespace.as_deref();
        let asked =
            RequestSubject::of_subresource("create", "", "serviceaccounts/token", namespace);
        let accounts = Served::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
        let body = Node::object([
            ("apiVersion", Node::from("authentication.k8s.io/v1")),
            ("kind", Node::from("TokenRequest")),
            (
                "spec",
                Node::object([("expirationSeconds", Node::from(i64::from(seconds)))]),
            ),
        ]);
        let path = accounts.object_path(account, Some("token"));
        let answer = self.node(&asked, Method::POST, &path, Some((JSON, &body)));
        let answer = answer.await?;
        let token = answer
            .get("status")
            .and_then(|status| status.get("token")?.as_str());
        let missing =
            || ClusterError::Unavailable("the response to the TokenRequest has no token".into());
        token.map(str::to_owned).ok_or_else(missing)
    }
}

fn pods() -> Served {
    Served::namespaced("", "v1", "Pod", "pods")
}

/// Returns the `Status` of the API server, if it answered instead of the Pod.
fn refusal(answer: &RawResponse) -> Option<Node> {
    if answer.status.is_success() {
        return None;
    }
    let status: Node = serde_json::from_slice(answer.body.as_ref()?).ok()?;
    let text = |field| status.get(field).and_then(Node::as_str);
    (text("kind") == Some("Status") && text("apiVersion") == Some("v1")).then_some(status)
}
