//! Shows what would be created for custom resources, without a cluster: `ork render`.
//!
//! ```text
//!  Katalogs ── files::validate ──► plans ─┐
//!  custom resources, status, children ────┴─► preview (the pass itself) ──► Rendered ── print ──► YAML, JSON
//! ```

mod calls;
#[cfg(test)]
pub(crate) mod examples;
mod hide;
pub(crate) mod objects;
pub(crate) mod pick;
mod print;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    preview::{Assumptions, Preview, preview as run},
    reason::Reason,
    step::Failure,
};
use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    tree::FileSpan,
};
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, ObjectKey, OperatorPlan};

use self::objects::status_of;
pub use self::print::{Show, masked_objects, to_json, to_yaml};
pub(crate) use self::{
    calls::read_calls,
    hide::{is_secret, masked},
    objects::{FileObject, read_objects},
    pick::{Picked, pick},
};
use orkestra_loader::{
    compose::Fetch,
    files::{self, Compiled},
};

/// The input of rendering; `-` is standard input.
#[derive(Debug, Clone)]
pub struct RenderRequest {
    /// Katalogs, and definitions that they do not reference: files and folders.
    pub katalogs: Vec<PathBuf>,
    /// Custom resources.
    pub resources: Vec<PathBuf>,
    /// The assumed status, if a single custom resource is given.
    pub status: Option<PathBuf>,
    /// Existing objects: children of the custom resources, and objects that they read.
    pub children: Vec<PathBuf>,
    /// Custom resources of other operators, which `cross` reads.
    pub cross: Vec<PathBuf>,
    /// Responses to external calls: a map by the call's name.
    pub calls: Option<PathBuf>,
    /// The present time for templates.
    pub now: Timestamp,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// The result of rendering.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The result of a pass over each custom resource, in the given order; some may be missing if there are errors.
    pub passes: Vec<RenderedPass>,
    /// Problems of the files and of rendering, including warnings.
    pub problems: Diagnostics,
    /// The texts of the files by name, for the source lines of problems.
    pub texts: BTreeMap<String, String>,
}

/// The result of a pass over one custom resource.
#[derive(Debug)]
pub struct RenderedPass {
    /// Its kind and name: `Website shop/hello`.
    pub resource: String,
    /// What the pass would do.
    pub preview: Preview,
    /// The same, with `***` for everything that depends on the values of Secrets.
    pub hidden: Preview,
}

/// Renders custom resources. The same files and times give the same results.
pub async fn render(request: &RenderRequest) -> Rendered {
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut rendered = Rendered {
        passes: Vec::new(),
        problems: found.problems,
        texts: found.texts,
    };
    let resources = read_objects(&request.resources, &mut rendered);
    let children = read_objects(&request.children, &mut rendered);
    let cross = read_objects(&request.cross, &mut rendered);
    let status = request.status.as_slice();
    let status = read_status(status, &resources, &mut rendered);
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut rendered);
    if rendered.problems.has_errors() {
        return rendered;
    }
    let nodes = |objects: Vec<FileObject>| -> Vec<Node> {
        objects.into_iter().map(|object| object.node).collect()
    };
    let (children, cross) = (nodes(children), nodes(cross));
    for resource in &resources {
        rendered.problems.extend(refused(&found.katalogs, resource));
        let given = RenderInput {
            resource,
            status: status.as_ref(),
            children: &children,
            cross: &cross,
            calls: &calls,
            now: request.now,
        };
        match pass(&found.katalogs, &given) {
            Ok((pass, failures)) => {
                rendered.passes.push(pass);
                rendered.problems.extend(failures);
            }
            Err(problem) => rendered.problems.push(*problem),
        }
    }
    rendered
}

/// Returns the problems for which the API server would refuse a custom resource of an operated kind.
pub(crate) fn refused(katalogs: &[Compiled], resource: &FileObject) -> Diagnostics {
    // A kind without an operator is reported where the operator is missing.
    if pick(katalogs, resource).is_err() {
        return Diagnostics::default();
    }
    let mut found = files::check_schema(katalogs, &resource.node).unwrap_or_default();
    resource.locate(&mut found);
    found
}

/// The input of one pass.
pub(crate) struct RenderInput<'a> {
    pub(crate) resource: &'a FileObject,
    pub(crate) status: Option<&'a Node>,
    pub(crate) children: &'a [Node],
    pub(crate) cross: &'a [Node],
    pub(crate) calls: &'a BTreeMap<String, Node>,
    pub(crate) now: Timestamp,
}

impl<'a> RenderInput<'a> {
    /// Returns what the pass assumes.
    pub(crate) fn assumptions(
        &self,
        picked: &Picked<'a>,
        scopes: &'a BTreeMap<GroupKind, bool>,
    ) -> Assumptions<'a> {
        let mut cr = self.resource.node.clone();
        if let (Some(status), Node::Map(map)) = (self.status, &mut cr) {
            map.insert("status".into(), status.clone());
        }
        Assumptions {
            cr,
            children: self.children,
            cross: self.cross,
            calls: self.calls,
            version: picked.version(),
            scopes,
            now: self.now,
            seen_as: None,
        }
    }
}

/// Runs the pass over one custom resource; returns it with its failures.
pub(crate) fn pass(
    katalogs: &[Compiled],
    given: &RenderInput<'_>,
) -> Result<(RenderedPass, Diagnostics), Box<Diagnostic>> {
    let refuse = |path: &str, message: String| {
        let path = FieldPath::parse(path);
        let problem = given.resource.problem(Code::CannotRender, path, message);
        Err(Box::new(problem))
    };
    let picked = pick(katalogs, given.resource)?;
    if given.resource.is_deleting() {
        let message = "the custom resource is being deleted: nothing would be created";
        return refuse("metadata.deletionTimestamp", message.to_owned());
    }
    let scopes = picked.scopes();
    let assumed = given.assumptions(&picked, &scopes);
    let preview = match run(picked.operator, assumed.clone()) {
        Ok(preview) => preview,
        Err(why) => return refuse("", why.to_string()),
    };
    let hidden = without_secrets(picked.operator, &assumed, &preview);
    let resource = name_of(&preview);
    let failures = problems(&hidden, &picked, (given, &resource));
    let pass = RenderedPass {
        resource,
        preview,
        hidden,
    };
    Ok((pass, failures))
}

/// Converts the failures of a pass to problems with positions.
fn problems(
    hidden: &Preview,
    picked: &Picked<'_>,
    (given, resource): (&RenderInput<'_>, &str),
) -> Diagnostics {
    let mut asked = picked.operator.asked();
    let has_unanswered = asked.any(|name| !given.calls.contains_key(name));
    let problem = |failure: &Failure| match failure.reason {
        Reason::ValidationFailed => {
            let path = FieldPath::parse(&failure.at);
            let message = format!("{}: {}", failure.at, failure.message);
            given.resource.problem(Code::CannotRender, path, message)
        }
        Reason::Unavailable if has_unanswered => {
            let hint = "put the response into a file and pass it with `--external`";
            located(failure, picked, resource).hint(hint)
        }
        _ => located(failure, picked, resource),
    };
    hidden.failures.iter().map(problem).collect()
}

/// Returns the preview with everything hidden that depends on the values of Secrets.
fn without_secrets(
    operator: &OperatorPlan,
    assumed: &Assumptions<'_>,
    preview: &Preview,
) -> Preview {
    let mut hidden = preview.clone();
    let mut objects = assumed.children.iter().chain(&preview.objects);
    if !objects.any(hide::is_secret) {
        return hidden;
    }
    for way in hide::WAYS {
        let children: Vec<Node> = assumed.children.iter().map(way).collect();
        let other = Assumptions {
            children: &children,
            seen_as: Some(way),
            ..assumed.clone()
        };
        // Names and kinds are the same, so it cannot be refused if the first was not.
        if let Ok(other) = run(operator, other) {
            hide::hide(&mut hidden, &other);
        }
    }
    hidden
}

/// Reads the assumed status, which belongs to a single custom resource.
fn read_status(
    paths: &[PathBuf],
    resources: &[FileObject],
    rendered: &mut Rendered,
) -> Option<Node> {
    let given = objects::read_documents(paths, rendered);
    let first = given.first()?;
    if resources.len() > 1 || given.len() > 1 {
        let message = "`--status` applies to one custom resource, and there are several";
        let problem = first.problem(Code::CannotRender, FieldPath::root(), message);
        rendered
            .problems
            .push(problem.hint("render one custom resource at a time"));
    }
    Some(status_of(&first.node))
}

fn name_of(preview: &Preview) -> String {
    let kind = preview.cr.get("kind").and_then(Node::as_str);
    format!(
        "{} {}",
        kind.unwrap_or_default(),
        ObjectKey::of(&preview.cr)
    )
}

/// Converts a failure of a pass to a problem with its position, in the Katalog or in a Motif.
fn located(failure: &Failure, picked: &Picked<'_>, name: &str) -> Diagnostic {
    let (file, path, place) = place_of(&failure.at, picked.katalog);
    let message = format!("{} (for {name})", failure.message);
    let mut problem = Diagnostic::error(Code::CannotRender, path, message).at(place);
    problem.file = file.map(str::to_owned);
    problem
}

/// Returns the file, the field and the position of a place of a plan, in the Katalog, in one of its sources or in a Motif.
pub(crate) fn place_of<'k>(
    at: &str,
    katalog: &'k Compiled,
) -> (Option<&'k str>, FieldPath, Option<FileSpan>) {
    let Compiled {
        document,
        library,
        composed,
        ..
    } = katalog;
    let composed = composed.as_ref().and_then(|composed| composed.place(at));
    let (file, path, tree) = match composed.or_else(|| library.place(at)) {
        Some((file, path, tree)) => (Some(file), path, tree),
        None => (
            document.file.as_deref(),
            FieldPath::parse(at),
            &document.tree,
        ),
    };
    let span = tree.locate(&path);
    (file, path, span)
}

/// `Fish.water.example`, for messages.
fn kind_of(group: &str, kind: &str) -> String {
    let kind = GroupKind {
        group: group.into(),
        kind: kind.into(),
    };
    kind.to_string()
}
