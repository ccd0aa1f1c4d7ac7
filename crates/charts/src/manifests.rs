//! Splits rendered files into documents and hooks, in installation order.

use orkestra_object::value::Node;

use crate::error::Error;
use crate::yaml;

/// One rendered document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The template, starting with the chart's name.
    pub source: String,
    /// The text.
    pub text: String,
    /// The text parsed as YAML; null if it contains only comments.
    pub object: Node,
    /// The events of a hook, such as `pre-install`; empty for other documents.
    pub hooks: Vec<String>,
}

/// The installation order of kinds. Other kinds follow, sorted by name.
///
/// Source: helm's `InstallOrder`.
const ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The events of hooks.
const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

/// Splits a file into documents: a line that begins with `---` begins the next.
fn split(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---") {
            documents.push(&text[start..at]);
            start = at + line.len() - rest.trim_start_matches([' ', '\t']).len();
        }
        at += line.len();
    }
    documents.push(&text[start..]);
    let documents = documents
        .into_iter()
        .filter(|document| !document.trim().is_empty());
    documents.map(str::trim_start).collect()
}

/// Splits rendered files, sorted by their paths, into documents and hooks.
///
/// # Errors
/// A document is not valid YAML.
pub(crate) fn sort(files: Vec<(String, String)>) -> Result<(Vec<Document>, Vec<Document>), Error> {
    let (mut documents, mut hooks) = (Vec::new(), Vec::new());
    for (source, text) in files {
        for text in split(&text) {
            let object = yaml::read(text).map_err(|error| Error::file(&source, error))?;
            let document = Document {
                source: source.clone(),
                text: text.to_owned(),
                hooks: Vec::new(),
                object,
            };
            match events(&document.object) {
                None => documents.push(document),
                // A hook with an unknown event is never run.
                Some(events) if events.iter().any(|event| !EVENTS.contains(&&**event)) => {}
                Some(hooks_of) => hooks.push(Document {
                    hooks: hooks_of,
                    ..document
                }),
            }
        }
    }
    documents.sort_by_cached_key(place);
    hooks.sort_by_cached_key(place);
    Ok((documents, hooks))
}

/// Returns the events of a hook; `None` for other documents.
fn events(object: &Node) -> Option<Vec<String>> {
    let events = object.annotation("helm.sh/hook")?;
    Some(
        events
            .split(',')
            .map(|event| event.trim().to_lowercase())
            .collect(),
    )
}

/// Returns the position of a document's kind in the order; unknown kinds come last, by name.
fn place(document: &Document) -> (usize, String) {
    let kind = document
        .object
        .get("kind")
        .and_then(Node::as_str)
        .unwrap_or_default();
    match ORDER.iter().position(|known| *known == kind) {
        Some(at) => (at, String::new()),
        None => (ORDER.len(), kind.to_owned()),
    }
}
