//! The arguments of each call of `kubectl`.

use std::borrow::Cow;
use std::time::Duration;

use super::{Argument, CallAction, Forward, NOTHING, ProgramCall};
use orkestra_language::api::Text;
use orkestra_language::api::e2e::{
    Apply, Assertions, Copy, Delete, Exec, Format, Get, Logs, Patch, PodChoice, PortForward, Top,
};
use orkestra_language::diagnostics::FieldPath;
use orkestra_object::value::Node;

/// Kinds that `kubectl rollout status` supports.
const ROLLOUTS: [&str; 3] = ["deployment", "statefulset", "daemonset"];

/// Arguments of `kubectl`.
pub(crate) struct Args<'a> {
    words: Vec<Argument>,
    namespace: Option<&'a str>,
}

impl<'a> Args<'a> {
    pub(crate) fn new<const N: usize>(words: [&str; N]) -> Self {
        Self {
            words: words.map(|word| Argument::Text(word.to_owned())).to_vec(),
            namespace: None,
        }
    }

    pub(crate) fn namespace(mut self, namespace: Option<&'a str>) -> Self {
        self.namespace = namespace;
        self.maybe(Some("-n"), namespace)
    }

    /// Adds an argument with its flag, if present.
    pub(crate) fn maybe(mut self, flag: Option<&str>, text: Option<&str>) -> Self {
        if let Some(text) = text {
            let words = flag.into_iter().chain([text]);
            self.words
                .extend(words.map(|word| Argument::Text(word.to_owned())));
        }
        self
    }

    fn word(mut self, word: Argument) -> Self {
        self.words.push(word);
        self
    }

    fn title(&self) -> String {
        let shown = |word: &Argument| match word {
            Argument::Text(text) => text.lines().next().unwrap_or_default().to_owned(),
            Argument::File(file) => file.clone(),
            Argument::Pod(before, after) => format!("{before}POD{after}"),
            Argument::Scratch => "FILE".to_owned(),
        };
        let words: Vec<String> = self.words.iter().map(shown).collect();
        format!("kubectl {}", words.join(" "))
    }

    pub(crate) fn call(self, assertions: &'a Assertions) -> ProgramCall<'a> {
        self.call_with(None, assertions)
    }

    fn call_with(self, input: Option<String>, assertions: &'a Assertions) -> ProgramCall<'a> {
        let (title, namespace) = (self.title(), self.namespace);
        let action = CallAction::Kubectl(self.words, input);
        ProgramCall {
            title,
            namespace,
            ..ProgramCall::new(FieldPath::root(), action, assertions)
        }
    }
}

pub(crate) fn workload(kind: Option<&str>, name: &str) -> String {
    format!("{}/{name}", kind.unwrap_or("Deployment").to_lowercase())
}

/// Waits for the rollout of a workload, a few seconds at a time, so that the whole expectation obeys its own timeout.
pub(crate) fn rollout<'a>(
    workload: &str,
    replicas: Option<u32>,
    namespace: Option<&'a str>,
) -> ProgramCall<'a> {
    let kind = workload.split('/').next().unwrap_or_default();
    let kind = kind
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end_matches('s');
    let args = match replicas {
        Some(replicas) if !ROLLOUTS.contains(&kind) => {
            let wanted = format!("--for=jsonpath={{.status.replicas}}={replicas}");
            Args::new(["wait", workload, &wanted, "--timeout=5s"])
        }
        _ => Args::new(["rollout", "status", workload, "--timeout=5s"]),
    };
    args.namespace(namespace).call(&NOTHING)
}

pub(crate) fn apply(apply: &Apply) -> ProgramCall<'_> {
    let args = Args::new(["apply", "-f"]);
    let file = apply.file.as_ref();
    let word = file.map_or_else(
        || Argument::Text("-".to_owned()),
        |file| Argument::File(file.clone()),
    );
    let args = args.word(word).namespace(apply.namespace.as_deref());
    let input = apply.inline.as_ref().map(text_of);
    ProgramCall {
        exit_code: apply.exit_code.unwrap_or_default(),
        ..args.call_with(input, &apply.assertions)
    }
}

pub(crate) fn patch(patch: &Patch) -> ProgramCall<'_> {
    let kind = patch.type_.unwrap_or_default().name();
    let args = Args::new(["patch", &patch.kind, &patch.name, "--type", kind, "-p"]);
    let args = args.maybe(None, Some(&text_of(&patch.patch)));
    ProgramCall {
        exit_code: patch.exit_code.unwrap_or_default(),
        ..args
            .namespace(patch.namespace.as_deref())
            .call(&patch.assertions)
    }
}

/// Returns text as it is, other values as JSON, which is also valid YAML.
fn text_of(node: &Node) -> String {
    match node.as_str() {
        Some(text) => text.to_owned(),
        None => node.to_json().to_string(),
    }
}

pub(crate) fn delete(delete: &Delete) -> ProgramCall<'_> {
    let mut args = Args::new(["delete"]);
    let mut pod = None;
    match (&delete.file, &delete.pod) {
        (Some(file), _) => {
            args = args
                .maybe(None, Some("-f"))
                .word(Argument::File(file.clone()));
        }
        (None, choice) if choice.leader_election.is_some() => {
            let kind = delete.kind.as_deref().unwrap_or("Pod");
            args = args
                .maybe(None, Some(kind))
                .word(Argument::Pod("", String::new()));
            pod = Some(Cow::Borrowed(choice));
        }
        (None, choice) => {
            args = args.maybe(None, delete.kind.as_deref());
            args = args.maybe(None, choice.name.as_deref());
            args = args.maybe(Some("-l"), choice.label_selector.as_deref());
        }
    }
    if delete.ignore_not_found == Some(true) {
        args = args.maybe(None, Some("--ignore-not-found"));
    }
    // Finalizers may take longer than one call. Other assertions check the deletion.
    args = args.maybe(None, Some("--wait=false"));
    ProgramCall {
        exit_code: delete.exit_code.unwrap_or_default(),
        pod,
        ..args
            .namespace(delete.namespace.as_deref())
            .call(&delete.assertions)
    }
}

pub(crate) fn get(get: &Get) -> ProgramCall<'_> {
    let args = Args::new(["get", &get.kind]).maybe(None, get.name.as_deref());
    let args = args.maybe(Some("-l"), get.label_selector.as_deref());
    let format = get.field.as_ref().map_or_else(
        || {
            let yaml = get.yq.as_ref().map(|_| Format::Yaml);
            let format = get.format.or(yaml).unwrap_or(Format::Json);
            format.name().to_owned()
        },
        |field| format!("jsonpath={}", jsonpath(field)),
    );
    let args = args.maybe(Some("-o"), Some(&format));
    // A missing object has no output, like a missing field.
    let args = args.maybe(None, get.name.as_ref().map(|_| "--ignore-not-found"));
    let call = args
        .namespace(get.namespace.as_deref())
        .call(&get.assertions);
    ProgramCall {
        is_secret: is_secret(&get.kind),
        ..call.filtered(get.jq.as_ref(), get.yq.as_ref())
    }
}

/// Returns the expression in braces, as `kubectl` requires.
fn jsonpath(field: &str) -> String {
    let field = field.trim();
    if field.contains('{') {
        return field.to_owned();
    }
    let field = field.strip_prefix('$').unwrap_or(field);
    let dot = if field.starts_with(['.', '[']) {
        ""
    } else {
        "."
    };
    format!("{{{dot}{field}}}")
}

/// True if values of the kind are not shown.
fn is_secret(kind: &str) -> bool {
    let kind = kind.split(['.', '/']).next().unwrap_or_default();
    ["secret", "secrets"].contains(&kind.to_lowercase().as_str())
}

pub(crate) fn logs(logs: &Logs) -> ProgramCall<'_> {
    let mut args = Args::new(["logs"]);
    let mut pod = None;
    if let Some(selector) = &logs.pod.label_selector {
        args = args
            .maybe(Some("-l"), Some(selector))
            .maybe(None, Some("--tail=-1"));
    } else {
        args = args.word(Argument::Pod("", String::new()));
        pod = Some(Cow::Borrowed(&logs.pod));
    }
    let since = logs
        .since
        .map(|since| format!("{}s", since.0.as_secs().max(1)));
    let args = args.maybe(Some("-c"), logs.container.as_deref());
    let args = args.maybe(Some("--since"), since.as_deref());
    let call = args
        .namespace(logs.namespace.as_deref())
        .call(&logs.assertions);
    ProgramCall {
        pod,
        ..call.filtered(logs.jq.as_ref(), None)
    }
}

pub(crate) fn exec(exec: &Exec) -> ProgramCall<'_> {
    let args = Args::new(["exec"]).namespace(exec.namespace.as_deref());
    let args = args.word(Argument::Pod("", String::new()));
    let args = args.maybe(Some("-c"), exec.container.as_deref());
    let args = args.maybe(None, Some("--"));
    let words = exec.command.iter().map(Text::as_str);
    let args = words.fold(args, |args, word| args.maybe(None, Some(word)));
    let call = args.call(&exec.assertions);
    ProgramCall {
        exit_code: exec.exit_code.unwrap_or_default(),
        pod: Some(Cow::Borrowed(&exec.pod)),
        ..call.filtered(exec.jq.as_ref(), exec.yq.as_ref())
    }
}

pub(crate) fn copy(copy: &Copy) -> ProgramCall<'_> {
    let args = Args::new(["cp"]).namespace(copy.namespace.as_deref());
    let args = args.maybe(Some("-c"), copy.container.as_deref());
    let args = args
        .word(Argument::Pod("", format!(":{}", copy.src)))
        .word(Argument::Scratch);
    let (title, namespace) = (args.title(), args.namespace);
    let call = ProgramCall::new(
        FieldPath::root(),
        CallAction::Copy(args.words),
        &copy.assertions,
    );
    ProgramCall {
        title,
        namespace,
        pod: Some(Cow::Borrowed(&copy.pod)),
        ..call.filtered(copy.jq.as_ref(), copy.yq.as_ref())
    }
}

pub(crate) fn forward(forward: &PortForward) -> ProgramCall<'_> {
    let args = Args::new([]).namespace(forward.namespace.as_deref());
    let service = forward.service.as_ref();
    let args = match service {
        Some(service) => args.maybe(None, Some(&format!("svc/{service}"))),
        None => args.word(Argument::Pod("pod/", String::new())),
    };
    let method = forward.method.as_deref().unwrap_or("GET").to_uppercase();
    let path = forward.path.as_deref().unwrap_or("/");
    let headers = forward.headers.iter();
    let action = CallAction::Forward(Forward {
        port: forward.port,
        path: path.to_owned(),
        method: method.clone(),
        headers: headers
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        body: forward.body.as_ref().map(std::string::ToString::to_string),
        wait: forward.wait.map_or(Duration::ZERO, |span| span.0),
        target: args.words,
    });
    let target = service
        .or(forward.pod.as_ref())
        .map_or("the leader", String::as_str);
    let call = ProgramCall {
        title: format!("{method} {path} on port {} of {target}", forward.port),
        status: forward.status_code,
        namespace: forward.namespace.as_deref(),
        pod: service.is_none().then(|| {
            Cow::Owned(PodChoice {
                name: forward.pod.clone(),
                label_selector: None,
                leader_election: forward.leader_election.clone(),
            })
        }),
        ..ProgramCall::new(FieldPath::root(), action, &forward.assertions)
    };
    call.filtered(forward.jq.as_ref(), forward.yq.as_ref())
}

pub(crate) fn top(top: &Top) -> ProgramCall<'_> {
    let kind = top.kind.unwrap_or_default().name();
    let args = Args::new(["top", kind]).maybe(None, top.name.as_deref());
    let args = args.maybe(Some("-l"), top.label_selector.as_deref());
    let args = match top.containers {
        Some(true) => args.maybe(None, Some("--containers")),
        _ => args,
    };
    args.namespace(top.namespace.as_deref())
        .call(&top.assertions)
}
