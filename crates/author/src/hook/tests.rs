//! The contract of hooks: modules and servers that keep it, and that break each rule.

use std::{fs, path::Path};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: ponds }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      namespaced: true
      operatorBox:
        default: false
        constructor:
          wasm: { file: hook.wasm, finalize: true }
          managedResources: [{ kind: ConfigMap }]
";
const POND: &str = "
apiVersion: water.example/v1
kind: Pond
metadata: { name: north, namespace: shore }
spec: { depth: 3 }
";
/// An answer that keeps every rule.
const GOOD: &str = r#"{"finalized": true, "children": [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}}]}"#;

async fn run(folder: &Path, instead: Option<HookTarget>) -> HookTested {
    let pond = folder.join("pond.yaml");
    fs::write(&pond, POND).unwrap();
    fs::write(folder.join("katalog.yaml"), KATALOG).unwrap();
    let request = HookTestRequest {
        katalogs: vec![folder.join("katalog.yaml")],
        resource: pond,
        children: Vec::new(),
        calls: None,
        hook: "constructor".to_owned(),
        instead,
        now: Timestamp::UNIX_EPOCH,
        fetch: Arc::new(orkestra_loader::compose::DiskFiles),
    };
    let tested = test(&request).await.unwrap();
    assert!(tested.problems.is_empty(), "{}", tested.problems);
    tested
}

/// Tests a module with this answer.
async fn answering(answer: &str) -> HookTested {
    let folder = TempDir::new().unwrap();
    let module = orkestra_testkit::hook_module(answer);
    fs::write(folder.path().join("hook.wasm"), module).unwrap();
    run(folder.path(), None).await
}

/// Returns the rules that are broken.
fn broken(tested: &HookTested) -> Vec<(&str, &str)> {
    let failed = tested.cases.iter().filter_map(|case| match &case.outcome {
        HookOutcome::Failed(why) => Some((case.name, why.as_str())),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn a_module_that_keeps_the_contract_passes() {
    let tested = answering(GOOD).await;
    assert_eq!(broken(&tested), [], "{}", to_text(&tested));
    assert!(tested.is_passed() && tested.cases.len() == 9);
    let text = to_text(&tested);
    assert!(
        text.contains("pass  finalizing ends: after 1 call\n"),
        "{text}"
    );
    let junit = to_junit(&tested);
    assert!(junit.contains("tests=\"9\" failures=\"0\""), "{junit}");
    assert_eq!(to_json(&tested)["passed"], true);
}

#[tokio::test]
async fn each_rule_is_reported_by_its_name() {
    let secret = GOOD.replace("ConfigMap", "Secret");
    let elsewhere = GOOD.replace(r#"{"name": "a"}"#, r#"{"name": "a", "namespace": "x"}"#);
    let endless = GOOD.replace("true", "false");
    let cases = [
        ("up", "the answer is valid", "not JSON"),
        (r#"{"error": "no quota"}"#, "answers a request", "no quota"),
        (&secret, "children are of managed kinds", "`Secret.v1`"),
        (
            &elsewhere,
            "children are in the namespace of the custom resource",
            "another namespace",
        ),
        (&endless, "finalizing ends", "within 10 calls"),
    ];
    for (answer, rule, why) in cases {
        let tested = answering(answer).await;
        let broken = broken(&tested);
        let found = broken.iter().find(|(name, _)| *name == rule);
        assert!(
            found.is_some_and(|(_, said)| said.contains(why)),
            "{answer}: {broken:?}"
        );
        assert!(!tested.is_passed());
        assert!(to_junit(&tested).contains("<failure"), "{answer}");
    }
}

#[tokio::test]
async fn a_server_is_called_at_the_given_url_alone() {
    let folder = TempDir::new().unwrap();
    let module = orkestra_testkit::hook_module(GOOD);
    fs::write(folder.path().join("hook.wasm"), module).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sync", listener.local_addr().unwrap());
    // It counts its calls, answers differently each time, and takes anything for a request.
    let server = async move {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65536];
            let _ = stream.read(&mut request).await.unwrap();
            let body = format!(r#"{{"finalized": true, "data": {number}}}"#);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).await.unwrap();
        }
    };
    let target = HookTarget::Url(url, None);
    let tested = tokio::select! {
        () = server => unreachable!("it serves without end"),
        tested = run(folder.path(), Some(target)) => tested,
    };
    let broken = broken(&tested);
    let names: Vec<&str> = broken.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "the same request has the same answer",
            "a request that is not JSON is refused"
        ],
        "{broken:?}"
    );
}
