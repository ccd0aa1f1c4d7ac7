//! Genuine implementations of health checks: kstatus of `sigs.k8s.io/cli-utils`, and `config/argocd/health.lua` in Argo CD's
//! interpreter. `hack/gitops/build` builds the program that runs both, on first use.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "if the program cannot run, the machine is at fault"
)]

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::kstatus::Kstatus;

/// States to check, each once, with the expected result.
#[derive(Default)]
pub(crate) struct Judged(BTreeMap<String, Kstatus>);

impl Judged {
    /// Adds a state. If it was added before, the expected result must be the same.
    pub(crate) fn state(&mut self, state: &Value, truth: Kstatus) {
        let before = self.0.insert(state.to_string(), truth);
        assert!(before.is_none_or(|before| before == truth), "{state}");
    }

    /// Returns the number of different states.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks all states with both programs and panics if a result differs from the expected one. Returns both results for each
    /// state.
    pub(crate) fn finish(self) -> Vec<(Value, Value)> {
        let states: Vec<Value> = self.0.keys().map(|state| read(state)).collect();
        let reported = judge(&states);
        for ((state, reported), truth) in states.iter().zip(&reported).zip(self.0.values()) {
            let (lua, kstatus) = match truth {
                Kstatus::Terminating => ("Progressing", "Terminating"),
                Kstatus::InProgress => ("Progressing", "InProgress"),
                Kstatus::Failed => ("Degraded", "Failed"),
                Kstatus::Current => ("Healthy", "Current"),
            };
            // kstatus has no status for a suspended object.
            let lua = if state["spec"]["suspend"] == json!(true) && *truth == Kstatus::Current {
                "Suspended"
            } else {
                lua
            };
            assert_eq!(reported["lua"]["status"], lua, "{reported} of {state}");
            assert_eq!(
                reported["kstatus"]["status"], kstatus,
                "{reported} of {state}"
            );
            assert_ne!(reported["lua"]["message"], "", "{state}");
        }
        states.into_iter().zip(reported).collect()
    }
}

/// Returns the output of `health` for each object, in order.
pub(crate) fn judge(states: &[Value]) -> Vec<Value> {
    let mut child = Command::new(tool())
        .arg(root().join("config/argocd/health.lua"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the judge cannot be run");
    let mut pipe = child.stdin.take().expect("a piped stdin");
    let lines: Vec<String> = states.iter().map(|state| format!("{state}\n")).collect();
    let lines = lines.concat();
    // Write on a separate thread, so that the two processes do not block each other on full pipes.
    let writer = std::thread::spawn(move || pipe.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the judge cannot be read");
    assert!(
        output.status.success(),
        "the judge ended with {}",
        output.status
    );
    writer
        .join()
        .expect("no panic")
        .expect("the judge reads all");
    let reported = String::from_utf8(output.stdout).expect("JSON is text");
    let reported: Vec<Value> = reported.lines().map(read).collect();
    assert_eq!(reported.len(), states.len());
    reported
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn tool() -> PathBuf {
    let output = Command::new(root().join("hack/gitops/build"))
        .arg("health")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("hack/gitops/build cannot be run");
    assert!(output.status.success(), "`make gitops-tools` shows why");
    let text = String::from_utf8(output.stdout).expect("a path");
    Path::new(text.lines().last().expect("a folder")).join("health")
}

/// Returns the folder of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors();
    let found = folders.find(|folder| folder.join("hack/gitops").is_dir());
    found.expect("the folder of the repository").to_owned()
}
