//! Tests of the source files: rules for structure, names, length and wording.

mod length;
mod links;
mod prose;
mod waits;

use std::path::{Path, PathBuf};

use orkestra_ground::tasks::{Task, markdown};

/// Calls that only the module `tasks` may make.
const SPAWNS: [&str; 7] = [
    "tokio::spawn",
    "task::spawn",
    "spawn_blocking",
    "spawn_local",
    ".spawn(",
    "thread::spawn",
    "thread::Builder",
];

/// Names of the client behind [`Cluster`](orkestra_cluster::requests::Cluster).
const CLIENTS: [&str; 3] = ["kube::Client", "use kube::{", "kube::Api"];

/// What may use the client itself: what builds it, commands at the desk, and leader election, whose connection is its own so that
/// nothing else delays the renewal of the Lease.
const CLIENT_USERS: [&str; 6] = [
    "src/cli",
    "crates/author/src/e2e",
    "crates/cluster/src",
    "crates/operator/src/context",
    "crates/admin/src/operate",
    "crates/admin/src/support",
];

/// Every source of a folder that is no test, with its text up to its tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" && path != Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sources")
            {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs")
            && !["tests.rs", "testing.rs"].contains(&&*name)
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            found.push((path, own.to_owned()));
        }
    }
}

/// The crates of the workspace except `bench`, each with its name and the folder of its sources.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![("orkestra".to_owned(), root.join("src"))];
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        folders.push((name, path.join("src")));
    }
    folders
}

#[test]
fn tasks_start_in_the_module_tasks_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    // Tools that are not shipped start tasks as they like. `object` has a thread with a larger stack for deep trees, and waits for it;
    // `registry` runs programs that keep credentials.
    let others = ["testbed", "testkit", "release", "object", "registry"];
    for (name, folder) in crates() {
        if !others.contains(&&*name) {
            sources(&folder, &mut found);
        }
    }
    found.retain(|(path, _)| !path.starts_with(root.join("crates/ground/src/tasks")));
    assert!(found.len() > 100, "{}", found.len());
    let mut strays = Vec::new();
    for (path, text) in &found {
        for (number, line) in text.lines().enumerate() {
            if SPAWNS.iter().any(|spawn| line.contains(spawn)) {
                strays.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        strays.is_empty(),
        "start them with `tasks::named`:\n{}",
        strays.join("\n")
    );
    for task in Task::ALL {
        let mentions = [",", ")", ";"].map(|end| format!("Task::{task:?}{end}"));
        let is_used = |text: &str| mentions.iter().any(|mention| text.contains(mention));
        let is_used = found.iter().any(|(_, text)| is_used(text));
        let of_vitals = matches!(task, Task::Heartbeat | Task::Watchdog);
        assert!(is_used || of_vitals, "nothing starts {task:?}");
    }
}

#[test]
fn a_controller_makes_requests_through_cluster_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for (name, folder) in crates() {
        if name != "testbed" {
            sources(&folder, &mut found);
        }
    }
    let uses_client = |text: &str| CLIENTS.iter().any(|name| text.contains(name));
    for folder in CLIENT_USERS {
        let folder = root.join(folder);
        let mut below = found.iter().filter(|(path, _)| path.starts_with(&folder));
        assert!(
            below.any(|(_, text)| uses_client(text)),
            "{} does not use the client any more: remove it from the list",
            folder.display()
        );
    }
    let is_free = |path: &Path| {
        !CLIENT_USERS
            .iter()
            .any(|user| path.starts_with(root.join(user)))
    };
    let strays: Vec<_> = found
        .iter()
        .filter(|(path, text)| is_free(path) && uses_client(text))
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(
        strays.is_empty(),
        "a request of `Cluster` has a deadline, an account and reports to the breaker; these use the client instead:\n{}",
        strays.join("\n")
    );
}

#[test]
fn the_committed_table_of_tasks_is_current() {
    orkestra_testkit::assert_document("docs/operate/tasks.md", &markdown());
}
