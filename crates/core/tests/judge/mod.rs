//! Genuine judges of states: kstatus of `sigs.k8s.io/cli-utils`, and `config/argocd/health.lua` in the interpreter that Argo CD
//! runs it with. `hack/gitops/build` builds the program that asks both, on first use.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a judge that cannot be asked is a fault of the machine"
)]

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::kstatus::Kstatus;

/// States to judge, each once, with what is true of it.
#[derive(Default)]
pub(super) struct Judged(BTreeMap<String, Kstatus>);

impl Judged {
    /// Adds a state; one that was added before must have had the same truth.
    pub(super) fn state(&mut self, state: &Value, truth: Kstatus) {
        let before = self.0.insert(state.to_string(), truth);
        assert!(before.is_none_or(|before| before == truth), "{state}");
    }

    /// How many differ.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Asks both judges about all of them, and panics if one differs from the truth. What both said, state by state.
    pub(super) fn finish(self) -> Vec<(Value, Value)> {
        let states: Vec<Value> = self.0.keys().map(|state| read(state)).collect();
        let reported = judge(&states);
        for ((state, reported), truth) in states.iter().zip(&reported).zip(self.0.values()) {
            let (lua, kstatus) = match truth {
                Kstatus::Terminating => ("Progressing", "Terminating"),
                Kstatus::InProgress => ("Progressing", "InProgress"),
                Kstatus::Failed => ("Degraded", "Failed"),
                Kstatus::Current => ("Healthy", "Current"),
            };
            // A suspended object is left alone: kstatus has no word for it.
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

/// What `health` says of each object, in their order.
pub(super) fn judge(states: &[Value]) -> Vec<Value> {
    let mut child = Command::new(tool())
        .arg(root().join("config/argocd/health.lua"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the judge cannot be run");
    let mut pipe = child.stdin.take().expect("a piped stdin");
    let lines: Vec<String> = states.iter().map(|state| format!("{state}\n")).collect();
    let lines = lines.concat();
    // On a thread, or the two could wait for each other over full pipes.
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

/// The folder of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors();
    let found = folders.find(|folder| folder.join("hack/gitops").is_dir());
    found.expect("the folder of the repository").to_owned()
}
