//! Every field of every child of every example: another client changes it, removes it, and adds something beside it. It is corrected,
//! or left alone by a rule of [`RULES`], and no custom resource is stalled.
//!
//! ```text
//!  README ── apply, run ──► ready ──► children ──► fields that we apply (managedFields) ──► edits, in rounds
//!                                                                                             │ JSON patch, as field manager `drift`
//!                        corrected: as before ◄── refused by the API server ◄── no change ◄───┘
//! ```
//!
//! The edits are derived from the live objects, so a new example, kind or field needs no edit here. The suite makes a sample of the edits,
//! of a quarter of the examples, the same in each run; `make drift` makes all (`DRIFT_SAMPLE=1`). `EXAMPLE=16` selects examples.

mod child;
mod fields;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::{FutureExt as _, StreamExt as _, stream};
use kube::Client;
use orkestra_language::api::names::{ANNOTATION_GENERATED_AT, ANNOTATION_SCALED_AT};
use serde_json::Value;
use testbed::{ControlPlane, Options, eventually};

use self::{child::Child, fields::Step};
use super::{AT_A_TIME, Example, LIMIT, Running, end, folders, readme, storage};
use crate::scenario::condition;

/// The suite makes one of so many edits,
const SAMPLE: usize = 12;
/// of the children of one of so many examples.
const SAMPLE_OF_EXAMPLES: usize = 4;
/// How many children of an example are edited at a time.
const SIDE_BY_SIDE: usize = 8;

/// A rule by which a declared field is left as another client wrote it.
struct Rule {
    /// The rule, as `docs/reference/ownership.md` documents it.
    why: &'static str,
    /// Reports whether it applies to a field of a child.
    applies: fn(&Value, &[Step]) -> bool,
    /// Whether the edit is made. One that is not would change what the next steps of the README show.
    is_made: bool,
}

/// The rules. An edit that one of them allows must not be corrected by accident only: nothing is asserted about it but that no custom
/// resource is stalled.
const RULES: [Rule; 3] = [
    Rule {
        why: "a Job, and a Secret with generated values, are created once",
        applies: |child, _| {
            let annotations = &child["metadata"]["annotations"];
            child["kind"] == "Job" || annotations[ANNOTATION_GENERATED_AT].is_string()
        },
        is_made: true,
    },
    Rule {
        why: "`autoscale` continues from the replicas that somebody else set, after its cooldown",
        applies: |child, trail| {
            let is_scaled = child["metadata"]["annotations"][ANNOTATION_SCALED_AT].is_string();
            is_scaled
                && matches!(trail, [Step::Field(spec), Step::Field(field)] if spec == "spec" && field == "replicas")
        },
        // It begins a cooldown.
        is_made: false,
    },
    Rule {
        why: "an object with another controller is not a child",
        applies: |_, trail| {
            matches!(trail, [Step::Field(meta), Step::Field(owners), ..]
                if meta == "metadata" && owners == "ownerReferences")
        },
        is_made: true,
    },
];

/// The results of the edits.
#[derive(Debug, Default)]
struct Tally {
    corrected: usize,
    /// The API server accepted the edit and kept the value: a default, or an unknown field.
    unchanged: usize,
    refused: usize,
    beside: usize,
    by_rule: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.corrected += other.corrected;
        self.unchanged += other.unchanged;
        self.refused += other.refused;
        self.beside += other.beside;
        for (rule, count) in &other.by_rule {
            *self.by_rule.entry(rule).or_default() += count;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_of_every_child_of_every_example_is_corrected_or_left_by_a_rule() -> Result<()>
{
    let cluster = &ControlPlane::start(Options {
        nodes: true,
        ..Options::default()
    })?;
    let scratch = cluster.folder().join("examples");
    let client = cluster.admin().client()?;
    let is_whole = std::env::var_os("EXAMPLE").is_none();
    let selects = !is_whole || sample() == 1;
    let step = if selects { 1 } else { SAMPLE_OF_EXAMPLES };
    let runs = folders()?.into_iter().step_by(step).map(|folder| {
        let scratch = scratch.join(folder.file_name().unwrap_or_default());
        let client = client.clone();
        async move {
            let started = Instant::now();
            let example = Example {
                cluster,
                kubeconfig: cluster.admin().kubeconfig_path().to_owned(),
                folder,
                scratch,
            };
            let result = example.drift(&client).await;
            println!(
                "{}: {:?}, {result:?}",
                example.folder.display(),
                started.elapsed()
            );
            result.with_context(|| format!("{}", example.folder.display()))
        }
        .boxed_local()
    });
    let all = stream::iter(runs)
        .buffer_unordered(AT_A_TIME)
        .collect::<Vec<_>>();
    let results = tokio::select! {
        results = all => results,
        end = storage::provide(client.clone()) => return end,
    };
    let (mut failures, mut tally) = (Vec::new(), Tally::default());
    for result in results {
        match result {
            Ok(one) => tally.add(&one),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    println!("{tally:?}");
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    // A single example may have children only that a rule leaves.
    ensure!(!is_whole || tally.corrected > 0, "nothing was corrected");
    Ok(())
}

fn sample() -> usize {
    let given = std::env::var("DRIFT_SAMPLE");
    given
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(SAMPLE)
}

/// Reports whether a command of a README leads to children. The others show, check or delete something.
fn sets_up(command: &str) -> bool {
    [
        "kubectl apply ",
        "kubectl replace ",
        "kubectl proxy ",
        "ork run ",
    ]
    .iter()
    .any(|start| command.starts_with(start))
}

impl Example<'_> {
    /// Runs the example, and edits its children after each command that applies custom resources.
    async fn drift(&self, client: &Client) -> Result<Tally> {
        std::fs::create_dir_all(&self.scratch)?;
        let readme = std::fs::read_to_string(self.folder.join("README.md"))?;
        let commands = readme::commands(&readme)?;
        let (mut running, mut tally, mut result) = (Vec::new(), Tally::default(), Ok(()));
        for command in commands.iter().filter(|command| sets_up(command)) {
            result = self
                .drift_after(command, &mut running, client, &mut tally)
                .await
                .with_context(|| format!("`{command}`"));
            if result.is_err() {
                break;
            }
        }
        self.finish(running, result).await?;
        Ok(tally)
    }

    async fn drift_after(
        &self,
        command: &str,
        running: &mut Running,
        client: &Client,
        tally: &mut Tally,
    ) -> Result<()> {
        self.step(command, running).await?;
        let mut files: Vec<&str> = readme::applied(command).collect();
        files.retain(|file| self.expected(file).exists());
        for file in files {
            let live = self.live(file).await?;
            let mut children = Vec::new();
            for child in self.children(file, &live).await? {
                children.push(Child::find(client, child).await?);
            }
            let mut rounds = 1;
            for round in 0.. {
                if round == rounds {
                    break;
                }
                if round > 0 {
                    self.restart(running).await?;
                }
                let edits = children.iter().map(|child| child.edit_round(client, round));
                let mut edits = stream::iter(edits).buffer_unordered(SIDE_BY_SIDE);
                while let Some(edited) = edits.next().await {
                    let (all, one) = edited?;
                    rounds = rounds.max(all);
                    tally.add(&one);
                }
            }
            self.is_not_stalled(file).await?;
        }
        Ok(())
    }

    /// Restarts the operators: how often a field was corrected is remembered in the process.
    async fn restart(&self, running: &mut Running) -> Result<()> {
        /// Each start has a log of its own.
        static STARTS: AtomicUsize = AtomicUsize::new(100);
        for (command, program) in running {
            if let Some(works) = readme::stays(command).filter(|_| command.starts_with("ork ")) {
                end(program).await?;
                let number = STARTS.fetch_add(1, Ordering::Relaxed);
                *program = self.start(command, works, number).await?;
            }
        }
        Ok(())
    }

    async fn is_not_stalled(&self, file: &str) -> Result<()> {
        eventually(&format!("{file} is not stalled"), LIMIT, async || {
            for resource in self.live(file).await? {
                let stalled = condition(&resource, "Stalled");
                ensure!(stalled.is_none(), "{}", resource["status"]);
            }
            Ok(Some(()))
        })
        .await
    }
}
