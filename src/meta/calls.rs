//! Single requests of the meta-controller: few and small, each with a deadline.

use std::time::Duration;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use orkestra_core::{api::names, plan::GroupKind};
use serde_json::Value;

/// Longest that one request may take; the API server gives up after 60 s itself.
const DEADLINE: Duration = Duration::from_secs(30);
/// Objects a page; as kubectl.
const PAGE: u32 = 500;
/// Field manager of the meta-controller's own writes.
pub(crate) const MANAGER: &str = "orkestra";

/// A request failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {problem}")]
pub struct CallError {
    /// Verb, resource and object: `patch websites.demo.example.org shop/one`.
    pub what: String,
    /// Why.
    pub problem: Problem,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// 404.
    #[error("not found")]
    NotFound,
    /// 409: someone else was faster, or the name exists.
    #[error("it was changed by somebody else")]
    Conflict,
    /// 403, with the API server's words, which name verb and resource.
    #[error("{0}")]
    Forbidden(String),
    /// Anything else that the API server said.
    #[error("{0}")]
    Refused(String),
    /// No answer.
    #[error("the API server does not answer: {0}")]
    Unreachable(String),
}

impl CallError {
    /// Whether the object or its kind is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self.problem, Problem::NotFound)
    }

    /// Whether somebody else was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self.problem, Problem::Conflict)
    }

    /// Whether a right is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.problem, Problem::Forbidden(_))
    }
}

impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Self::NotFound,
                409 => Self::Conflict,
                403 => Self::Forbidden(status.message),
                _ => Self::Refused(status.message),
            },
            other => Self::Unreachable(chain(&other)),
        }
    }
}

/// An error with its causes, in a line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

/// A resource, in all namespaces or in one.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    client: Client,
    kind: ApiResource,
}

impl Resource {
    /// The resource served at `group/version/plural`.
    pub(crate) fn new(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Self { client: client.clone(), kind }
    }

    /// Katalogs.
    pub(crate) fn katalogs(client: &Client) -> Self {
        Self::new(client, names::GROUP, names::VERSION, "Katalog", "katalogs")
    }

    /// What is known of `kind` by discovery; none when no such kind is served.
    pub(crate) async fn discover(client: &Client, kind: &GroupKind) -> Result<Option<Self>, CallError> {
        let call = async {
            match kube::discovery::group(client, &kind.group).await {
                Err(kube::Error::Discovery(_)) => Ok(None),
                found => found.map(Some),
            }
        };
        let Some(group) = unary(&format!("discover {kind}"), call).await? else {
            return Ok(None);
        };
        let served = group.versions().flat_map(|version| group.versioned_resources(version));
        let found = served.map(|(found, _)| found).find(|found| found.kind == *kind.kind);
        Ok(found.map(|kind| Self { client: client.clone(), kind }))
    }

    fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.kind),
            None => Api::all_with(self.client.clone(), &self.kind),
        }
    }

    fn what(&self, verb: &str, namespace: Option<&str>, name: &str) -> String {
        let dot = if self.kind.group.is_empty() { "" } else { "." };
        let slash = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{verb} {}{dot}{} {slash}{name}", self.kind.plural, self.kind.group).trim_end().to_owned()
    }

    /// The object, or none.
    pub(crate) async fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<DynamicObject>, CallError> {
        unary(&self.what("get", namespace, name), self.api(namespace).get_opt(name)).await
    }

    /// Everything that `labels` select, whole.
    pub(crate) async fn list(&self, namespace: Option<&str>, labels: Option<&str>) -> Result<Vec<DynamicObject>, CallError> {
        let (api, what) = (self.api(namespace), self.what("list", namespace, ""));
        let mut pages = Pages::new(labels);
        let mut all = Vec::new();
        while let Some(params) = pages.next() {
            let page: ObjectList<_> = unary(&what, api.list(&params)).await?;
            pages.read(page.metadata.continue_);
            all.extend(page.items);
        }
        Ok(all)
    }

    /// The metadata of everything that `labels` select in all namespaces.
    pub(crate) async fn list_metadata(&self, labels: Option<&str>) -> Result<Vec<PartialObjectMeta<DynamicObject>>, CallError> {
        let (api, what) = (self.api(None), self.what("list", None, ""));
        let mut pages = Pages::new(labels);
        let mut all = Vec::new();
        while let Some(params) = pages.next() {
            let page: ObjectList<_> = unary(&what, api.list_metadata(&params)).await?;
            pages.read(page.metadata.continue_);
            all.extend(page.items);
        }
        Ok(all)
    }

    /// Merge patch.
    pub(crate) async fn merge(&self, namespace: Option<&str>, name: &str, patch: &Value) -> Result<DynamicObject, CallError> {
        let what = self.what("patch", namespace, name);
        unary(&what, self.api(namespace).patch(name, &by_us(), &Patch::Merge(patch))).await
    }

    /// Merge patch on the status subresource.
    pub(crate) async fn merge_status(&self, namespace: Option<&str>, name: &str, patch: &Value) -> Result<DynamicObject, CallError> {
        let what = self.what("patch the status of", namespace, name);
        unary(&what, self.api(namespace).patch_status(name, &by_us(), &Patch::Merge(patch))).await
    }

    /// Server-side apply as `manager`, with force: what a user's own file declares is to be so.
    pub(crate) async fn apply(&self, namespace: Option<&str>, name: &str, object: &Value, manager: &str) -> Result<DynamicObject, CallError> {
        let what = self.what("apply", namespace, name);
        let params = PatchParams::apply(manager).force();
        unary(&what, self.api(namespace).patch(name, &params, &Patch::Apply(object))).await
    }

    /// Creates it.
    pub(crate) async fn create(&self, namespace: Option<&str>, object: &DynamicObject) -> Result<DynamicObject, CallError> {
        let what = self.what("create", namespace, object.metadata.name.as_deref().unwrap_or_default());
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        unary(&what, self.api(namespace).create(&params, object)).await
    }

    /// Deletes it; one that is not there is deleted.
    pub(crate) async fn delete(&self, namespace: Option<&str>, name: &str) -> Result<(), CallError> {
        let api = self.api(namespace);
        match unary(&self.what("delete", namespace, name), api.delete(name, &kube::api::DeleteParams::default())).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

fn by_us() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

async fn unary<T>(what: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
    let problem = match tokio::time::timeout(DEADLINE, call).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => Problem::from(error),
        Err(_) => Problem::Unreachable(format!("nothing within {DEADLINE:?}")),
    };
    Err(CallError { what: what.to_owned(), problem })
}

/// Walks through the pages of a list.
struct Pages {
    params: Option<ListParams>,
}

impl Pages {
    fn new(labels: Option<&str>) -> Self {
        let params = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default().limit(PAGE) };
        Self { params: Some(params) }
    }

    fn next(&self) -> Option<ListParams> {
        self.params.clone()
    }

    fn read(&mut self, token: Option<String>) {
        self.params = match (self.params.take(), token.filter(|token| !token.is_empty())) {
            (Some(params), Some(token)) => Some(params.continue_token(&token)),
            _ => None,
        };
    }
}
