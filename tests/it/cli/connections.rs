//! Connections of `ork`: an unreachable cluster, a port that is in use, probes, and the shutdown at SIGTERM.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use testbed::eventually;

use super::{EXAMPLE, ork, run};
use crate::scenario::LIMIT;

/// Writes a kubeconfig for a port on which no server listens, and returns its path.
fn nowhere(folder: &TempDir) -> PathBuf {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let file = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_cluster_that_cannot_be_reached_is_3() {
    let folder = TempDir::new().unwrap();
    let kubeconfig = nowhere(&folder);
    let kubeconfig = kubeconfig.to_str().unwrap();
    for args in [
        &["release", "-k", EXAMPLE, "--kubeconfig", kubeconfig][..],
        &[
            "run",
            "-k",
            EXAMPLE,
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig",
            kubeconfig,
        ],
        &[
            "run",
            "-k",
            EXAMPLE,
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig",
            "not/there",
        ],
        &[
            "release",
            "-k",
            EXAMPLE,
            "--kubeconfig",
            kubeconfig,
            "--context",
            "another",
        ],
    ] {
        let (code, _, err) = run(args);
        assert_eq!(code, 3, "{args:?}: {err}");
        assert!(err.contains("error: "), "{err}");
    }
}

#[test]
fn a_taken_port_is_1_and_says_what_to_do() {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let kubeconfig = nowhere(&folder);
    let (code, _, err) = run(&[
        "controller",
        "--listen",
        &address,
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains(&address) && err.contains("--listen"), "{err}");
}

/// Starts a controller whose cluster is unreachable; returns it and the address that it listens on.
fn waiting_controller(folder: &TempDir) -> (Child, SocketAddr) {
    let kubeconfig = nowhere(folder);
    let mut child = ork()
        .args([
            "controller",
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
            "--kubeconfig",
        ])
        .arg(kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines
        .find(|line| line.as_ref().unwrap().contains("\"listening\""))
        .unwrap()
        .unwrap();
    let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
    std::thread::spawn(move || lines.count());
    (child, entry["address"].as_str().unwrap().parse().unwrap())
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: ork\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn probes_answer_before_the_cluster_does_and_sigterm_ends_it_in_order() {
    let folder = TempDir::new().unwrap();
    let (mut child, address) = waiting_controller(&folder);
    assert!(get(address, "/livez").starts_with("HTTP/1.1 200"));
    assert!(get(address, "/readyz").starts_with("HTTP/1.1 503"));
    assert!(get(address, "/katalog").contains("\"OrkReady\":false"));
    let metrics = get(address, "/metrics");
    assert!(
        metrics.contains("orkestra_build_info")
            && metrics.contains("orkestra_events_dropped_total 0"),
        "{metrics}"
    );
    assert!(
        Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let status = eventually("the controller ends", LIMIT, async || Ok(child.try_wait()?)).await;
    if status.is_err() {
        child.kill().unwrap();
    }
    assert_eq!(status.unwrap().code(), Some(0));
}
