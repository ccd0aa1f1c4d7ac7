use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use orkestra_cluster::client::ClusterOptions;
use orkestra_e2e::{CallOutput, ProgramCall, calls, commands, read_e2e};
use orkestra_language::{api::E2eSpec, diagnostics::FieldPath, document::parse_stream};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Case, Choice, E2eOptions, E2eResults, Report, TestOutcome,
    call::{CallRunner, TestCallError},
    case_text, e2e,
    process::ProgramEnvironment,
    to_json, to_junit,
};
use orkestra_loader::compose::DiskFiles;
use orkestra_operator::external;

/// A folder with scripts that precede the machine's programs in `PATH`.
struct Programs(TempDir);

impl Programs {
    fn new(programs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, script) in programs {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn place(&self) -> ProgramEnvironment {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.0.path().display());
        ProgramEnvironment {
            folder: self.0.path().to_owned(),
            variables: vec![("PATH".into(), path.into())],
        }
    }

    async fn run(
        &self,
        call: &ProgramCall<'_>,
        limit: Duration,
    ) -> Result<CallOutput, TestCallError> {
        let file = self.0.path().join("e2e.yaml");
        let caller = CallRunner {
            file: &file,
            place: &self.place(),
        };
        caller.run(call, Instant::now() + limit).await
    }
}

const LIMIT: Duration = Duration::from_secs(30);

fn spec(body: &str) -> E2eSpec {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: E2E\nspec:\n  katalog: k\n  expect:\n    - name: it\n      {body}\n"
    );
    let stream = parse_stream("e2e.yaml", &text);
    read_e2e(&stream.sources[0])
        .unwrap_or_else(|why| panic!("{why}"))
        .0
        .spec
}

fn first(spec: &E2eSpec) -> ProgramCall<'_> {
    let (expected, at) = (&spec.expect[0], FieldPath::root());
    let mut all = commands(&expected.commands, &at);
    all.extend(expected.kubectl.iter().flat_map(|block| calls(block, &at)));
    all.swap_remove(0)
}

/// A replacement of `kubectl` that prints its arguments, and responds to requests for Pods and Leases.
const KUBECTL: &str = r#"case "$*" in
  "get lease"*) printf 'web-7_0af3' ;;
  "get pods"*) printf 'web-9 web-2' ;;
  cp*) for last; do :; done; printf 'in the file' >"$last" ;;
  *) printf '%s' "$*"; cat ;;
esac"#;

#[tokio::test]
async fn pods_are_found_by_labels_and_by_leases() {
    let programs = Programs::new(&[("kubectl", KUBECTL)]);
    for (body, line) in [
        ("logs: [{ name: a }]", "logs a"),
        (
            "exec: [{ labelSelector: app=web, command: [date] }]",
            "exec web-2 -- date",
        ),
        (
            "logs: [{ leaderElection: { lease: l }, namespace: ns }]",
            "logs web-7 -n ns",
        ),
        ("cp: [{ name: a, src: /etc/x }]", "in the file"),
        ("apply: [{ inline: { a: 1 } }]", "apply -f -{\"a\":1}"),
    ] {
        let spec = spec(&format!("kubectl: {{ {body} }}"));
        let answer = programs.run(&first(&spec), LIMIT).await.unwrap();
        assert_eq!(answer.output, line, "{body}");
    }
    let nobody = Programs::new(&[("kubectl", "true")]);
    let leader = spec("kubectl: { logs: [{ leaderElection: { lease: l } }] }");
    let error = nobody.run(&first(&leader), LIMIT).await.unwrap_err();
    assert_eq!(error.to_string(), "the Lease `l` has no holder");
}

#[tokio::test]
async fn outputs_go_through_jq_as_json_and_as_yaml() {
    let programs = Programs::new(&[
        ("kubectl", "printf 'a: 1\\n---\\nb: [2]\\n'"),
        ("jq", "printf '%s|' \"$@\"; cat"),
    ]);
    let yaml = spec("kubectl: { get: [{ kind: pods, yq: .a }] }");
    let answer = programs.run(&first(&yaml), LIMIT).await.unwrap();
    assert_eq!(answer.output, "-r|.a|{\"a\":1}\n{\"b\":[2]}");
    let json = spec("kubectl: { get: [{ kind: pods, jq: .a }] }");
    let answer = programs.run(&first(&json), LIMIT).await.unwrap();
    assert_eq!(answer.output, "-r|.a|a: 1\n---\nb: [2]\n");
    let failing = Programs::new(&[("kubectl", "echo 1"), ("jq", "echo no >&2; exit 3")]);
    let error = failing.run(&first(&json), LIMIT).await.unwrap_err();
    assert_eq!(error.to_string(), "`jq` failed: no");
}

#[tokio::test]
async fn a_program_that_is_missing_is_not_waited_for() {
    let programs = Programs::new(&[]);
    let place = ProgramEnvironment {
        variables: vec![("PATH".into(), programs.0.path().into())],
        ..programs.place()
    };
    let file = programs.0.path().join("e2e.yaml");
    let caller = CallRunner {
        file: &file,
        place: &place,
    };
    let spec = spec("kubectl: { get: [{ kind: pods }] }");
    let error = caller
        .run(&first(&spec), Instant::now() + LIMIT)
        .await
        .unwrap_err();
    assert!(error.is_lasting());
    assert_eq!(
        error.to_string(),
        "the program `kubectl` is not installed, or not in $PATH"
    );
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_what_it_started() {
    let programs = Programs::new(&[]);
    // The pipe stays open while any of the processes runs.
    let spec = spec("commands: [{ run: 'mkfifo held; sleep 600 >held & cat held; sleep 600' }]");
    let ended = programs
        .run(&first(&spec), Duration::from_millis(300))
        .await;
    assert_eq!(ended.unwrap_err().to_string(), "`sh` has not ended in time");
    // Opening the pipe for reading and writing never blocks, and fails unless it exists. If no process holds the pipe, this
    // is the only writer, and the read ends when it is dropped.
    let held = programs.0.path().join("held");
    let read = tokio::time::timeout(
        LIMIT,
        tokio::task::spawn_blocking(move || {
            let writer = fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&held)
                .unwrap();
            let mut reader = fs::File::open(&held).unwrap();
            drop(writer);
            let mut rest = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut rest).unwrap();
        }),
    );
    read.await.expect("no process holds the pipe").unwrap();
}

#[tokio::test]
async fn exit_codes_and_both_outputs_of_commands_are_read() {
    let programs = Programs::new(&[]);
    let spec = spec("commands: [{ run: 'echo out; echo err >&2; exit 7' }]");
    let answer = programs.run(&first(&spec), LIMIT).await.unwrap();
    let expected = CallOutput {
        exit_code: 7,
        output: "out\n".to_owned(),
        error: "err\n".to_owned(),
        status: None,
    };
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_request_goes_through_the_forwarded_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "echo \"$*\" >args; echo 'Forwarding from 127.0.0.1:{port} -> 8080'; exec sleep 600"
    );
    let programs = Programs::new(&[("kubectl", &script)]);
    let spec = spec(
        "kubectl: { portForward: [{ service: web, port: 80, path: '/a?b=c', method: post, headers: { X-A: one }, body: 'b: $HOME' }] }",
    );
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let body = format!("b: {}", std::env::var("HOME").unwrap_or_default());
        while !String::from_utf8_lossy(&request).ends_with(&body) {
            let mut buffer = [0; 1024];
            let read = stream.read(&mut buffer).await.unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&request));
            request.extend_from_slice(&buffer[..read]);
        }
        let answer = "HTTP/1.1 418 Teapot\r\nContent-Length: 5\r\n\r\nshort";
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let call = first(&spec);
    let (request, answer) = tokio::join!(serve, programs.run(&call, LIMIT));
    let answer = answer.unwrap();
    assert_eq!((answer.status, &*answer.output), (Some(418), "short"));
    let request = request.to_lowercase();
    assert!(request.starts_with("post /a?b=c http/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nx-a: one\r\n"), "{request}");
    let args = fs::read_to_string(programs.0.path().join("args")).unwrap();
    assert_eq!(args.trim(), "port-forward --address 127.0.0.1 svc/web :80");

    let broken = Programs::new(&[("kubectl", "echo 'no such pod' >&2; exit 1")]);
    let error = broken.run(&call, LIMIT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`kubectl port-forward` ended: no such pod"
    );
}

fn options(skip: &[&str]) -> E2eOptions {
    E2eOptions {
        cluster: Choice::Declared(ClusterOptions {
            kubeconfig: Some(PathBuf::from("/nonexistent/kubeconfig")),
            context: None,
        }),
        assets: None,
        keep: false,
        skip: skip.iter().map(|skip| (*skip).to_owned()).collect(),
        external: Arc::new(|_| external::Client::closed()),
        fetch: Arc::new(DiskFiles),
        stop: CancellationToken::new(),
        progress: Arc::new(|_| {}),
    }
}

fn write(folder: &Path, name: &str, spec: &str) -> PathBuf {
    let path = folder.join(name);
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: E2E\nmetadata: {{ name: {} }}\n{spec}\n",
        name.replace('.', "-")
    );
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn without_a_cluster_it_is_said_how_to_get_one() {
    let folder = TempDir::new().unwrap();
    let file = write(
        folder.path(),
        "e2e.yaml",
        "spec: { katalog: k, cluster: { name: pond }, expect: [{ name: a, commands: [{ run: x }] }] }",
    );
    let ran = e2e(std::slice::from_ref(&file), &options(&[])).await;
    let error = ran.no_cluster.unwrap().to_string();
    for part in [
        "kind create cluster --name pond",
        "--use-current",
        "--assets",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let existing = write(
        folder.path(),
        "existing.yaml",
        "spec: { katalog: k, cluster: { provider: existing }, expect: [{ name: a, commands: [{ run: x }] }] }",
    );
    let ran = e2e(&[existing], &options(&[])).await;
    assert!(ran.no_cluster.is_some() && !ran.is_passed());
}

#[tokio::test]
async fn mistakes_in_any_file_are_reported_before_a_cluster_is_asked() {
    let folder = TempDir::new().unwrap();
    let suite = write(
        folder.path(),
        "suite.yaml",
        "imports: [one.yaml, missing.yaml]",
    );
    write(
        folder.path(),
        "one.yaml",
        "spec: { katalog: k, expect: [{ include: more.yaml }, { include: none.yaml }] }",
    );
    fs::write(
        folder.path().join("more.yaml"),
        "expect:\n  - { name: a, comands: [] }\n",
    )
    .unwrap();
    let ran = e2e(std::slice::from_ref(&suite), &options(&[])).await;
    let problems = ran.problems.to_string();
    for part in [
        "spec.imports[1]: cannot be read",
        "did you mean `commands`",
        "cannot read",
        "none.yaml",
    ] {
        assert!(problems.contains(part), "{part}\n{problems}");
    }
    assert!(ran.no_cluster.is_none());
    for skip in ["one-yaml", folder.path().join("one.yaml").to_str().unwrap()] {
        let ran = e2e(std::slice::from_ref(&suite), &options(&[skip])).await;
        let problems = ran.problems.to_string();
        assert!(!problems.contains("comands"), "{problems}");
    }
}

#[test]
fn results_are_text_json_and_junit() {
    let case = |name: &str, outcome| Case {
        path: "spec.expect[0]".to_owned(),
        name: name.to_owned(),
        took: Duration::from_millis(1500),
        outcome,
        details: Vec::new(),
    };
    let failed = Case {
        details: vec![
            "$ kubectl get pods".to_owned(),
            "web\u{7} Pending".to_owned(),
        ],
        ..case(
            "it is ready",
            TestOutcome::Failed(vec!["- a".to_owned(), "+ b".to_owned()]),
        )
    };
    let text = case_text(&failed);
    assert_eq!(
        text,
        "  FAIL spec.expect[0]: it is ready (1.5 s)\n         - a\n         + b\n         | $ kubectl get pods\n         | web  Pending\n"
    );
    let report = Report {
        name: "test".to_owned(),
        file: "e2e.yaml".to_owned(),
        cases: vec![
            case("it is there", TestOutcome::Passed),
            failed,
            case("not here", TestOutcome::Skipped("why".to_owned())),
        ],
        kept: Vec::new(),
    };
    let ran = E2eResults {
        reports: vec![report],
        ..E2eResults::default()
    };
    let json = to_json(&ran);
    assert_eq!(json["passed"], false);
    assert_eq!(json["tests"][0]["cases"][1]["diff"][1], "+ b");
    assert_eq!(json["tests"][0]["cases"][2]["reason"], "why");
    let junit = to_junit(&ran);
    for part in [
        "tests=\"3\" failures=\"1\" skipped=\"1\"",
        "time=\"1.500\"",
        "<failure message=\"it is ready failed\">- a\n+ b\n$ kubectl get pods",
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
}
