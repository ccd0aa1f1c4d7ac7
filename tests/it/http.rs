//! The HTTP server of a running controller: probes under a flood of connections, clients with and without a token, and responses
//! that match the `OpenAPI` document.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{eventually, free_port, spawn_guarded};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::scenario::{LIMIT, Rate, Scenario, ask, ask_as, input};
use crate::waters;

/// The timeout of a probe. The kubelet waits for one second, but the machine runs other tests at the same time.
const PROBE: Duration = Duration::from_secs(10);
/// The number of connections of the flood: more than a port accepts.
const FLOOD: usize = 300;

/// Opens connections that send nothing, or an incomplete request head.
async fn flood(address: &str) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for serial in 0..FLOOD {
        let mut stream = TcpStream::connect(address).await?;
        if serial % 2 == 0 {
            // The server may have closed the connection already.
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nX-Slow: ").await;
        }
        streams.push(stream);
    }
    Ok(streams)
}

async fn probe(address: &str, path: &str) -> Result<()> {
    let answer = timeout(PROBE, ask(address, path)).await;
    let answer = answer.with_context(|| format!("{path} of {address} is not answered"))??;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_keep_no_probe_from_its_answer() -> Result<()> {
    let mut scenario = Scenario::new("flood").await?;
    let probes = format!("127.0.0.1:{}", free_port()?);
    scenario.arguments = vec!["--probe-listen".to_owned(), probes.clone()];
    scenario.launch().await?;
    let main = scenario.listen.clone();
    let on_main = flood(&main).await?;
    probe(&main, "/livez").await?;
    probe(&probes, "/livez").await?;
    let on_probes = flood(&probes).await?;
    for _ in 0..20 {
        probe(&probes, "/livez").await?;
    }
    probe(&main, "/livez").await?;
    drop((on_main, on_probes));
    // The port of the probes serves no other paths.
    for path in ["/metrics", "/katalog"] {
        let answer = ask(&probes, path).await?;
        ensure!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
    scenario.check_running()
}

/// Requests a path with a token, if there is one; returns the status of the response.
async fn status(listen: &str, path: &str, token: Option<&str>) -> Result<String> {
    let answer = ask_as(listen, path, token).await?;
    let status = answer.split(' ').nth(1);
    Ok(status.context("no HTTP")?.to_owned())
}

/// Creates a service account; returns a token of it.
fn account(scenario: &Scenario, name: &str) -> Result<String> {
    scenario.kubectl(&["create", "serviceaccount", name])?;
    let token = scenario.kubectl(&["create", "token", name])?;
    Ok(token.trim().to_owned())
}

/// Binds a shipped role to a service account, and waits until the API server applies the binding.
async fn bind(scenario: &Scenario, role: &str, name: &str, path: &str) -> Result<()> {
    let namespace = &scenario.namespace;
    let account = format!("--serviceaccount={namespace}:{name}");
    let role = format!("--clusterrole={role}");
    let binding = format!("{namespace}-{name}");
    scenario.kubectl(&["create", "clusterrolebinding", &binding, &role, &account])?;
    let user = format!("--as=system:serviceaccount:{namespace}:{name}");
    eventually("the binding is in force", LIMIT, async || {
        let answer = scenario.kubectl(&["auth", "can-i", "get", path, &user]);
        Ok(answer.is_ok().then_some(()))
    })
    .await
}

fn shipped(path: &str) -> Result<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join("config/base").join(path)).context("no shipped file")
}

/// Applies the shipped roles of readers, without bindings. The roles are cluster-scoped, so several tests may create them at once:
/// server-side apply accepts that.
fn apply_roles_of_readers(scenario: &Scenario) -> Result<()> {
    let manifests = serde_saphyr::from_multiple::<Value>(&shipped("rbac.yaml")?)?;
    let is_reader = |one: &&Value| {
        let name = one["metadata"]["name"].as_str();
        one["kind"] == "ClusterRole" && name.is_some_and(|name| name.ends_with("-reader"))
    };
    let roles: Vec<&Value> = manifests.iter().filter(is_reader).collect();
    ensure!(roles.len() == 2, "{roles:?}");
    let roles = json!({ "apiVersion": "v1", "kind": "List", "items": roles }).to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    scenario.kubectl_with(&apply, Some(&roles)).map(drop)
}

/// A controller that listens on every address, and tokens of service accounts with and without the shipped roles.
struct Readers {
    scenario: Scenario,
    /// A token that may get metrics.
    prometheus: String,
    /// A token that may get pages.
    reader: String,
    /// A token that may get neither.
    visitor: String,
}

impl Readers {
    async fn new() -> Result<Self> {
        let mut scenario = Scenario::new("readers").await?;
        scenario.host = "0.0.0.0";
        scenario.arguments = vec!["--probe-listen".to_owned(), "off".to_owned()];
        scenario.grant(&input("depends/katalog.yaml")?).await?;
        apply_roles_of_readers(&scenario)?;
        let prometheus = account(&scenario, "prometheus")?;
        let reader = account(&scenario, "reader")?;
        let visitor = account(&scenario, "visitor")?;
        bind(
            &scenario,
            "orkestra-metrics-reader",
            "prometheus",
            "/metrics",
        )
        .await?;
        bind(&scenario, "orkestra-katalog-reader", "reader", "/katalog").await?;
        scenario.start().await?;
        Ok(Self {
            scenario,
            prometheus,
            reader,
            visitor,
        })
    }

    async fn status(&self, path: &str, token: Option<&str>) -> Result<String> {
        status(&self.scenario.listen, path, token).await
    }

    /// Checks that each token gets the paths that its role permits, and no others.
    async fn check_roles(&self) -> Result<()> {
        let [prometheus, reader, visitor] =
            [&self.prometheus, &self.reader, &self.visitor].map(|token| Some(token.as_str()));
        for (path, token, expected) in [
            ("/livez", None, "200"),
            ("/readyz", None, "200"),
            ("/metrics", None, "401"),
            ("/katalog", None, "401"),
            ("/katalog/pond/cr", None, "401"),
            ("/openapi/v3", None, "401"),
            ("/metrics", Some("no.such.token"), "401"),
            ("/metrics", visitor, "403"),
            ("/katalog", visitor, "403"),
            ("/metrics", prometheus, "200"),
            ("/katalog", prometheus, "403"),
            ("/metrics", reader, "403"),
            ("/katalog", reader, "200"),
            ("/katalog/nothing", reader, "404"),
        ] {
            let found = self.status(path, token).await?;
            ensure!(found == expected, "{path}: {found}, not {expected}");
        }
        let refusal = ask_as(&self.scenario.listen, "/katalog/shop", visitor).await?;
        let user = format!("system:serviceaccount:{}:visitor", self.scenario.namespace);
        ensure!(refusal.contains(&user), "{refusal}");
        ensure!(refusal.contains("nonResourceURLs"), "{refusal}");
        Ok(())
    }

    /// Sends many requests: the controller caches reviews of valid tokens, and limits the reviews of invalid ones.
    async fn flood(&self) -> Result<()> {
        let prometheus = Some(self.prometheus.as_str());
        for _ in 0..20 {
            ensure!(self.status("/metrics", prometheus).await? == "200");
        }
        let mut refused = 0;
        for serial in 0..2000 {
            if serial >= 60 && refused > 0 {
                break;
            }
            let token = format!("bad.token.{serial}");
            let found = self.status("/metrics", Some(&token)).await?;
            ensure!(found == "401" || found == "429", "{found}");
            refused += usize::from(found == "429");
        }
        ensure!(refused > 0, "all invalid tokens were reviewed");
        ensure!(self.status("/metrics", prometheus).await? == "200");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_and_pages_are_for_those_whom_the_api_server_knows_and_lets() -> Result<()> {
    let readers = Readers::new().await?;
    let (mark, start) = (Scenario::mark()?, Instant::now());
    readers.check_roles().await?;
    readers.flood().await?;
    let reviews = readers.scenario.requests_since(mark)?;
    let count = |resource: &str| {
        let one = reviews.iter().filter(|one| one.resource == resource);
        one.count()
    };
    let (tokens, access) = (count("tokenreviews"), count("subjectaccessreviews"));
    // The test sends four tokens, then invalid ones, of which at most ten in ten seconds are reviewed.
    ensure!(tokens >= 4, "{tokens} TokenReviews");
    ensure!(access >= 6, "{access} SubjectAccessReviews");
    for reviews in [tokens, access] {
        let rate = Rate::since(start, f64::from(u32::try_from(reviews)?));
        rate.ensure_at_most(Duration::from_secs(1), 16)?;
    }
    let log = readers.scenario.log();
    for token in [&readers.prometheus, &readers.reader, &readers.visitor] {
        ensure!(!log.contains(token.as_str()), "a token is in the log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_reviews_tokens_too_and_insecure_http_asks_for_none() -> Result<()> {
    let mut scenario = Scenario::new("followers").await?;
    scenario.grant(&input("depends/katalog.yaml")?).await?;
    apply_roles_of_readers(&scenario)?;
    let token = account(&scenario, "prometheus")?;
    bind(
        &scenario,
        "orkestra-metrics-reader",
        "prometheus",
        "/metrics",
    )
    .await?;
    // Without permissions on the Lease it stays a follower. A follower writes no objects, but must send TokenReviews.
    let namespace = scenario.namespace.clone();
    let start = |name: &str, more: &[&str]| {
        let port = free_port()?;
        let mut command = scenario.command_as(&scenario.identity);
        command
            .args(["controller", "--namespace", &namespace])
            .args(["--leader-elect-resource-namespace", &namespace])
            .args([
                "--listen",
                &format!("0.0.0.0:{port}"),
                "--probe-listen",
                "off",
            ])
            .args(more);
        let process = spawn_guarded(&command, &scenario.path(name))?;
        anyhow::Ok((process, format!("127.0.0.1:{port}")))
    };
    let (_follower, listen) = start("follower.log", &[])?;
    let found = eventually("the follower answers", LIMIT, async || {
        status(&listen, "/metrics", Some(&token)).await.map(Some)
    });
    ensure!(found.await? == "200");
    ensure!(status(&listen, "/metrics", None).await? == "401");

    let (open, listen) = start("open.log", &["--insecure-http"])?;
    let found = eventually("the second one answers", LIMIT, async || {
        status(&listen, "/katalog", None).await.map(Some)
    });
    ensure!(found.await? == "200");
    let said = open.log().matches("--insecure-http is set").count();
    ensure!(said == 1, "logged {said} times:\n{}", open.log());
    Ok(())
}

/// Validates a response against a schema of the committed document.
fn judge(document: &Value, schema: &str, answer: &Value) -> Result<()> {
    let mut document = document.clone();
    document["$ref"] = json!(format!("#/components/schemas/{schema}"));
    let validator = jsonschema::draft202012::new(&document)?;
    let errors: Vec<String> = (validator.iter_errors(answer))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    ensure!(errors.is_empty(), "{schema}: {errors:#?}\n{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_answers_are_as_the_openapi_document_says_and_lists_have_pages() -> Result<()> {
    let katalog = "depends/katalog.yaml";
    let scenario = Scenario::running("answers", &["kinds/crds.yaml"], katalog).await?;
    let bed = json!({ "bed": "stones", "colour": "blue" });
    waters::lake(&scenario, "deep", &bed).await?;
    for name in ["north", "south", "west"] {
        waters::pond(&scenario, name, &json!({ "colour": "green" })).await?;
    }
    for name in ["north", "south", "west"] {
        scenario.objects("ponds").until_ready(name).await?;
    }
    let document = scenario.page("/openapi/v3").await?;
    let committed: Value = serde_json::from_str(include_str!("../../docs/reference/openapi.json"))?;
    ensure!(document == committed);
    for (schema, path) in [
        ("Summary", "/katalog"),
        ("Operator", "/katalog/pond"),
        ("Health", "/katalog/pond/health"),
        ("Health", "/katalog/lake/health"),
        ("Instances", "/katalog/pond/cr"),
        ("Instances", "/katalog/pond/cr?field=spec.colour"),
        ("Instance", "/katalog/pond/cr/north"),
        ("Error", "/katalog/nothing"),
        ("Error", "/katalog/pond/cr/nothing"),
        ("Error", "/katalog/pond/cr?limit=0"),
        ("Error", "/katalog/pond/cr?limit=1&continue=nonsense"),
    ] {
        let answer = scenario.page(path).await?;
        judge(&document, schema, &answer).with_context(|| path.to_owned())?;
    }
    let north = scenario.page("/katalog/pond/cr/north").await?;
    let children = north["children"].as_object().context("no children")?;
    let rows = children.values().filter_map(Value::as_array).flatten();
    ensure!(rows.count() > 0, "{north}");

    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let path = format!("/katalog/pond/cr?limit=2&field=spec.colour{next}");
        let page = scenario.page(&path).await?;
        judge(&document, "Instances", &page)?;
        let items = page["items"].as_array().context("no items")?;
        ensure!(!items.is_empty() && items.len() <= 2, "{page}");
        for item in items {
            ensure!(item["value"] == "green", "{item}");
            seen.push(waters::text(item, "/name").to_owned());
        }
        ensure!(page["truncated"] == page["continue"].is_string(), "{page}");
        let Some(token) = page["continue"].as_str() else {
            break;
        };
        next = format!("&continue={token}");
    }
    ensure!(seen == ["north", "south", "west"], "{seen:?}");
    Ok(())
}

/// Checks that the API server accepts the shipped Deployment's Pods when it enforces the Pod Security Standard `restricted`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shipped_pods_are_restricted() -> Result<()> {
    let scenario = Scenario::new("restricted").await?;
    let namespace = scenario.namespace.clone();
    let label = "pod-security.kubernetes.io/enforce=restricted";
    scenario.kubectl(&["label", "namespace", &namespace, label])?;
    let manifests = serde_saphyr::from_multiple::<Value>(&shipped("deployment.yaml")?)?;
    let deployment = manifests.iter().find(|one| one["kind"] == "Deployment");
    let template = &deployment.context("no Deployment")?["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"],
    });
    pod["metadata"]["name"] = json!("orkestra");
    let create = |pod: &Value| {
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        scenario.kubectl_with(&arguments, Some(&pod.to_string()))
    };
    create(&pod)?;
    pod["spec"]["containers"][0]["securityContext"] = json!({});
    let refusal = create(&pod).err().context("the standard is not enforced")?;
    ensure!(refusal.to_string().contains("restricted"), "{refusal}");
    // The other shipped manifests are accepted without changes.
    for file in [
        "networkpolicy.yaml",
        "deployment.yaml",
        "service.yaml",
        "poddisruptionbudget.yaml",
    ] {
        let manifests = shipped(file)?.replace("orkestra-system", &namespace);
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        scenario.kubectl_with(&arguments, Some(&manifests))?;
    }
    Ok(())
}
