//! Checks the reads and results of an operator's templates against the known schemas.
//!
//! ```text
//!  definitions, built-in kinds ──► root: .metadata .spec .status .children ──► types of expressions
//!                             └──► types of the fields of a child ─────────────┴──► problems, a list of types
//! ```
//!
//! Without a schema, nothing is checked: a Katalog without definitions compiles as it would without this module.

mod amount;
mod conditions;
mod cross;
mod each;
mod fixed;
mod inputs;
mod list;
mod observe;
mod roles;
mod rules;
mod target;
mod tree;
mod whole_lists;

pub(crate) use amount::explain_amount;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
};

pub use list::Typed;
use target::{Target, made_by};

use super::{
    ChildPlan, GroupKind, Leaf, Number, OperatorPlan, ResourceType, Schemas, StatusField,
    cross::CrossPlan, reads, walk::Expression,
};
use crate::{
    diagnostics::{Code, Severity},
    resources::scope::At,
    schema::{Below, BuiltIn, Constant, Kinds, Schema, Type, with_article},
    template::{Inference, Template, TemplateError, explain_word},
    value::{Node, Step},
};

/// The known schemas.
#[derive(Clone, Copy)]
pub(crate) struct Known<'s> {
    /// Custom resource definitions.
    pub(crate) schemas: &'s Schemas,
    /// Built-in kinds.
    pub(crate) built_in: &'s BuiltIn,
}

impl<'s> Known<'s> {
    /// Returns the schema of whole objects of a kind.
    pub(crate) fn kind(&self, kind: &ResourceType) -> Option<Schema<'s>> {
        match self.schemas.kind(&kind.group_kind()) {
            Some(shape) => {
                let schema = &shape.version(&kind.version)?.schema;
                (**schema != Node::Null).then(|| Schema::of_objects(schema, Some(self.built_in)))
            }
            None => self.built_in.kind(&kind.group, &kind.version, &kind.kind),
        }
    }
}

/// The checks of one operator.
pub(crate) struct Typing<'a, 's> {
    known: Known<'s>,
    at: At<'a>,
    /// The custom resource, if its schema is known.
    resource: Option<Schema<'s>>,
    /// The type of the template root.
    root: Type<'s>,
    /// The root inside of the Motif of each import, with its inputs.
    inside: Vec<Type<'s>>,
    /// The current import.
    import: Cell<Option<usize>>,
    /// The root for the current element, if the entry is expanded for a list.
    element: Option<Type<'s>>,
    /// Reported problems: leaves may occur several times in a child.
    told: RefCell<HashSet<(Box<str>, String)>>,
    listed: Option<&'a RefCell<Vec<Typed>>>,
}

impl<'a, 's> Typing<'a, 's> {
    /// Creates the checks of the operator at `at`, whose `resource` may be unknown.
    pub(crate) fn new(
        at: &At<'a>,
        known: Known<'s>,
        resource: Option<&ResourceType>,
        plan: &OperatorPlan,
        listed: Option<&'a RefCell<Vec<Typed>>>,
    ) -> Self {
        let schema = resource.and_then(|resource| known.kind(resource));
        let others = plan.roots.iter().map(|root| &**root);
        let roots = reads::CR_ROOTS.into_iter().chain(others);
        let mut names: Vec<(String, Type<'s>)> = roots
            .map(|root| (root.to_owned(), of_root(schema, root, known.built_in)))
            .collect();
        names.push(("children".to_owned(), of_children(known, plan)));
        names.push((
            reads::CROSS.to_owned(),
            cross::of_entries(known, &plan.cross),
        ));
        names.push((reads::EVENTS.to_owned(), observe::of_events(known, plan)));
        if plan.rules.audit {
            names.push((reads::CHANGES.to_owned(), Type::any()));
        }
        // Fields set by rules are present in memory, whether the definition has them or not.
        let made = plan.rules.made();
        let root = made.fold(Type::of_names(names), |root, path| {
            let field = |step: &Step| match step {
                Step::Field(key) => Some(key.to_string()),
                Step::Index(_) => None,
            };
            let fields: Option<Vec<String>> = path.steps().iter().map(field).collect();
            match fields {
                Some(fields) => root.with_path(&fields),
                None => root,
            }
        });
        Self {
            known,
            at: at.clone(),
            resource: schema,
            root,
            inside: Vec::new(),
            import: Cell::default(),
            element: None,
            told: RefCell::default(),
            listed,
        }
    }

    /// Checks everything that the operator renders and compares. Leaves of manifests get the type of their field.
    pub(crate) fn check(&mut self, plan: &mut OperatorPlan) {
        self.root = self
            .root
            .clone()
            .with_name(reads::EXTERNAL, of_calls(plan, None));
        self.imports(&plan.imports);
        for leaf in plan.cross.iter().flat_map(CrossPlan::leaves) {
            self.leaf(leaf, None);
        }
        self.keys(&plan.observe);
        for entry in &plan.enrich {
            self.gate(&entry.gate);
        }
        for (import, inside) in self.inside.iter_mut().enumerate() {
            let calls = of_calls(plan, Some(import));
            *inside = inside.clone().with_name(reads::EXTERNAL, calls);
        }
        for call in &plan.calls {
            self.import.set(call.import);
            call.visit(&mut |expression| {
                if let Expression::Leaf(leaf) = expression {
                    self.leaf(leaf, None);
                }
            });
            self.gate(&call.gate);
        }
        for gate in plan.hold.gates() {
            self.gate(gate);
        }
        for requeue in &plan.requeue {
            self.leaf(&requeue.after, None);
            self.gate(&requeue.gate);
        }
        for own in &plan.status.own {
            for leaf in [&own.status, &own.reason, &own.message]
                .into_iter()
                .flatten()
            {
                self.leaf(leaf, None);
            }
            self.gate(&own.gate);
        }
        self.gate(&plan.status.ready_when);
        for emit in &plan.emits {
            self.leaf(&emit.reason, None);
            self.leaf(&emit.message, None);
            self.gate(&emit.gate);
        }
        if let Some(cleanup) = &plan.cleanup {
            self.gate(&cleanup.gate);
        }
        self.rules(&plan.rules);
        for block in &plan.blocks {
            self.import.set(block.import);
            self.gate(&block.gate);
        }
        self.import.set(None);
        for (_, label) in &plan.labels {
            self.leaf(label, None);
        }
        for child in &mut plan.children {
            self.child(child);
        }
        self.roles(&mut plan.children);
        if let Some(ending) = &mut plan.ending {
            self.import.set(None);
            self.gate(&ending.block.gate);
            for step in &mut ending.steps {
                self.gate(&step.gate);
                step.made.iter_mut().for_each(|child| self.child(child));
                for child in &step.deleted {
                    self.names(child);
                    self.gate(&child.gate);
                    self.element = None;
                }
            }
        }
        for field in &plan.status.fields {
            self.import.set(field.import);
            self.status_field(field);
            self.gate(&field.gate);
        }
    }

    fn child(&mut self, child: &mut ChildPlan) {
        self.names(child);
        for leaf in child.upkeep() {
            self.leaf(leaf, None);
        }
        self.object(child);
        self.gate(&child.gate);
        for gate in child.scale.iter().flat_map(|plan| plan.gates()) {
            self.gate(gate);
        }
        self.element = None;
    }

    /// Checks the names of an entry's objects, and selects its scope for the following checks.
    fn names(&mut self, child: &ChildPlan) {
        self.import.set(child.import);
        self.element = None;
        self.element = child.for_each.as_ref().map(|each| self.element(each));
        self.leaf(&child.name, None);
        if let Some(namespace) = &child.namespace {
            self.leaf(namespace, None);
        }
    }

    /// Returns the template root in the current scope.
    fn root(&self) -> &Type<'s> {
        let inside = self.import.get().and_then(|import| self.inside.get(import));
        let around = inside.unwrap_or(&self.root);
        self.element.as_ref().unwrap_or(around)
    }

    fn status_field(&self, field: &StatusField) {
        let below = match self.resource.map(|schema| schema.field("status")) {
            Some(Below::Schema(status)) => status.at_path(&field.path),
            Some(other) => other,
            None => Below::Anything,
        };
        let schema = match below {
            Below::Schema(schema) => Some(schema),
            Below::Anything | Below::Nowhere => None,
        };
        self.leaf(&field.value, schema);
        if let (Some(kind), Some(schema)) = (field.kind, schema)
            && !made_by(kind).meets(schema.kinds())
        {
            let message = format!(
                "the definition takes {} as `status.{}`",
                with_article(&schema.describe()),
                field.path
            );
            let at = self.at.place(&field.value.path);
            at.sibling("type").error(Code::WrongValue, message);
        }
    }

    /// Checks a leaf, and its result against the field: one of the schema, or an unknown one.
    fn leaf(&self, leaf: &Leaf, schema: Option<Schema<'s>>) {
        let inference = leaf.template.infer(self.root(), self.listed.is_some());
        self.report(&leaf.path, &inference);
        let target = Target {
            coerce: leaf.coerce,
            schema,
        };
        self.list(&leaf.path, &leaf.template, &inference, Some(&target));
        if schema.is_some_and(|schema| schema.is_quantity()) {
            for Constant { node, at } in inference.gives.constants() {
                self.amount(&leaf.path, node, *at as usize);
            }
        }
        if leaf.template.literal().is_none() {
            self.fit(&leaf.path, &inference.gives, &target);
        } else if let Some(words) = target.words() {
            // The compiler of the leaf already checked the type of a literal.
            for Constant { node, at } in inference.gives.constants() {
                self.word(&leaf.path, node, words, *at as usize);
            }
        }
    }

    /// Reports the problems inside of a template, once.
    fn report(&self, path: &str, inference: &Inference<'s>) {
        for (severity, found) in &inference.findings {
            self.tell(path, *severity, found.clone());
        }
    }

    fn tell(&self, path: &str, severity: Severity, found: TemplateError) {
        let key = (path.into(), format!("{} {}", found.offset, found.message));
        if self.told.borrow_mut().insert(key) {
            self.at.place(path).report_in_text(severity, found);
        }
    }

    /// Reports a result that does not fit the field.
    fn fit(&self, path: &str, gives: &Type<'s>, target: &Target<'s>) {
        let takes = target.takes();
        if gives.may != Kinds::NONE && !gives.may.meets(takes) && gives.constants().is_empty() {
            let message = format!(
                "this takes {}, and the template gives {}",
                target.describe(),
                target.given(gives)
            );
            return self.tell(path, Severity::Error, problem(Code::WrongValue, 0, message));
        }
        let words = target.words();
        if let (Some(words), Some(given)) =
            (words, gives.schema().and_then(|schema| schema.words()))
            && given
                .iter()
                .all(|word| !words.contains(&target.spelled(word)))
        {
            let message = format!(
                "this takes {}, and the template gives {gives}",
                target.describe()
            );
            return self.tell(path, Severity::Error, problem(Code::NotInEnum, 0, message));
        }
        for Constant { node, at } in gives.constants() {
            let offset = *at as usize;
            if !takes.meets(Kinds::of(node)) && *node != Node::Null {
                let message = format!(
                    "this takes {}, not `{}`",
                    target.describe(),
                    shortened(&node.to_text())
                );
                self.tell(
                    path,
                    Severity::Error,
                    problem(Code::WrongValue, offset, message),
                );
            } else if let Some(words) = words {
                self.word(path, &target.spelled(node), words, offset);
            }
        }
        self.doubtful(path, gives, target);
    }

    /// Reports a word that is not in the enum of a schema.
    fn word(&self, path: &str, node: &Node, words: &[Node], offset: usize) {
        let text = node.to_text();
        let text = text.trim();
        if text.is_empty() || words.iter().any(|word| word.to_text() == text) {
            return;
        }
        let trimmed = match node {
            Node::Str(_) => Node::from(text),
            node => node.clone(),
        };
        let (message, hint) = explain_word(&trimmed, words);
        let found = problem(Code::NotInEnum, offset, message);
        self.tell(path, Severity::Error, TemplateError { hint, ..found });
    }

    /// Warns about a text field that could be declared with the needed type: its value may be a number now and a word
    /// later.
    fn doubtful(&self, path: &str, gives: &Type<'s>, target: &Target<'s>) {
        let is_plain = |schema: Schema<'s>| {
            schema.kinds() == Kinds::TEXT && !schema.is_of_map() && schema.words().is_none()
        };
        let refuses_words = !target.takes().meets(Kinds::WORDS);
        if refuses_words && gives.schema().is_some_and(is_plain) {
            let wanted = target.describe();
            let message = format!(
                "this takes {wanted}, and the template gives text: each custom resource is checked when it is reconciled"
            );
            let found = problem(Code::MayNotFit, 0, message);
            let hint = Some(format!(
                "declare the field that is read as {wanted}, or convert it with `toInt` or `toBool`"
            ));
            self.tell(path, Severity::Warning, TemplateError { hint, ..found });
        }
    }

    fn list(
        &self,
        path: &str,
        template: &Template,
        inference: &Inference<'s>,
        target: Option<&Target<'s>>,
    ) {
        let Some(listed) = self.listed else {
            return;
        };
        let place = self.at.place(path);
        let takes = target.filter(|_| template.is_single_expression());
        for expression in &inference.expressions {
            let key = (path.into(), format!("{} is listed", expression.offset));
            if self.told.borrow_mut().insert(key) {
                let typed = Typed::new(&place, expression, takes.map(Target::describe));
                listed.borrow_mut().push(typed);
            }
        }
    }
}

fn problem(code: Code, offset: usize, message: String) -> TemplateError {
    TemplateError {
        code,
        offset,
        len: 0,
        message,
        hint: None,
    }
}

/// Truncates a text.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain(['…']).collect()
}

/// Returns the type of a root of the custom resource.
fn of_root<'s>(schema: Option<Schema<'s>>, root: &str, built_in: &'s BuiltIn) -> Type<'s> {
    let below = match schema {
        Some(schema) => schema.field(root),
        None => match root {
            "metadata" => built_in
                .object_meta()
                .map_or(Below::Anything, Below::Schema),
            _ => Below::Anything,
        },
    };
    match below {
        Below::Nowhere => Type::of_schema(Schema::empty()),
        below => Type::of_below(below),
    }
}

/// Returns the type of `.external` in `import`.
fn of_calls<'s>(plan: &OperatorPlan, import: Option<usize>) -> Type<'s> {
    let answer = || {
        let texts = ["status", "body", "error", "called"];
        Type::of_names(texts.map(|name| (name.to_owned(), Type::of(Kinds::TEXT))))
    };
    let here = plan.calls.iter().filter(|call| call.import == import);
    Type::of_names(here.map(|call| (call.name.to_string(), answer())))
}

/// Returns the type of `.children`.
fn of_children<'s>(known: Known<'s>, plan: &OperatorPlan) -> Type<'s> {
    let children = &plan.children;
    let object = |kind: &GroupKind| {
        let made = children.iter().map(|child| child.kind.clone());
        let schema = made
            .chain(plan.observe.readable(children))
            .find(|known| known.group_kind() == *kind)
            .and_then(|kind| known.kind(&kind));
        schema.map_or_else(Type::any, Type::of_schema)
    };
    let names = reads::names(children, &plan.observe)
        .into_iter()
        .map(|(name, (kind, number))| {
            let object = object(&kind);
            let given = match number {
                Number::Singular => object,
                Number::Plural => Type::map_of(object),
            };
            (name, given)
        });
    Type::of_names(names)
}
