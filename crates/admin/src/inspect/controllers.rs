//! The Pods of the controller, and their pages behind the API server's proxy.

use orkestra_cluster::requests::{ClusterError, PagePort};
use orkestra_object::{
    GroupKind, ObjectKey,
    value::{Node, Path, Projection},
};
use orkestra_plan::rbac::SERVICE_ACCOUNT;
use serde_json::Value;

use super::{
    Reader, Unavailable,
    reader::{Objects, Wanted},
};

/// The port of the pages in the shipped Deployment.
const PORT: u16 = 8080;
/// The name of that port.
const PORT_NAME: &str = "http";
/// The setting by which pages are served over HTTPS: a flag, and its environment variable.
const TLS: [&str; 2] = ["--tls-cert-file", "ORK_TLS_CERT_FILE"];
/// The most Pods of an installation.
const PODS: usize = 50;
/// The most bytes of a page.
const BYTES: usize = 8 << 20;
/// How long a token of a service account is valid: the shortest time that the API server permits.
const TOKEN_SECONDS: u32 = 600;

/// The installation whose Pods are read, and as whom.
#[derive(Clone, Debug)]
pub struct Installation {
    /// Its namespace.
    pub namespace: String,
    /// The service account whose token the pages get; without one, they get the bearer token of the kubeconfig.
    pub account: Option<ObjectKey>,
}

/// A Pod of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The names of its containers.
    pub containers: Vec<String>,
    /// The port of its pages.
    pub port: PagePort,
}

impl Reader {
    /// Returns the Pods of the controller in a namespace, and what is missing of them.
    pub async fn controller_pods(
        &self,
        namespace: &str,
    ) -> (Vec<ControllerPod>, Option<Unavailable>) {
        let Some(kind) = self.kinds.of(&GroupKind::parse("Pod")) else {
            return (Vec::new(), None);
        };
        let selector = format!("app.kubernetes.io/name={SERVICE_ACCOUNT}");
        let projection = Projection::new(&[
            Path::of_fields(["metadata", "name"]),
            Path::of_fields(["metadata", "namespace"]),
            Path::of_fields(["spec", "containers"]),
        ]);
        let wanted = Wanted {
            kind,
            selector: Some(&selector),
            fields: None,
            projection: &projection,
            keep: &|_| true,
            most: PODS,
        };
        let (Objects { items, .. }, missing) = self.list_in(wanted, Some(namespace)).await;
        let mut pods: Vec<ControllerPod> = items.iter().map(pod).collect();
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        (pods, missing)
    }

    /// Returns the token that pages get: that of the service account, if one is named.
    ///
    /// # Errors
    /// [`Unavailable`] with the missing permission.
    pub async fn page_token(&self, of: &Installation) -> Result<Option<String>, Unavailable> {
        let Some(account) = &of.account else {
            return Ok(None);
        };
        let token = self.cluster.token(account, TOKEN_SECONDS).await;
        let what = || format!("pages that need a token of service account {account}");
        token
            .map(Some)
            .map_err(|error| Unavailable::of(what(), &error))
    }

    /// Returns a page of a Pod.
    ///
    /// # Errors
    /// [`Unavailable`]: the API server or the Pod refused it, with what is missing.
    pub async fn page(
        &self,
        pod: &ControllerPod,
        path: &str,
        token: Option<&str>,
    ) -> Result<String, Unavailable> {
        let what = || format!("{path} of Pod {}", pod.key.name);
        let answer = self
            .cluster
            .page(&pod.key, &pod.port, path, token, BYTES)
            .await;
        let answer = answer.map_err(|error| Unavailable::of(what(), &error))?;
        let refused = |message: String| Unavailable {
            what: what(),
            permission: None,
            message,
        };
        let Some(body) = answer.body else {
            return Err(refused(format!("it is larger than {} MiB", BYTES >> 20)));
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        if answer.status.is_success() {
            return Ok(body);
        }
        let why = explained(answer.status.as_u16(), &body);
        Err(refused(why))
    }
}

/// Returns why a Pod refused a page.
fn explained(status: u16, body: &str) -> String {
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |field: &str| error[field].as_str().filter(|text| !text.is_empty());
    if status == 401 && text("error").is_some_and(|error| error.ends_with("is required")) {
        return "the page needs a token, and the kubeconfig has none: name a service account with `--service-account NAMESPACE/NAME`"
            .to_owned();
    }
    match (text("error"), text("hint")) {
        (Some(error), Some(hint)) => format!("{error}: {hint}"),
        (Some(error), None) => error.to_owned(),
        _ => format!("the Pod answered with HTTP status {status}"),
    }
}

fn pod(object: &Node) -> ControllerPod {
    let containers = object.get("spec").and_then(|spec| spec.get("containers"));
    let containers = containers.and_then(Node::as_list).unwrap_or_default();
    let names = containers
        .iter()
        .filter_map(|one| one.get("name")?.as_str());
    ControllerPod {
        key: ObjectKey::of(object),
        containers: names.map(str::to_owned).collect(),
        port: PagePort {
            number: containers.iter().find_map(port_of).unwrap_or(PORT),
            tls: containers.iter().any(serves_tls),
        },
    }
}

fn port_of(container: &Node) -> Option<u16> {
    let ports = container.get("ports")?.as_list()?;
    let named = ports
        .iter()
        .find(|port| port.get("name").and_then(Node::as_str) == Some(PORT_NAME))?;
    u16::try_from(named.get("containerPort")?.as_i64()?).ok()
}

fn serves_tls(container: &Node) -> bool {
    let [flag, variable] = TLS;
    let list = |field: &str| {
        let list = container.get(field).and_then(Node::as_list);
        list.unwrap_or_default().iter()
    };
    let mut arguments = list("args").chain(list("command")).filter_map(Node::as_str);
    let mut variables = list("env").filter_map(|one| one.get("name")?.as_str());
    arguments.any(|argument| argument.starts_with(flag)) || variables.any(|name| name == variable)
}

/// An installation without Pods is an error of the namespace.
pub(crate) fn no_pods(namespace: &str) -> ClusterError {
    ClusterError::NotFound(format!(
        "no Pod of the controller is in namespace {namespace}: name its namespace with `--system-namespace`"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_port_of_the_pages_is_that_of_the_pod() {
        let of = |container: Value| {
            let object =
                json!({ "metadata": { "name": "a" }, "spec": { "containers": [container] } });
            pod(&Node::from(&object)).port
        };
        let plain = |number| PagePort { number, tls: false };
        assert_eq!(of(json!({ "name": "orkestra" })), plain(PORT));
        let ports = json!([{ "name": "probes", "containerPort": 8081 }, { "name": "http", "containerPort": 9090 }]);
        assert_eq!(
            of(json!({ "name": "orkestra", "ports": ports })),
            plain(9090)
        );
        for secure in [
            json!({ "args": ["controller", "--tls-cert-file=/tls/tls.crt"] }),
            json!({ "env": [{ "name": "ORK_TLS_CERT_FILE", "value": "/tls/tls.crt" }] }),
        ] {
            assert!(of(secure).tls);
        }
        // A port that does not exist.
        let ports = json!([{ "name": "http", "containerPort": 99999 }]);
        assert_eq!(of(json!({ "ports": ports })), plain(PORT));
    }

    #[test]
    fn a_refusal_of_a_page_says_what_to_do() {
        let body = json!({ "error": "a bearer token is required", "hint": "send it" }).to_string();
        assert!(explained(401, &body).contains("--service-account"));
        let body =
            json!({ "error": "user \"clerk\" cannot get path", "hint": "grant a ClusterRole" })
                .to_string();
        assert_eq!(
            explained(403, &body),
            "user \"clerk\" cannot get path: grant a ClusterRole"
        );
        assert_eq!(
            explained(500, "<html>"),
            "the Pod answered with HTTP status 500"
        );
    }
}
