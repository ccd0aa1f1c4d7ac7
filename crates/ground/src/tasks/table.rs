//! The fixed set of tasks, and the consequence of each one's end.

/// The consequence when a task panics, or ends unexpectedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTaskEnd {
    /// The task starts again after a backoff, with its state.
    Restart,
    /// Its operator is reported as failed on its Katalog, stopped, and restarted after a backoff. Other operators continue.
    FailOperator,
    /// The process shuts down gracefully and exits with an error.
    EndProcess,
    /// The task is expected to finish. A failure is returned to the caller that awaits it.
    Finish,
}

impl OnTaskEnd {
    /// The consequence as text, for logs and documents.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Restart => "the task is restarted with backoff",
            Self::FailOperator => "the operator is reported as failed and restarted with backoff",
            Self::EndProcess => "the process stops",
            Self::Finish => "its operation fails",
        }
    }
}

/// Defines every task once: variant, name, consequence of its end, whether the process is useless without it, what it does.
macro_rules! tasks {
    ($($task:ident, $name:literal, $at_end:ident, $vital:literal, $does:literal;)*) => {
        /// A kind of task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Task { $(#[doc = $does] $task),* }

        impl Task {
            /// All tasks.
            pub const ALL: &[Self] = &[$(Self::$task),*];
            /// The name of each task, in the order of `ALL`.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The task's name in metrics and logs.
            pub fn name(self) -> &'static str {
                match self { $(Self::$task => $name),* }
            }

            /// The consequence of the task's end.
            pub fn at_end(self) -> OnTaskEnd {
                match self { $(Self::$task => OnTaskEnd::$at_end),* }
            }

            /// Whether `/livez` fails while the task keeps failing.
            pub fn is_vital(self) -> bool {
                match self { $(Self::$task => $vital),* }
            }

            /// What the task does, in one sentence.
            pub fn does(self) -> &'static str {
                match self { $(Self::$task => $does),* }
            }
        }
    };
}

tasks! {
    // of an operator
    Driver, "driver", FailOperator, false, "Follows the lifecycle of one operator's CRD: binds the plan, starts the workers.";
    Publisher, "publisher", Restart, false, "Publishes what one operator reports about itself.";
    Waiter, "waiter", Restart, false, "Pauses one operator while its dependencies are not ready.";
    Autoscaler, "autoscaler", Restart, false, "Adjusts the workers of one operator.";
    Worker, "worker", Restart, false, "Runs reconcile passes of one operator, one at a time.";
    ExternalCall, "external-call", Finish, false, "Makes one `external` call. A failed call returns a response with an error.";
    OutboundConnection, "outbound-connection", Finish, false, "Runs one connection to a server other than the API server: for an `external` call, a source or a registry.";
    SourceFetch, "source-fetch", Finish, false, "Fetches, unpacks or renders one source. A failed fetch is reported.";
    ExternalRoots, "external-roots", Finish, false, "Reads the certificate authorities that this machine trusts.";
    OperatorStop, "operator-stop", Finish, false, "Waits until an operator has stopped, so that its kind can be used again.";
    OperatorRestart, "operator-restart", Restart, false, "Restarts a failed operator after its backoff.";
    // of Katalogs
    Feed, "feed", Restart, true, "Watches Katalogs and Komposers.";
    Motifs, "motifs", Restart, true, "Watches Motifs.";
    Katalog, "katalog", Restart, false, "Handles one Katalog or Komposer: compiles and checks it, stores revisions, reports status.";
    Compilation, "compilation", Finish, false, "Compiles one Katalog or Komposer. A failed one is refused, and its last revision stays.";
    Sources, "sources", Restart, false, "Fetches the sources of one Komposer, and follows its `ConfigMaps` and Katalogs.";
    Release, "release", Finish, false, "Releases a kind that a Katalog no longer declares. A failed release is retried.";
    Duty, "duty", Restart, true, "Starts and stops operators as this process gains and loses leadership.";
    Claims, "claims", Restart, true, "Claims kinds for this installation and renews its lease; after a restart, it lists the claims again.";
    Files, "files", EndProcess, false, "Watches the files of `ork run`.";
    Notices, "notices", Finish, false, "Prints the messages of `ork run`.";
    OperatorUnderTest, "operator-under-test", Finish, false, "Runs the operators that `ork e2e` tests.";
    ForwardedRequest, "forwarded-request", Finish, false, "Runs the connection of an HTTP request of `ork e2e`.";
    // of the process
    Watch, "watch", Restart, false, "Lists and watches one kind; after a restart, it lists again.";
    Elector, "elector", Restart, true, "Takes part in leader election.";
    ElectorThread, "elector-thread", EndProcess, false, "Runs leader election on a separate thread, so that no other task can delay it.";
    LeaseWatcher, "lease-watcher", Restart, true, "Watches the Lease.";
    Probe, "probe", Restart, true, "Checks whether an unreachable API server is reachable again.";
    EventSender, "event-sender", Restart, true, "Sends Kubernetes Events; after a restart, queued Events are still sent.";
    Connection, "connection", Finish, false, "Opens and runs a connection to the API server. If it fails, requests open another one.";
    ConnectionReturn, "connection-return", Finish, false, "Returns an HTTP/1.1 connection to the pool after its response has been read.";
    FlowPause, "flow-pause", Restart, false, "Resumes requests after a pause that the API server requested.";
    HttpServer, "http-server", EndProcess, false, "Accepts connections for probes, metrics and pages.";
    HttpConnection, "http-connection", Finish, false, "Answers the requests of one connection.";
    HttpCertificate, "http-certificate", Finish, false, "Reloads the certificate of the HTTP server.";
    Webhooks, "webhooks", EndProcess, false, "Accepts connections of the API server to webhooks.";
    Review, "review", Finish, false, "Evaluates one request to a webhook. A failed one is answered with an error.";
    WebhookCertificate, "webhook-certificate", Restart, true, "Renews and rotates the certificate of the webhooks.";
    WebhookConfigurations, "webhook-configurations", Restart, true, "Writes webhook configurations, policies and conversions, and restores them.";
    WebhookWithdrawal, "webhook-withdrawal", Restart, false, "Removes what the webhooks registered at the API server and no longer serve.";
    Signals, "signals", Restart, true, "Waits for SIGTERM and SIGINT.";
    Heartbeat, "heartbeat", Restart, true, "Reports that a runtime, of the async workers or of leader election, makes progress.";
    Watchdog, "watchdog", Finish, false, "Logs, from a separate thread, that the async workers or leader election make no progress.";
}

/// Renders `docs/operate/tasks.md` from the table.
pub fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    for task in Task::ALL {
        let vital = if task.is_vital() { "yes" } else { "no" };
        let row = format!(
            "| `{}` | {} | {} | {vital} |\n",
            task.name(),
            task.does(),
            task.at_end().consequence()
        );
        text.push_str(&row);
    }
    text
}

const INTRODUCTION: &str = "\
<!-- Generated from crates/ground/src/tasks/table.rs: UPDATE=1 cargo test --lib tasks -->
# Tasks

All concurrent work of `ork controller` and `ork run` runs in one of these tasks. A task that panics or ends unexpectedly is logged
at level `error` with its name and counted in `orkestra_task_failures_total`; a restart is counted in
`orkestra_task_restarts_total`. The delay before a restart is 200 ms at first, and up to 30 s while the task keeps failing.

`GET /livez` fails when a vital task has been failing for more than a minute, or when the async workers or the thread of leader
election have made no progress for 20 seconds. It does not fail because the API server is unreachable or because another
replica leads.

| task | does | when it ends unexpectedly | vital |
| --- | --- | --- | --- |
";
