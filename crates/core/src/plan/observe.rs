//! `observe`: objects and Events that trigger a pass.

mod events;
mod key;

use super::{
    ChildPlan, GroupKind, Library, NameRule, Part, ResourceType, Schemas, kinds, library::Content,
    profiles::no_include_inside,
};
use crate::{
    api::{self, observe::Change},
    diagnostics::Code,
    resources::{custom, scope::At},
    value::Path,
};

pub(crate) use self::key::LABEL_SERVICE;
pub use self::{
    events::{EventPlan, event_kind},
    key::KeyPlan,
};

/// The triggers of a pass beside the custom resource, its children and the objects that a pass reads.
#[derive(Debug, Default)]
pub struct ObservePlan {
    /// Objects, in the declared order, those of the included file first.
    pub watches: Box<[WatchPlan]>,
    /// Events, by name.
    pub events: Box<[EventPlan]>,
}

/// Objects whose changes trigger a pass.
#[derive(Debug)]
pub struct WatchPlan {
    /// Its path in the Katalog, for messages.
    pub path: Box<str>,
    /// Their kind.
    pub kind: ResourceType,
    /// Their namespace; `None` is any.
    pub namespace: Option<Box<str>>,
    /// Their name; `None` is any.
    pub name: Option<Box<str>>,
    /// The changes that trigger a pass.
    pub on: Changes,
    /// Finds the custom resource of an object.
    pub key: KeyPlan,
    /// The paths that templates read of them below `.children`, without paths covered by others.
    pub reads: Vec<Path>,
}

/// A set of changes of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Created.
    pub create: bool,
    /// Updated.
    pub update: bool,
    /// Deleted.
    pub delete: bool,
}

impl Changes {
    /// Returns the listed changes; all without a list.
    fn of(listed: Option<&[Change]>) -> Self {
        let has = |change| listed.is_none_or(|listed| listed.contains(&change));
        Self {
            create: has(Change::Create),
            update: has(Change::Update),
            delete: has(Change::Delete),
        }
    }

    /// True if both have a change in common.
    pub fn meet(self, other: Self) -> bool {
        self.create && other.create || self.update && other.update || self.delete && other.delete
    }
}

impl WatchPlan {
    /// Returns the paths that are kept of the objects.
    pub fn kept_paths(&self) -> Vec<Path> {
        let mut paths = self.key.kept_paths();
        paths.extend(self.reads.iter().cloned());
        paths
    }

    /// Creates the watch of the `EndpointSlices` of the Services that the operator creates, used if templates read them.
    pub(crate) fn of_endpoint_slices() -> Self {
        let kind = endpoint_slice();
        Self {
            path: "observe.watch".into(),
            kind,
            namespace: None,
            name: None,
            on: Changes::of(None),
            key: KeyPlan::Service,
            reads: Vec::new(),
        }
    }

    /// Returns the field selector for the API server; `None` selects all.
    pub fn field_selector(&self) -> Option<String> {
        let name = self.name.as_deref()?;
        Some(format!("metadata.name={}", escaped(name)))
    }

    /// True if both lead from the same objects to the same custom resources.
    fn is_same(&self, other: &Self) -> bool {
        self.kind.group_kind() == other.kind.group_kind()
            && self.namespace == other.namespace
            && self.name == other.name
            && self.key.is_same(&other.key)
    }
}

/// Returns `EndpointSlice`, which the control plane creates for Services.
pub(crate) fn endpoint_slice() -> ResourceType {
    kinds::resource("discovery.k8s.io", "v1", "EndpointSlice")
}

impl ObservePlan {
    /// Returns the kinds that templates can read below `.children` although the operator does not create them: watched
    /// kinds, and the `EndpointSlices` of its Services. Secrets of others are not readable.
    pub(crate) fn readable<'a>(
        &'a self,
        children: &'a [ChildPlan],
    ) -> impl Iterator<Item = ResourceType> + 'a {
        let is_service = |child: &ChildPlan| child.kind.group_kind() == GroupKind::parse("Service");
        let slices = children.iter().any(is_service).then(endpoint_slice);
        let watched = self.watches.iter().map(|watch| watch.kind.clone());
        let all = watched.chain(slices);
        all.filter(move |kind| {
            let kind = kind.group_kind();
            let is_made = children.iter().any(|child| child.kind.group_kind() == kind);
            !is_made && kind != GroupKind::parse("Secret")
        })
    }

    /// True if there are no watches and no Events.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty() && self.events.is_empty()
    }

    /// Returns the key of every entry, which finds the custom resource.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &KeyPlan> {
        let watches = self.watches.iter().map(|watch| &watch.key);
        watches.chain(self.events.iter().map(|events| &events.key))
    }
}

/// The compiled parts of a block and of the file that it includes.
#[derive(Default)]
struct Compiled {
    watches: Vec<WatchPlan>,
    events: Vec<EventPlan>,
}

/// Compiles the block at `at`; invalid parts are reported and left out.
pub(crate) fn compile(
    at: &At<'_>,
    declared: Option<&api::observe::Observe>,
    schemas: &Schemas,
    library: &Library,
) -> ObservePlan {
    let Some(declared) = declared else {
        return ObservePlan::default();
    };
    let mut all = Compiled::default();
    if let Some(text) = &declared.include
        && let Some(document) = library.open(&at.field("include"), Part::Observe, text)
        && let Content::Observe(included) = &document.content
    {
        let at = at.document(&document.origin).field("observe").as_at(at);
        no_include_inside(&at, included.include.is_some());
        all.add(&at, included, schemas);
    }
    all.add(at, declared, schemas);
    all.events.sort_by(|a, b| a.name.cmp(&b.name));
    ObservePlan {
        watches: all.watches.into(),
        events: all.events.into(),
    }
}

impl Compiled {
    fn add(&mut self, at: &At<'_>, declared: &api::observe::Observe, schemas: &Schemas) {
        let api::observe::Observe {
            watch,
            events,
            include: _,
        } = declared;
        for (index, declared) in watch.iter().enumerate() {
            let at = at.field("watch").index(index);
            let Some(plan) = one(&at, declared, schemas) else {
                continue;
            };
            if let Some(other) = self.watches.iter().find(|other| other.is_same(&plan)) {
                let message = format!(
                    "`{}` leads from the same objects to the same custom resources",
                    other.path
                );
                let hint = "list the changes of both under one `on`";
                at.error_hint(Code::SetTwice, message, hint);
                continue;
            }
            self.watches.push(plan);
        }
        for (name, filter) in events {
            let at = at.field("events");
            let Some(plan) = events::compile(&at, name, filter) else {
                continue;
            };
            if self.events.iter().any(|other| other.name == plan.name) {
                let message = format!("the included file declares `.events.{name}` already");
                let hint = "give one of them another name";
                at.key(name).error_hint(Code::SetTwice, message, hint);
                continue;
            }
            self.events.push(plan);
        }
    }
}

fn one(at: &At<'_>, declared: &api::observe::Watch, schemas: &Schemas) -> Option<WatchPlan> {
    let api::observe::Watch {
        api_version,
        kind,
        namespace,
        name,
        on,
        key_from,
        index: _,
    } = declared;
    let kind = custom::resource(at, api_version, kind, schemas);
    let namespace = text(&at.field("namespace"), namespace.as_deref());
    let name = text(&at.field("name"), name.as_deref());
    if let Some(namespace) = &namespace {
        check_name(&at.field("namespace"), namespace, NameRule::Label1123);
    }
    if let Some(name) = &name {
        check_name(&at.field("name"), name, NameRule::PathSegment);
    }
    let on = changes(&at.field("on"), on.as_deref());
    let key = key::compile(&at.field("keyFrom"), key_from.as_ref(), key::Of::Object);
    let kind = kind?;
    if namespace.is_some() && kind.namespaced == Some(false) {
        let message = format!(
            "{} is cluster-scoped: its objects are in no namespace",
            kind.group_kind()
        );
        at.field("namespace")
            .error_hint(Code::KindMismatch, message, "leave it out");
    }
    Some(WatchPlan {
        path: at.text(),
        kind,
        namespace,
        name,
        on,
        key: key?,
        reads: Vec::new(),
    })
}

/// Returns the listed changes; an empty list is reported.
fn changes(at: &At<'_>, listed: Option<&[Change]>) -> Changes {
    if listed.is_some_and(<[Change]>::is_empty) {
        let hint = "leave it out, and all changes count";
        at.error_hint(Code::Empty, "no change would ever count", hint);
    }
    Changes::of(listed)
}

/// Returns literal text; `None` if it is empty.
fn text(at: &At<'_>, written: Option<&str>) -> Option<Box<str>> {
    let written = written.map(str::trim).filter(|text| !text.is_empty())?;
    if written.contains("{{") {
        let hint =
            "what is watched is the same for all custom resources; `keyFrom` leads from it to one";
        at.error_hint(Code::NotATemplate, "this is not a template", hint);
        return None;
    }
    Some(written.into())
}

fn check_name(at: &At<'_>, name: &str, rule: NameRule) {
    if let Err(why) = rule.check(name) {
        at.bad_name(name, why, rule.as_check());
    }
}

/// Escapes a value of a field selector. Source: apimachinery, `fields.EscapeValue`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if ['\\', ',', '='].contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
