//! Finds values of Secrets in places that many users can read: the status, Events, logs, names, and the custom resource itself.
//!
//! Templates that write them there are refused. Children may contain them: such children are marked, because the API server's
//! message about a refused object may quote the value.

use std::collections::BTreeSet;

use crate::scope::At;
use orkestra_language::diagnostics::Code;
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    ChildPlan, ConditionPlan, ForEachPlan, GroupKind, HOOK, HOOK_CHILDREN, HookPlan, Leaf,
    NameForm, OnDeletePlan, Operand, OperatorPlan,
    cross::{CROSS, CrossTarget},
    roots::CHILDREN,
    walk::{ExprContext, Expression, Purpose},
};
use orkestra_template::{Flow, Flows, Template};

const HINT: &str = "name the Secret instead, as in `{{ .children.secret.metadata.name }}`, or only test the value, with `if` or `when`";

const COMPARED_HINT: &str = "compare with a literal, or only test whether the value exists, as in `if .children.secret.data.password`";

const GATE_HINT: &str =
    "compare with a literal, or only test whether the value exists, with `exists: true`";

/// How a result depends on a secret value.
enum Disclosure {
    /// The value may be in it.
    Visible,
    /// This note compares the value with data that is no literal: with enough such data, the value is learned.
    Compared(Box<str>),
}

/// Refuses templates that put a Secret's value into the status, Events, names or the custom resource, and marks the children
/// that may contain one. `at` is any place in the Katalog.
pub(crate) fn check(at: &At<'_>, plan: &mut OperatorPlan) {
    let taint = Taint::of(plan);
    if !taint.exists() {
        return;
    }
    refuse(at, &taint);
    let on_delete = plan.on_delete.as_deref().into_iter();
    let all = plan
        .children
        .iter()
        .chain(on_delete.flat_map(OnDeletePlan::entries));
    let shown: Vec<bool> = all.map(|child| taint.is_in(child)).collect();
    let on_delete = plan.on_delete.as_deref_mut().into_iter();
    let all = plan
        .children
        .iter_mut()
        .chain(on_delete.flat_map(OnDeletePlan::entries_mut));
    for (child, shows) in all.zip(shown) {
        child.shows_secrets = shows;
    }
}

/// Reports the templates that put a Secret's value where it must not be.
fn refuse(at: &At<'_>, taint: &Taint<'_>) {
    let mut reported = BTreeSet::new();
    taint.plan.visit(&mut |expression, place| {
        let leaf = match expression {
            Expression::Leaf(leaf) => leaf,
            Expression::Condition(condition) => {
                if taint.is_compared(condition, place) && reported.insert(condition.path.clone()) {
                    let message = "this condition compares the value of a Secret with data that is not a literal, and its \
                                   effect shows the result: the author of that data can find out the value";
                    at.place(&condition.path)
                        .error_hint(Code::SecretShown, message, GATE_HINT);
                }
                return;
            }
            // The number of elements and their keys are not secret, and the bodies follow leaf by leaf.
            Expression::ForEach(_) | Expression::Body(_) => return,
        };
        let shown = match place.purpose {
            Purpose::Status => Shown::Status,
            Purpose::Prepared | Purpose::Label => Shown::Resource,
            Purpose::Name | Purpose::Cross => Shown::Name,
            Purpose::Input
            | Purpose::Key
            | Purpose::Gate
            | Purpose::Once
            | Purpose::Reconciled
            | Purpose::Call => return,
        };
        let found = taint.disclosure(place.import, place.each, &leaf.template);
        if let Some(found) = found
            && reported.insert(leaf.path.clone())
        {
            let (message, hint) = shown.message(&found);
            at.place(&leaf.path)
                .error_hint(Code::SecretShown, message, hint);
        }
    });
}

/// A place with a wide audience.
#[derive(Clone, Copy)]
enum Shown {
    Status,
    Resource,
    Name,
}

impl Shown {
    /// Returns the message for a template there, and the way out.
    fn message(self, found: &Disclosure) -> (String, &'static str) {
        match found {
            Disclosure::Visible => {
                let message = match self {
                    Self::Status => "this writes the value of a Secret into the status or an Event",
                    Self::Resource => "this writes the value of a Secret into the custom resource",
                    Self::Name => {
                        "this puts the value of a Secret into a name, which logs and Events show"
                    }
                };
                (message.to_owned(), HINT)
            }
            Disclosure::Compared(note) => {
                let place = match self {
                    Self::Status => "the status or an Event shows",
                    Self::Resource => "the custom resource shows",
                    Self::Name => "a name shows",
                };
                let message = format!(
                    "`{note}` compares the value of a Secret with data that is not a literal, and {place} the result: the \
                     author of that data can find out the value"
                );
                (message, COMPARED_HINT)
            }
        }
    }
}

/// The secret values of an operator.
struct Taint<'a> {
    plan: &'a OperatorPlan,
    /// Kinds of children that contain values of Secrets: Secrets, and children made from them.
    kinds: BTreeSet<GroupKind>,
    /// Hooks that see such values: what they return may contain them.
    hooks: BTreeSet<&'a Key>,
}

impl<'a> Taint<'a> {
    fn of(plan: &'a OperatorPlan) -> Self {
        let secret = GroupKind::parse("Secret");
        let mut taint = Self {
            plan,
            kinds: BTreeSet::new(),
            hooks: BTreeSet::new(),
        };
        let mut children = plan.children.iter();
        if children.any(|child| child.kind.group_kind() == secret) {
            taint.kinds.insert(secret);
        }
        // Transitive: children made from such children contain the values too.
        for _ in 0..plan.children.len() + plan.hooks.len() {
            let made = plan.children.iter().find(|child| {
                !taint.kinds.contains(&child.kind.group_kind()) && taint.is_made_of(child)
            });
            if let Some(made) = made {
                taint.kinds.insert(made.kind.group_kind());
                continue;
            }
            // Hooks that see them return them.
            let mut hooks = plan.hooks.iter();
            let seeing =
                |hook: &&HookPlan| !taint.hooks.contains(&hook.name) && taint.is_seen_by(hook);
            let Some(hook) = hooks.find(seeing) else {
                break;
            };
            taint.hooks.insert(&hook.name);
        }
        taint
    }

    /// True if there are secret values at all.
    fn exists(&self) -> bool {
        !self.kinds.is_empty()
            || self.is_own()
            || self.plan.cross.iter().any(|entry| is_secret(&entry.target))
    }

    /// True if the custom resource is a Secret itself.
    fn is_own(&self) -> bool {
        self.plan.resource.group_kind() == GroupKind::parse("Secret")
    }

    /// True if a secret value may be in the object of a child, in its name, or in what else its templates render.
    fn is_in(&self, child: &ChildPlan) -> bool {
        let each = child.for_each.as_deref();
        let names = std::iter::once(&child.name).chain(&child.namespace);
        let mut beside = names.chain(child.upkeep());
        beside.any(|leaf: &Leaf| self.shows(child.import, each, &leaf.template))
            || self.is_made_of(child)
    }

    fn is_made_of(&self, child: &ChildPlan) -> bool {
        let each = child.for_each.as_deref();
        let mut shows = false;
        child
            .body
            .visit(&mut |leaf| shows |= self.shows(child.import, each, &leaf.template));
        shows
    }

    /// True if the result of a template of `import` may disclose a secret value, for an element of `each`.
    fn shows(
        &self,
        import: Option<usize>,
        each: Option<&ForEachPlan>,
        template: &Template,
    ) -> bool {
        self.disclosure(import, each, template).is_some()
    }

    /// Returns how the result of a template of `import` depends on a secret value, for an element of `each`.
    fn disclosure(
        &self,
        import: Option<usize>,
        each: Option<&ForEachPlan>,
        template: &Template,
    ) -> Option<Disclosure> {
        let discloses = |flow: &Flow| self.is_reported(import, each, flow);
        let Flows { visible, compared } = template.flows();
        if visible.iter().any(discloses) {
            return Some(Disclosure::Visible);
        }
        let mut compared = compared.into_iter();
        let found = compared.find(|(flow, _)| discloses(flow));
        found.map(|(_, note)| Disclosure::Compared(note))
    }

    /// True if the effect of a condition discloses a secret value: it compares the value with data that is no literal, on
    /// either side or within a template.
    fn is_compared(&self, condition: &ConditionPlan, place: ExprContext<'_>) -> bool {
        let ExprContext { import, each, .. } = place;
        let side = |template: &Template| {
            let found = self.disclosure(import, each, template);
            let is_open = template
                .reads()
                .iter()
                .any(|path| self.is_open(import, path));
            (found, is_open)
        };
        let left = condition.operand().map(|operand| match operand {
            Operand::Path(path) => {
                let visible = self.is_reported(import, each, &flow_of(path));
                (
                    visible.then_some(Disclosure::Visible),
                    self.is_open(import, path),
                )
            }
            Operand::Template(template) => side(template),
        });
        let right = condition.leaves();
        let right: Vec<_> = right.iter().map(|leaf| side(&leaf.template)).collect();
        let is_within = |(found, _): &(Option<Disclosure>, bool)| {
            matches!(found, Some(Disclosure::Compared(_)))
        };
        if left.iter().chain(&right).any(is_within) {
            return true;
        }
        let Some((left, is_left_open)) = left else {
            return false;
        };
        right.iter().any(|(right, is_right_open)| {
            left.is_some() && *is_right_open || is_left_open && right.is_some()
        })
    }

    /// True if a user other than the author of the Katalog may choose the value at a path that a template of `import`
    /// reads: it is no input whose values are all literals.
    fn is_open(&self, import: Option<usize>, path: &Path) -> bool {
        let given = import.and_then(|import| self.plan.imports.get(import));
        let (Some(given), [PathStep::Field(root), rest @ ..]) = (given, path.steps()) else {
            return true;
        };
        if **root != *"inputs" {
            return true;
        }
        let name = match rest.first() {
            Some(PathStep::Field(name)) => Some(&**name),
            Some(PathStep::Index(_)) | None => None,
        };
        let mut is_open = false;
        given.visit_values(name, &mut |outer, leaf| {
            let mut reads = leaf.template.reads().iter();
            is_open |= reads.any(|path| self.is_open(outer, path));
        });
        is_open
    }

    fn is_reported(&self, import: Option<usize>, each: Option<&ForEachPlan>, flow: &Flow) -> bool {
        let Some(Some(root)) = flow.first() else {
            return self.exists();
        };
        if let Some(each) = each
            && (&**root == "item" || *root == each.name)
        {
            let rest = flow.get(1..).unwrap_or_default().iter().cloned();
            let steps = flow_of(&each.field).into_iter().chain([None]);
            let flow: Flow = steps.chain(rest).collect();
            // The elements of a map have their keys beside their values.
            return self.is_reported(import, None, &flow);
        }
        let name = flow.get(1).and_then(Option::as_ref);
        let rest = flow.get(2..).unwrap_or_default();
        match &**root {
            CHILDREN => self.is_of_child(name, rest),
            CROSS => {
                let mut entries = self.plan.cross.iter();
                entries.any(|entry| {
                    name.is_none_or(|name| entry.name == *name)
                        && is_secret(&entry.target)
                        && is_content(rest)
                })
            }
            "inputs" => {
                let given = import.and_then(|import| self.plan.imports.get(import));
                given.is_some_and(|given| {
                    let mut shows = false;
                    let name = name.map(|name| &**name);
                    given.visit_values(name, &mut |outer, leaf| {
                        shows |= self.shows(outer, None, &leaf.template);
                    });
                    shows
                })
            }
            HOOK | HOOK_CHILDREN => {
                let mut hooks = self.hooks.iter();
                // The names of a hook's children are public, as all names are.
                let is_content =
                    **root != *HOOK_CHILDREN || is_content(rest.get(2..).unwrap_or_default());
                is_content && hooks.any(|hook| name.is_none_or(|name| *hook == name))
            }
            _ => self.is_own() && is_content(flow),
        }
    }

    /// True if a hook sees a secret value: what it returns may contain it.
    fn is_seen_by(&self, hook: &HookPlan) -> bool {
        let mut managed = hook.managed.iter();
        let mut sees =
            self.is_own() || managed.any(|one| self.kinds.contains(&one.kind.group_kind()));
        hook.args
            .visit(&mut |leaf| sees = sees || self.shows(None, None, &leaf.template));
        sees
    }

    fn is_of_child(&self, name: Option<&Key>, rest: &[Option<Key>]) -> bool {
        let Some(name) = name else {
            return !self.kinds.is_empty();
        };
        let mut names = self.plan.children_names.iter();
        names.any(|alias| {
            let below = match alias.number {
                NameForm::Singular => rest,
                // The path has the name of the object in between.
                NameForm::Plural => rest.get(1..).unwrap_or_default(),
            };
            alias.name == *name && self.kinds.contains(&alias.kind) && is_content(below)
        })
    }
}

/// Returns the flow of the value at a path.
fn flow_of(path: &Path) -> Flow {
    let steps = path.steps().iter().map(|step| match step {
        PathStep::Field(key) => Some(key.clone()),
        PathStep::Index(_) => None,
    });
    steps.collect()
}

fn is_secret(target: &CrossTarget) -> bool {
    matches!(target, CrossTarget::Own(_, kind) if kind.group_kind() == GroupKind::parse("Secret"))
}

/// True if a path below an object may hold its secret content. Annotations may hold the whole object, since `kubectl apply`
/// writes it there.
fn is_content(path: &[Option<Key>]) -> bool {
    let step = |at: usize| path.get(at).and_then(|step| step.as_deref());
    match (step(0), step(1)) {
        (Some("apiVersion" | "kind" | "type" | "immutable" | "status"), _) => false,
        (Some("metadata"), below) => matches!(below, None | Some("annotations")),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
