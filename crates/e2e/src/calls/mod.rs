//! Converts commands and `kubectl` blocks to programs with arguments.

mod kubectl;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use self::kubectl::{
    Args, apply, copy, delete, exec, forward, get, logs, patch, rollout, top, workload,
};
use orkestra_language::api::e2e::{Assertions, Command, Kubectl, PodChoice};
use orkestra_language::diagnostics::FieldPath;

/// One call of a program, and its expected result.
#[derive(Clone, Debug)]
pub struct ProgramCall<'a> {
    /// The path in the document.
    pub path: FieldPath,
    /// A title: `kubectl get deployment web`.
    pub title: String,
    /// The action.
    pub action: CallAction,
    /// True if it is not repeated after it succeeded.
    pub is_once: bool,
    /// The expected exit code.
    pub exit_code: i32,
    /// True if exit code 1 with an output is also a valid result: `kubectl auth can-i` prints `no`.
    pub says_no: bool,
    /// The expected HTTP status.
    pub status: Option<u16>,
    /// The filter of the output.
    pub filter: Option<Filter>,
    /// The assertions on the output.
    pub assertions: &'a Assertions,
    /// True if the output is not shown.
    pub is_secret: bool,
    /// The Pod that [`Argument::Pod`] refers to.
    pub pod: Option<Cow<'a, PodChoice>>,
    /// The namespace of the call.
    pub namespace: Option<&'a str>,
}

/// The action of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallAction {
    /// A shell command.
    Shell(String),
    /// `kubectl`, with its arguments and its standard input.
    Kubectl(Vec<Argument>, Option<String>),
    /// `kubectl cp`; the output is the file that it writes.
    Copy(Vec<Argument>),
    /// `kubectl port-forward`, and an HTTP request.
    Forward(Forward),
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The argument itself.
    Text(String),
    /// A file relative to the document.
    File(String),
    /// The name of the call's Pod, with the text around it.
    Pod(&'static str, String),
    /// A new file.
    Scratch,
}

/// An HTTP request through a forwarded port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Arguments that name the target: namespace, then `svc/NAME` or `pod/NAME`.
    pub target: Vec<Argument>,
    /// The port of the target.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// HTTP method.
    pub method: String,
    /// HTTP headers.
    pub headers: BTreeMap<String, String>,
    /// The body, which may contain names of environment variables.
    pub body: Option<String>,
    /// The delay before the request.
    pub wait: Duration,
}

/// A filter of an output: an expression of `jq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Applied to JSON.
    Json(String),
    /// Applied to YAML.
    Yaml(String),
}

/// Returns the commands at `path` as calls.
pub fn commands<'a>(commands: &'a [Command], path: &FieldPath) -> Vec<ProgramCall<'a>> {
    let call = |(index, command): (usize, &'a Command)| ProgramCall {
        title: command.run.lines().next().unwrap_or_default().to_owned(),
        exit_code: command.exit_code.unwrap_or_default(),
        ..ProgramCall::new(
            path.index(index),
            CallAction::Shell(command.run.clone()),
            &command.assertions,
        )
    };
    commands.iter().enumerate().map(call).collect()
}

/// Returns the calls of a `kubectl` block at `path`, in execution order.
pub fn calls<'a>(block: &'a Kubectl, path: &FieldPath) -> Vec<ProgramCall<'a>> {
    let mut all = writes(block, path);
    let mut add = |name: &str, calls: Vec<ProgramCall<'a>>| {
        for (index, mut call) in calls.into_iter().enumerate() {
            call.path = path.field(name).index(index);
            all.push(call);
        }
    };
    add("get", block.get.iter().map(get).collect());
    add("logs", block.logs.iter().map(logs).collect());
    let describe = block.describe.iter().map(|one| {
        let args = Args::new(["describe", &one.kind]).namespace(one.namespace.as_deref());
        let args = args.maybe(None, one.name.as_deref());
        let args = args.maybe(Some("-l"), one.label_selector.as_deref());
        args.call(&one.assertions)
    });
    add("describe", describe.collect());
    add("exec", block.exec.iter().map(exec).collect());
    add(
        "portForward",
        block.port_forward.iter().map(forward).collect(),
    );
    let events = block.events.iter().map(|one| {
        let object = format!("{}/{}", one.kind, one.name);
        let args = Args::new(["events", "--for", &object]).namespace(one.namespace.as_deref());
        args.call(&one.assertions)
    });
    add("events", events.collect());
    let auth = block.auth.iter().map(|one| {
        let args = Args::new(["auth", "can-i", &one.verb, &one.resource]);
        let args = args.namespace(one.namespace.as_deref());
        let args = args.maybe(Some("--as"), one.as_.as_deref());
        ProgramCall {
            says_no: true,
            ..args.call(&one.assertions)
        }
    });
    add("auth", auth.collect());
    add("cp", block.cp.iter().map(copy).collect());
    add("top", block.top.iter().map(top).collect());
    all
}

/// Returns the calls that change something.
fn writes<'a>(block: &'a Kubectl, path: &FieldPath) -> Vec<ProgramCall<'a>> {
    let mut all = Vec::new();
    let mut add = |name: &str, calls: Vec<Vec<ProgramCall<'a>>>| {
        for (index, calls) in calls.into_iter().enumerate() {
            for mut call in calls {
                call.path = path.field(name).index(index);
                call.is_once = true;
                all.push(call);
            }
        }
    };
    add(
        "apply",
        block.apply.iter().map(|one| vec![apply(one)]).collect(),
    );
    add(
        "patch",
        block.patch.iter().map(|one| vec![patch(one)]).collect(),
    );
    let restarts = block.restart.iter().map(|one| {
        let workload = workload(one.kind.as_deref(), &one.name);
        let restart = Args::new(["rollout", "restart", &workload]);
        let restart = restart.namespace(one.namespace.as_deref()).call(&NOTHING);
        let waits = one.ready != Some(false);
        let wait = waits.then(|| rollout(&workload, None, one.namespace.as_deref()));
        [Some(restart), wait].into_iter().flatten().collect()
    });
    add("restart", restarts.collect());
    let scales = block.scale.iter().map(|one| {
        let workload = workload(one.kind.as_deref(), &one.name);
        let number = format!("--replicas={}", one.replicas);
        let scale = Args::new(["scale", &workload, &number]);
        let scale = scale.namespace(one.namespace.as_deref()).call(&NOTHING);
        let waits = one.ready != Some(false);
        let namespace = one.namespace.as_deref();
        let wait = waits.then(|| rollout(&workload, Some(one.replicas), namespace));
        [Some(scale), wait].into_iter().flatten().collect()
    });
    add("scale", scales.collect());
    add(
        "delete",
        block.delete.iter().map(|one| vec![delete(one)]).collect(),
    );
    all
}

/// No assertions on the output.
static NOTHING: LazyLock<Assertions> = LazyLock::new(Assertions::default);

impl<'a> ProgramCall<'a> {
    fn new(path: FieldPath, action: CallAction, assertions: &'a Assertions) -> Self {
        Self {
            path,
            title: String::new(),
            action,
            is_once: false,
            exit_code: 0,
            says_no: false,
            status: None,
            filter: None,
            assertions,
            is_secret: false,
            pod: None,
            namespace: None,
        }
    }

    fn filtered(mut self, jq: Option<&String>, yq: Option<&String>) -> Self {
        let jq = jq.map(|expression| Filter::Json(expression.clone()));
        self.filter = jq.or_else(|| yq.map(|expression| Filter::Yaml(expression.clone())));
        self
    }
}
