//! Reads the parts of a bundle. Each request stands alone: what is refused, absent or late is noted, and the others continue.

use std::{collections::BTreeMap, io, net::SocketAddr, time::Duration};

use http::Request as HttpRequest;
use kube::Client;
use orkestra_language::api::names;
use orkestra_plan::rbac::{CLAIMS_NAMESPACE, SERVICE_ACCOUNT};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{Bundle, BundleRequest, redact};

/// The deadline of a request.
const DEADLINE: Duration = Duration::from_secs(10);
/// The most objects of a kind.
const OBJECTS: u32 = 1000;
/// The most bytes of a log, and of an answer of a controller.
const BYTES: usize = 4 << 20;
/// The port of the metrics in the shipped Deployment.
const PORT: u16 = 8080;
/// Our own kinds, with those that tell of operators first.
const OWN: [&str; 3] = ["katalogs", "komposers", "motifs"];

/// Gathers a bundle from the cluster.
pub async fn gather(client: &Client, request: &BundleRequest) -> Bundle {
    let mut gatherer = Gatherer {
        client,
        request,
        bundle: Bundle::default(),
    };
    gatherer.versions().await;
    let katalogs = gatherer.own_kinds().await;
    gatherer.operated(&katalogs).await;
    gatherer.leases().await;
    gatherer.events().await;
    let pods = gatherer.workloads().await;
    gatherer.metrics(&pods).await;
    gatherer.logs(&pods).await;
    gatherer.bundle
}

struct Gatherer<'a> {
    client: &'a Client,
    request: &'a BundleRequest,
    bundle: Bundle,
}

/// A kind in a path.
#[derive(Clone, Copy)]
struct PathKind<'k> {
    /// `/apis/apps/v1`.
    root: &'k str,
    plural: &'k str,
}

impl Gatherer<'_> {
    async fn versions(&mut self) {
        if let Some(version) = self
            .read("/version", "get the version of the API server")
            .await
        {
            self.add_json(
                "versions.json",
                &json!({ "ork": orkestra_ground::VERSION, "kubernetes": version }),
            );
        }
    }

    /// Adds our own kinds with their CRDs; the Katalogs and Komposers.
    async fn own_kinds(&mut self) -> Vec<Value> {
        let mut declaring = Vec::new();
        for plural in OWN {
            self.definition(&format!("{plural}.{}", names::GROUP)).await;
            let root = format!("/apis/{}/{}", names::GROUP, names::VERSION);
            let kind = PathKind {
                root: &root,
                plural,
            };
            let objects = self.list_watched(kind, "").await;
            for object in &objects {
                let name = file_name(object);
                self.add_json(
                    &format!("{plural}/{name}.json"),
                    &redact::object(object.clone()),
                );
            }
            if plural != "motifs" {
                declaring.extend(objects);
            }
        }
        declaring
    }

    /// Adds the CRDs of the kinds that the Katalogs operate, and how far their custom resources are.
    async fn operated(&mut self, katalogs: &[Value]) {
        let mut kinds = BTreeMap::new();
        for katalog in katalogs {
            for kind in katalog["status"]["operated"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let field = |name: &str| kind[name].as_str().unwrap_or_default().to_owned();
                kinds.insert((field("group"), field("plural")), field("version"));
            }
        }
        for ((group, plural), version) in kinds {
            // A kind of Kubernetes has no CRD, and its objects are not ours to show.
            if !group.contains('.') || group.ends_with(".k8s.io") {
                continue;
            }
            self.definition(&format!("{plural}.{group}")).await;
            let root = format!("/apis/{group}/{version}");
            let kind = PathKind {
                root: &root,
                plural: &plural,
            };
            let objects = self.list_watched(kind, "").await;
            let kept: Vec<Value> = objects.iter().map(redact::instance).collect();
            self.add_json(&format!("instances/{plural}.{group}.json"), &kept.into());
        }
    }

    async fn definition(&mut self, name: &str) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        if let Some(crd) = self
            .read(&path, &format!("get customresourcedefinition {name}"))
            .await
        {
            self.add_json(&format!("crds/{name}.json"), &redact::definition(crd));
        }
    }

    async fn leases(&mut self) {
        let kind = PathKind {
            root: "/apis/coordination.k8s.io/v1",
            plural: "leases",
        };
        for namespace in [self.request.system.clone(), CLAIMS_NAMESPACE.to_owned()] {
            let leases = self.list(kind, Some(&namespace), "").await;
            let leases: Vec<Value> = leases.into_iter().map(redact::object).collect();
            if !leases.is_empty() {
                self.add_json(&format!("leases/{namespace}.json"), &leases.into());
            }
        }
    }

    async fn events(&mut self) {
        let kind = PathKind {
            root: "/apis/events.k8s.io/v1",
            plural: "events",
        };
        let query = format!(
            "&fieldSelector=reportingController%3D{}",
            names::EVENT_CONTROLLER
        );
        let events = self.list_watched(kind, &query).await;
        let mut events: Vec<Value> = events.into_iter().map(redact::object).collect();
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        self.add_json("events.json", &events.into());
    }

    /// Adds the Deployments and Pods of the controller; the Pods.
    async fn workloads(&mut self) -> Vec<Value> {
        let query = format!("&labelSelector=app.kubernetes.io%2Fname%3D{SERVICE_ACCOUNT}");
        let mut pods = Vec::new();
        for (root, plural) in [("/apis/apps/v1", "deployments"), ("/api/v1", "pods")] {
            let namespace = self.request.system.clone();
            let objects = self
                .list(PathKind { root, plural }, Some(&namespace), &query)
                .await;
            for object in &objects {
                let path = format!("{plural}/{}.json", file_name(object));
                self.add_json(&path, &redact::object(object.clone()));
            }
            if plural == "pods" {
                pods = objects;
            }
        }
        pods
    }

    /// Adds metrics and the page of operators: of the given address, else of each Pod through the API server.
    async fn metrics(&mut self, pods: &[Value]) {
        if let Some(address) = self.request.runtime {
            for (path, file) in [("/metrics", "metrics.txt"), ("/katalog", "katalog.json")] {
                match fetch(address, path).await {
                    Ok(text) => self.add(&format!("runtime/{file}"), text),
                    Err(error) => self
                        .bundle
                        .note(&format!("get http://{address}{path}"), &error.to_string()),
                }
            }
            return;
        }
        for pod in pods {
            let (system, name) = (&self.request.system, text(pod, "/metadata/name"));
            let path = format!("/api/v1/namespaces/{system}/pods/{name}:{PORT}/proxy/metrics");
            let what = format!("get pods/proxy {name} in namespace {system} (or use --runtime)");
            if let Some(metrics) = self.ask(&path, &what).await {
                self.add(&format!("pods/{name}/metrics.txt"), metrics);
            }
        }
    }

    async fn logs(&mut self, pods: &[Value]) {
        for pod in pods {
            let name = text(pod, "/metadata/name").to_owned();
            let statuses = pod
                .pointer("/status/containerStatuses")
                .and_then(Value::as_array);
            for status in statuses.into_iter().flatten() {
                let container = text(status, "/name");
                self.log(&name, container, false).await;
                if status["restartCount"].as_u64().unwrap_or_default() > 0 {
                    self.log(&name, container, true).await;
                }
            }
        }
    }

    async fn log(&mut self, pod: &str, container: &str, previous: bool) {
        let BundleRequest { system, lines, .. } = self.request;
        let path = format!(
            "/api/v1/namespaces/{system}/pods/{pod}/log?container={container}&tailLines={lines}&limitBytes={BYTES}&previous={previous}"
        );
        let what = format!("get pods/log {pod} in namespace {system}");
        if let Some(log) = self.ask(&path, &what).await {
            let suffix = if previous { ".previous" } else { "" };
            self.add(
                &format!("pods/{pod}/{container}{suffix}.log"),
                redact::log(&log),
            );
        }
    }

    /// Lists a kind in the namespaces of the request.
    async fn list_watched(&mut self, kind: PathKind<'_>, query: &str) -> Vec<Value> {
        let mut objects = Vec::new();
        if self.request.namespaces.is_empty() {
            return self.list(kind, None, query).await;
        }
        for namespace in self.request.namespaces.clone() {
            objects.extend(self.list(kind, Some(&namespace), query).await);
        }
        objects
    }

    async fn list(
        &mut self,
        kind: PathKind<'_>,
        namespace: Option<&str>,
        query: &str,
    ) -> Vec<Value> {
        let PathKind { root, plural } = kind;
        let place = namespace.map(|namespace| format!("/namespaces/{namespace}"));
        let path = format!(
            "{root}{}/{plural}?limit={OBJECTS}{query}",
            place.unwrap_or_default()
        );
        let everywhere = || "all namespaces".to_owned();
        let place = namespace.map_or_else(everywhere, |namespace| format!("namespace {namespace}"));
        let group = root
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/");
        let what = format!("list {plural} ({group}) in {place}");
        let Some(mut list) = self.read(&path, &what).await else {
            return Vec::new();
        };
        if !text(&list, "/metadata/continue").is_empty() {
            self.bundle.note(
                &what,
                &format!("truncated: only the first {OBJECTS} are included"),
            );
        }
        let (version, kind) = (
            list["apiVersion"].clone(),
            text(&list, "/kind").trim_end_matches("List").to_owned(),
        );
        let mut items = match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        for item in &mut items {
            if item.is_object() {
                item["apiVersion"] = version.clone();
                item["kind"] = kind.clone().into();
            }
        }
        items
    }

    /// Reads JSON.
    async fn read(&mut self, path: &str, what: &str) -> Option<Value> {
        let text = self.ask(path, what).await?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.bundle
                    .note(what, &format!("the answer is not JSON: {error}"));
                None
            }
        }
    }

    /// Reads a text; none if it cannot be had, which is noted.
    async fn ask(&mut self, path: &str, what: &str) -> Option<String> {
        let why = match HttpRequest::get(path).body(Vec::new()) {
            Err(error) => error.to_string(),
            Ok(get) => match timeout(DEADLINE, self.client.request_text(get)).await {
                Ok(Ok(text)) => return Some(text),
                Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                    format!("missing permission: {}", status.message)
                }
                Ok(Err(kube::Error::Api(status))) => status.message.clone(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", DEADLINE.as_secs()),
            },
        };
        self.bundle.note(what, &why);
        None
    }

    fn add_json(&mut self, path: &str, value: &Value) {
        // A value always has a text.
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.add(path, text + "\n");
    }

    fn add(&mut self, path: &str, text: String) {
        self.bundle.add(path.to_owned(), text, self.request.limit);
    }
}

/// The body of a page of a controller.
async fn fetch(address: SocketAddr, path: &str) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        // HTTP/1.0: the body ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: */*\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(BYTES as u64).read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let answer: io::Result<Vec<u8>> = timeout(DEADLINE, exchange).await.map_err(late)?;
    let answer = String::from_utf8_lossy(&answer?).into_owned();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("it is not an HTTP response"))?;
    let line = head.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(io::Error::other(format!("the response is {line}")))
    }
}

/// `namespace_name`, or the name of an object of the cluster.
fn file_name(object: &Value) -> String {
    let [namespace, name] = ["/metadata/namespace", "/metadata/name"].map(|at| text(object, at));
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}_{name}")
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
