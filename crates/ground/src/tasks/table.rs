//! The fixed set of tasks, and the consequence of each one's end.

/// The consequence when a task panics, or ends unexpectedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The task starts again after a backoff, with its state.
    Restart,
    /// Its operator is reported as failed on its Katalog, stopped, and restarted after a backoff. Other operators continue.
    FailOperator,
    /// The process shuts down gracefully and exits with an error.
    EndProcess,
    /// The task is expected to finish. A failure is returned to the caller that awaits it.
    Finish,
}

impl AtEnd {
    /// The consequence as text, for logs and documents.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Restart => "the task is restarted with backoff",
            Self::FailOperator => "the operator is reported as failed and restarted with backoff",
            Self::EndProcess => "the process stops",
            Self::Finish => "what it was doing has failed",
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
            pub fn at_end(self) -> AtEnd {
                match self { $(Self::$task => AtEnd::$at_end),* }
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
    Driver, "driver", FailOperator, false, "Leads one operator through the life of its CRD: binds its plan, starts its workers.";
    Publisher, "publisher", Restart, false, "Publishes what one operator reports about itself.";
    Waiter, "waiter", Restart, false, "Pauses one operator while what it depends on is not ready.";
    Autoscaler, "autoscaler", Restart, false, "Adjusts the workers of one operator.";
    Worker, "worker", Restart, false, "Runs reconcile passes of one operator, one at a time.";
    ExternalCall, "external-call", Finish, false, "Makes one call of `external`. A call that failed is an answer with an error.";
    ExternalConnection, "external-connection", Finish, false, "Runs the connection of one call of `external`.";
    ExternalRoots, "external-roots", Finish, false, "Reads the certificate authorities that this machine trusts.";
    OperatorStop, "operator-stop", Finish, false, "Waits until an operator has stopped, so that its kind can be used again.";
    OperatorRestart, "operator-restart", Restart, false, "Starts a failed operator again once its backoff has passed.";
    // of Katalogs
    Feed, "feed", Restart, true, "Watches Katalogs.";
    Motifs, "motifs", Restart, true, "Watches Motifs.";
    Katalog, "katalog", Restart, false, "Follows one Katalog: judges, stores, reports.";
    Release, "release", Finish, false, "Releases a kind that a Katalog no longer declares. A failed release is retried.";
    Duty, "duty", Restart, true, "Starts and stops the work of operators as this process gains and loses leadership.";
    Claims, "claims", Restart, true, "Claims kinds for this installation, and shows that it is alive; it lists the claims again after a restart.";
    Files, "files", EndProcess, false, "Follows the files of `ork run`.";
    Notices, "notices", Finish, false, "Prints what `ork run` does.";
    OperatorUnderTest, "operator-under-test", Finish, false, "Runs the operators that `ork e2e` tests.";
    ForwardedRequest, "forwarded-request", Finish, false, "Runs the connection of an HTTP request of `ork e2e`.";
    // of the process
    Watch, "watch", Restart, false, "Lists and watches one kind; it lists again after a restart.";
    Elector, "elector", Restart, true, "Takes part in leader election.";
    ElectorThread, "elector-thread", EndProcess, false, "Is the thread that leader election runs on, so that nothing else can hold it up.";
    LeaseWatcher, "lease-watcher", Restart, true, "Watches the Lease.";
    Probe, "probe", Restart, true, "Asks an API server that is unreachable whether it is back.";
    EventSender, "event-sender", Restart, true, "Sends Kubernetes Events; those that wait are kept.";
    Connection, "connection", Finish, false, "Opens and runs a connection to the API server. Requests open another one.";
    ConnectionReturn, "connection-return", Finish, false, "Returns an HTTP/1.1 connection to the pool once its answer was read.";
    FlowPause, "flow-pause", Restart, false, "Lets requests go on once a pause has passed that the API server asked for.";
    HttpServer, "http-server", EndProcess, false, "Accepts connections for probes, metrics and pages.";
    HttpConnection, "http-connection", Finish, false, "Answers the requests of one connection.";
    HttpCertificate, "http-certificate", Finish, false, "Reads the certificate of the HTTP server again.";
    Signals, "signals", Restart, true, "Waits for SIGTERM and SIGINT.";
    Heartbeat, "heartbeat", Restart, true, "Shows that the async workers make progress.";
    Watchdog, "watchdog", Finish, false, "Logs, from a thread of its own, that the async workers make no progress.";
}

/// Renders `docs/tasks.md` from the table.
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

Everything that `ork controller` and `ork run` do concurrently runs in one of these tasks. A task that panics, or ends although
nothing asked it to, is logged at level `error` with its name and counted in `orkestra_task_failures_total`; a restart is counted
in `orkestra_task_restarts_total`. Restarts wait 200 ms at first, and up to 30 s while the task keeps failing.

`GET /livez` fails when a vital task has been failing for more than a minute, or when the async workers have made no progress
for 20 seconds. It does not fail because the API server is unreachable or because another replica leads.

| task | does | when it ends unexpectedly | vital |
| --- | --- | --- | --- |
";
