//! `observe`: objects and Events that trigger a pass.

mod events;
mod key;

use crate::{
    resources::custom,
    scope::{At, Library, ReferenceKind, library::Content, profiles::no_include_inside},
};
use orkestra_language::{
    api::{self, observe::Change},
    diagnostics::Code,
};
use orkestra_plan::{
    NameRule, ObservePlan,
    definitions::Schemas,
    observe::{Changes, EventPlan, WatchPlan},
};

/// The compiled parts of a block and of the file that it includes.
#[derive(Default)]
struct Compiled {
    watches: Vec<WatchPlan>,
    events: Vec<EventPlan>,
}

/// Compiles the block at `at`; invalid parts are reported and left out.
pub(crate) fn plan(
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
        && let Some(document) = library.open(&at.field("include"), ReferenceKind::Observe, text)
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
            let Some(plan) = compile_entry(&at, declared, schemas) else {
                continue;
            };
            if let Some(other) = self.watches.iter().find(|other| other.is_same(&plan)) {
                let message = format!(
                    "`{}` maps the same objects to the same custom resources",
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
            let Some(plan) = events::plan(&at, name, filter) else {
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

fn compile_entry(
    at: &At<'_>,
    declared: &api::observe::Watch,
    schemas: &Schemas,
) -> Option<WatchPlan> {
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
    let key = key::plan(
        &at.field("keyFrom"),
        key_from.as_ref(),
        key::KeyInput::Object,
    );
    let kind = kind?;
    if namespace.is_some() && kind.namespaced == Some(false) {
        let message = format!(
            "{} is cluster-scoped: its objects are in no namespace",
            kind.group_kind()
        );
        at.field("namespace")
            .error_hint(Code::KindMismatch, message, "remove it");
    }
    Some(WatchPlan {
        path: at.kept(),
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
        let hint = "remove it to match all changes";
        at.error_hint(Code::Empty, "no change would ever match", hint);
    }
    Changes::of(listed)
}

/// Returns literal text; `None` if it is empty.
fn text(at: &At<'_>, written: Option<&str>) -> Option<Box<str>> {
    let written = written.map(str::trim).filter(|text| !text.is_empty())?;
    if written.contains("{{") {
        let hint = "the watched objects are the same for all custom resources; `keyFrom` maps each object to one";
        at.error_hint(Code::NotATemplate, "this cannot be a template", hint);
        return None;
    }
    Some(written.into())
}

fn check_name(at: &At<'_>, name: &str, rule: NameRule) {
    if let Err(why) = rule.check(name) {
        at.bad_name(name, why, rule.as_check());
    }
}
