//! Explains a field of a child of a live custom resource, or why the resource is not ready: `ork why`. Read-only.
//!
//! ```text
//!  Katalog ── validate ──► plan ─┐
//!  custom resource, children ────┼──► why ──► expressions with their lines, the values that decide, the managers of the field
//!  what a pass reads ────────────┘     └──► without a field: what the resource waits for, and what the next pass does
//! ```

#[cfg(test)]
mod examples;
mod explained;
mod overview;
mod print;
mod target;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use orkestra_cluster::requests::Cluster;
use orkestra_engine::reconcile::{
    forecast::{FieldChange, PlannedAction},
    owned::{Holder, OwnValues, holders},
    why::{Effect, Input, Origin, Why, WhyInput, why},
};
use orkestra_language::{api::names, diagnostics::Diagnostics};
use orkestra_object::value::{MASK, Node, Path as Field, set};
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, OperatorPlan};
use serde_json::Value;

pub use self::{
    explained::{Explained, Manager, Next, OriginWord, Place, ShownExpression, ShownInput},
    overview::{ChildState, Overview},
    print::{overview as overview_text, text},
};
use crate::{
    live::{self, Error, LiveCluster},
    plan::{Forecast, PlannedChange, Selection, Survey, Surveyed, planned_changes},
    render::{Picked, Rendered, masked, place_of, read_calls},
};
use orkestra_loader::{
    compose::Fetch,
    files::{self, Compiled},
};

/// The question.
#[derive(Debug, Clone)]
pub struct WhyRequest {
    /// The Katalog, and definitions that it does not reference.
    pub katalogs: Vec<PathBuf>,
    /// The kind of the custom resource.
    pub kind: GroupKind,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// `KIND/NAME` or `KIND/NAME.PATH` of a child; none asks about the custom resource.
    pub child: Option<String>,
    /// Responses to external calls and hooks: a map by name.
    pub calls: Option<PathBuf>,
    /// Whether values of Secrets are shown.
    pub secrets: bool,
    /// The present time for templates.
    pub now: Timestamp,
    /// The folder to which names of files are relative.
    pub root: Option<PathBuf>,
    /// Fetches the sources of compositions.
    pub fetch: Arc<dyn Fetch>,
}

/// The answer.
#[derive(Debug)]
pub enum Answer {
    /// The Katalog is not valid: only problems.
    Invalid,
    /// There is no such custom resource, operator or child, with the reason.
    Unknown(String),
    /// Why a field is as it is.
    Field(Box<Explained>),
    /// Why the custom resource is as it is.
    Resource(Box<Overview>),
}

/// Answers the question; with the problems and the texts of the files.
///
/// # Errors
/// The cluster does not answer, or refuses a request.
pub async fn explain(
    cluster: &Cluster,
    request: &WhyRequest,
) -> Result<(Answer, Diagnostics, BTreeMap<String, String>), Error> {
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut rendered = Rendered {
        passes: Vec::new(),
        problems: found.problems,
        texts: found.texts,
    };
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut rendered);
    let answer = if rendered.problems.has_errors() {
        Answer::Invalid
    } else {
        answer(cluster, request, &found.katalogs, &calls).await?
    };
    Ok((answer, rendered.problems, rendered.texts))
}

async fn answer(
    cluster: &Cluster,
    request: &WhyRequest,
    katalogs: &[Compiled],
    calls: &BTreeMap<String, Node>,
) -> Result<Answer, Error> {
    let picked = katalogs.iter().find_map(|katalog| {
        let mut operators = katalog.plan.operators.iter();
        let operator = operators.find(|one| one.resource.group_kind() == request.kind)?;
        Some(Picked { katalog, operator })
    });
    let Some(picked) = picked else {
        let why = format!("the Katalog does not operate {}", request.kind);
        return Ok(Answer::Unknown(why));
    };
    let survey = Survey {
        cluster: LiveCluster::new(cluster.clone()),
        of: Selection::One(&request.key),
        calls,
        now: request.now,
    };
    let surveyed = survey.survey(&picked).await?;
    let Some(subject) = Subject::of((&picked, request), &survey, &surveyed) else {
        let why = format!("{} {} does not exist", request.kind, request.key);
        return Ok(Answer::Unknown(why));
    };
    match &request.child {
        None => Ok(Answer::Resource(Box::new(overview::overview(&subject)))),
        Some(text) => Ok(subject.field(text)),
    }
}

/// A custom resource with what is known about it.
struct Subject<'a> {
    picked: &'a Picked<'a>,
    request: &'a WhyRequest,
    survey: &'a Survey<'a>,
    known: &'a live::Subject,
    cross: &'a [Node],
    forecast: &'a Forecast,
}

impl<'a> Subject<'a> {
    fn of(
        (picked, request): (&'a Picked<'a>, &'a WhyRequest),
        survey: &'a Survey<'a>,
        surveyed: &'a Surveyed,
    ) -> Option<Self> {
        Some(Self {
            picked,
            request,
            survey,
            known: surveyed.subjects.first()?,
            cross: &surveyed.cross,
            forecast: surveyed.forecasts.first()?,
        })
    }

    fn operator(&self) -> &'a OperatorPlan {
        self.picked.operator
    }

    fn name(&self) -> String {
        format!(
            "{} {}",
            self.operator().resource.kind,
            ObjectKey::of(&self.known.cr)
        )
    }

    /// Returns the children that a pass renders.
    fn rendered(&self) -> impl Iterator<Item = &'a Node> {
        self.forecast
            .iter()
            .flat_map(|(preview, _)| &preview.objects)
    }

    /// Returns the keys of the children that a pass renders, and of those that exist.
    fn keys(&self) -> BTreeSet<ChildKey> {
        let all = self.rendered().chain(self.own());
        all.filter_map(ChildKey::of).collect()
    }

    /// Returns its children, without other objects that its pass reads.
    fn own(&self) -> impl Iterator<Item = &'a Node> {
        let uid = self.known.cr.meta_text("uid");
        let is_own = move |one: &&Node| one.label(names::LABEL_OWNER_UID) == uid;
        self.known.children.iter().filter(is_own)
    }

    fn live(&self, key: &ChildKey) -> Option<&'a Node> {
        find(self.known.children.iter(), key)
    }

    fn place(&self, at: &str) -> Place {
        let (file, path, span) = place_of(at, self.picked.katalog);
        let root = self.request.root.as_deref();
        let relative = |file: &str| {
            let inside = root.and_then(|root| Path::new(file).strip_prefix(root).ok());
            inside.map_or(file.to_owned(), |inside| inside.display().to_string())
        };
        Place {
            file: file.map(relative),
            line: span.map(|span| span.line),
            column: span.map(|span| span.column),
            path: path.to_string(),
        }
    }

    fn field(&self, text: &str) -> Answer {
        let keys = self.keys();
        let (key, path) = match target::find(text, &keys) {
            Ok(found) => found,
            Err(why) => return Answer::Unknown(why),
        };
        let wanted = find(self.rendered(), &key).or(self.live(&key));
        let path = match target::path(path, wanted.unwrap_or(&Node::Null)) {
            Ok(path) => path,
            Err(why) => return Answer::Unknown(format!("{key}: {why}")),
        };
        let scopes = self.picked.scopes();
        let assumed = self
            .survey
            .assumed(self.picked, self.known, self.cross, &scopes);
        match why(self.operator(), &assumed, (&key, &path)) {
            Ok(Some(why)) => Answer::Field(Box::new(self.explained(&key, &path, &why))),
            Ok(None) => Answer::Unknown(format!(
                "a pass does not render {key}: no entry declares it with these values of {}",
                self.name()
            )),
            Err(why) => Answer::Unknown(why.to_string()),
        }
    }

    fn explained(&self, key: &ChildKey, path: &Field, why: &Why) -> Explained {
        let live = self.live(key);
        let mut decides = why.inputs.iter().filter(|one| one.effect == Effect::Value);
        let hides = decides.any(|one| self.hides(&one.input));
        let shown = |node: &Node| {
            if hides {
                self.shown(node, hides)
            } else {
                self.shown_at(key, path, node)
            }
        };
        let (origin, expressions) = match &why.origin {
            Origin::Expressions(all) => (OriginWord::Expressions, &all[..]),
            Origin::Fixed => (OriginWord::Entry, &[][..]),
            Origin::Copied => (OriginWord::Copy, &[][..]),
            Origin::Generated => (OriginWord::Generated, &[][..]),
            Origin::Mark => (OriginWord::Mark, &[][..]),
        };
        let expressions = expressions.iter().map(|one| ShownExpression {
            source: one.source.to_string(),
            place: self.place(&one.place),
        });
        Explained {
            resource: self.name(),
            child: key.to_string(),
            field: path.to_string(),
            value: why.value.as_ref().map(shown),
            live: live.and_then(|live| live.at(path)).map(shown),
            next: self.next(key, path, live),
            origin,
            expressions: expressions.collect(),
            entry: self.place(&why.entry),
            inputs: why.inputs.iter().map(|one| self.input(one)).collect(),
            managers: live.map_or_else(Vec::new, |live| managers(live, path)),
            created_once: why.is_past,
            partial: why.is_partial,
        }
    }

    /// Returns a value; masked if it is hidden and the caller does not ask for values of Secrets.
    fn shown(&self, node: &Node, hides: bool) -> Value {
        if hides && !self.request.secrets {
            MASK.into()
        } else {
            node.to_json()
        }
    }

    /// Returns the value of a field of a child; of a Secret, with its values masked.
    fn shown_at(&self, key: &ChildKey, path: &Field, node: &Node) -> Value {
        if self.request.secrets || key.kind != GroupKind::parse("Secret") {
            return node.to_json();
        }
        let mut object = Node::default();
        set(&mut object, path, node.clone());
        let masked = masked(&object);
        masked.at(path).unwrap_or(&Node::Null).to_json()
    }

    /// True if the value is one of a Secret, or of a child that may hold one.
    fn hides(&self, input: &Input) -> bool {
        match input {
            Input::Object(key, _) => {
                let mut children = self.operator().children.iter();
                key.kind == GroupKind::parse("Secret")
                    || children.any(|one| one.kind.group_kind() == key.kind && one.shows_secrets)
            }
            Input::Cross(key, _) => key.kind == GroupKind::parse("Secret"),
            Input::Resource(_) | Input::Answer(..) | Input::Time => false,
        }
    }

    fn input(&self, one: &WhyInput) -> ShownInput {
        let from = match &one.input {
            Input::Resource(path) => format!(".{path}"),
            Input::Object(key, path) | Input::Cross(key, path) => format!("{key} {path}"),
            Input::Answer(name, path) if path.is_empty() => format!("answer `{name}`"),
            Input::Answer(name, path) => format!("answer `{name}` {path}"),
            Input::Time => "the time".to_owned(),
        };
        let hides = self.hides(&one.input);
        ShownInput {
            from,
            value: one.value.as_ref().map(|value| self.shown(value, hides)),
            decides_existence: one.effect == Effect::Existence,
        }
    }

    fn next(&self, key: &ChildKey, path: &Field, live: Option<&Node>) -> Next {
        let mut writes = self.forecast.iter().flat_map(|(_, writes)| writes);
        let Some(write) = writes.find(|write| write.key == *key) else {
            return Next::Keeps;
        };
        let object = live.unwrap_or(&Node::Null);
        let is_field = |field: &FieldChange| {
            target::path(&field.path, object).is_ok_and(|at| at.overlaps(path))
        };
        match &write.action {
            PlannedAction::Create => Next::Creates,
            PlannedAction::Immutable(_) | PlannedAction::Refuse(_) => Next::Refused,
            PlannedAction::Delete => Next::Writes,
            action if action.fields().iter().any(is_field) => Next::Writes,
            PlannedAction::Replace(_) | PlannedAction::Adopt(_) | PlannedAction::Update(_) => {
                Next::Keeps
            }
        }
    }

    /// Returns what the next pass does to the children.
    fn changes(&self) -> Vec<PlannedChange> {
        match self.forecast {
            Ok((_, writes)) => planned_changes(
                self.operator(),
                &self.known.cr,
                writes,
                self.request.secrets,
            ),
            Err(_) => Vec::new(),
        }
    }
}

/// Returns the object of that key.
fn find<'n>(mut objects: impl Iterator<Item = &'n Node>, key: &ChildKey) -> Option<&'n Node> {
    objects.find(|object| ChildKey::of(object).as_ref() == Some(key))
}

fn managers(live: &Node, path: &Field) -> Vec<Manager> {
    let own = OwnValues {
        name: live.meta_text("name").unwrap_or_default(),
        owner: None,
    };
    let managed = live.meta("managedFields").unwrap_or(&Node::Null);
    let all = holders(managed, live, path, own).into_iter();
    let shown = |holder: Holder| Manager {
        name: holder.manager,
        applies: holder.applied,
        time: holder.time,
    };
    all.map(shown).collect()
}
