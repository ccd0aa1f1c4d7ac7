//! Values of Secrets in places with a wide audience: the status, Events, logs, names, and the custom resource itself.

use std::collections::BTreeSet;

use crate::{
    diagnostics::Code,
    plan::{
        ChildPlan, ForEachPlan, GroupKind, NameForm, OperatorPlan,
        cross::CrossTarget,
        walk::{Expression, Purpose},
    },
    scope::At,
    template::{Flow, Flows, Template},
    value::{Key, PathStep},
};

const HINT: &str = "name the Secret instead, as in `{{ .children.secret.metadata.name }}`, or only test the value, with `if` or `when`";

const COMPARED_HINT: &str = "compare with a literal, or only test whether the value exists, as in `if .children.secret.data.password`";

/// How a result depends on a secret value.
enum Disclosure {
    /// The value may be in it.
    Visible,
    /// This note compares the value with data that is no literal: with enough such data, the value is learned.
    Compared(Box<str>),
}

/// Refuses templates that put a Secret's value into the status, Events, names or the custom resource. `at` is any place in
/// the Katalog.
pub(crate) fn check(at: &At<'_>, plan: &OperatorPlan) {
    let taint = Taint::of(plan);
    if !taint.exists() {
        return;
    }
    let mut reported = BTreeSet::new();
    plan.visit(&mut |expression, place| {
        let Expression::Leaf(leaf) = expression else {
            return;
        };
        let shown = match place.purpose {
            Purpose::Status => Shown::Status,
            Purpose::Prepared | Purpose::Label => Shown::Resource,
            Purpose::Name => Shown::Name,
            Purpose::Input
            | Purpose::Cross
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
}

impl<'a> Taint<'a> {
    fn of(plan: &'a OperatorPlan) -> Self {
        let secret = GroupKind::parse("Secret");
        let mut taint = Self {
            plan,
            kinds: BTreeSet::new(),
        };
        let mut children = plan.children.iter();
        if children.any(|child| child.kind.group_kind() == secret) {
            taint.kinds.insert(secret);
        }
        // Transitive: children made from such children contain the values too.
        for _ in 0..plan.children.len() {
            let made = plan.children.iter().find(|child| {
                !taint.kinds.contains(&child.kind.group_kind()) && taint.is_made_of(child)
            });
            let Some(made) = made else { break };
            taint.kinds.insert(made.kind.group_kind());
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

    fn is_reported(&self, import: Option<usize>, each: Option<&ForEachPlan>, flow: &Flow) -> bool {
        let Some(Some(root)) = flow.first() else {
            return self.exists();
        };
        if let Some(each) = each
            && (&**root == "item" || *root == each.name)
        {
            let steps = each.field.steps().iter().map(|step| match step {
                PathStep::Field(key) => Some(key.clone()),
                PathStep::Index(_) => None,
            });
            let rest = flow.get(1..).unwrap_or_default().iter().cloned();
            let flow: Flow = steps.chain([None]).chain(rest).collect();
            // The elements of a map have their keys beside their values.
            return self.is_reported(import, None, &flow);
        }
        let name = flow.get(1).and_then(Option::as_ref);
        let rest = flow.get(2..).unwrap_or_default();
        match &**root {
            "children" => self.is_of_child(name, rest),
            "cross" => {
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
                    given.visit_given(name, &mut |leaf| {
                        shows |= self.shows(given.outer, None, &leaf.template);
                    });
                    shows
                })
            }
            _ => self.is_own() && is_content(flow),
        }
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
