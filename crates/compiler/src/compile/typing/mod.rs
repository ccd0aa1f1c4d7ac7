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
mod each;
mod inputs;
mod list;
mod list_keys;
mod observe;
mod roles;
mod rules;
mod target;
mod tree;
mod whole_lists;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
};

use super::{known_schemas::KnownSchemas, reads};
use crate::{resources::amount::shortened, scope::At};
use orkestra_language::{
    diagnostics::{Code, Severity},
    schema::{Constant, Kinds, NestedSchema, Schema, Type, with_article},
};
use orkestra_object::value::{Node, PathStep};
use orkestra_plan::roots;
use orkestra_plan::{
    ForEachPlan, Leaf, OperatorPlan, PlaceRef, PlanPlace, ResourceType, StatusFieldPlan,
    walk::{Destination, ExprContext, Expression, Purpose},
};
use orkestra_template::{Inference, Template, TemplateError, explain_word};
use target::{Target, made_by};

pub use list::Typed;

/// The checks of one operator.
pub(crate) struct Typing<'a, 's> {
    known: KnownSchemas<'s>,
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
    reported: RefCell<HashSet<(PlanPlace, Option<&'static str>, String)>>,
    listed: Option<&'a RefCell<Vec<Typed>>>,
}

impl<'a, 's> Typing<'a, 's> {
    /// Creates the checks of the operator at `at`, whose `resource` may be unknown.
    pub(crate) fn new(
        at: &At<'a>,
        known: KnownSchemas<'s>,
        resource: Option<&ResourceType>,
        plan: &OperatorPlan,
        listed: Option<&'a RefCell<Vec<Typed>>>,
    ) -> Self {
        let schema = resource.and_then(|resource| known.kind(resource));
        let others = plan.roots.iter().map(|root| &**root);
        let roots = roots::CR_ROOTS.into_iter().chain(others);
        let mut names: Vec<(String, Type<'s>)> = roots
            .map(|root| (root.to_owned(), known.root(schema, root)))
            .chain(reads::types(known, plan))
            .collect();
        if plan.rules.audit {
            names.push((roots::CHANGES.to_owned(), Type::any()));
        }
        // Fields set by rules are present in memory, whether the definition has them or not.
        let made = plan.rules.made();
        let root = made.fold(Type::of_names(names), |root, path| {
            let field = |step: &PathStep| match step {
                PathStep::Field(key) => Some(key.to_string()),
                PathStep::Index(_) => None,
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
            reported: RefCell::default(),
            listed,
        }
    }

    /// Checks everything that the operator renders and compares. Leaves of manifests get the type of their field.
    pub(crate) fn check(&mut self, plan: &mut OperatorPlan) {
        self.root = self
            .root
            .clone()
            .with_name(roots::EXTERNAL, of_calls(plan, None));
        self.imports(&plan.imports);
        self.keys(&plan.observe);
        for (import, inside) in self.inside.iter_mut().enumerate() {
            let calls = of_calls(plan, Some(import));
            *inside = inside.clone().with_name(roots::EXTERNAL, calls);
        }
        let mut typed = Vec::new();
        plan.visit(&mut |expression, place| match expression {
            Expression::Body(child) => {
                self.enter(place.import, place.each);
                typed.push(self.object(child));
            }
            other => self.expression(other, place),
        });
        self.enter(None, None);
        let on_delete = plan
            .on_delete
            .iter_mut()
            .flat_map(|on_delete| &mut on_delete.steps)
            .flat_map(|step| &mut step.made);
        // The walk visits them in this order.
        for (child, object) in plan.children.iter_mut().chain(on_delete).zip(typed) {
            let tree::TypedObject {
                body,
                whole_lists,
                list_keys,
            } = object;
            (child.body, child.whole_lists, child.list_keys) = (body, whole_lists, list_keys);
        }
        self.roles(&mut plan.children);
    }

    /// Checks an expression of the plan, except those whose types come from elsewhere: values of inputs, keys of watched
    /// objects and parts of bodies.
    fn expression(&mut self, expression: Expression<'_>, place: ExprContext<'_>) {
        match place.purpose {
            Purpose::Input | Purpose::Key | Purpose::Once | Purpose::Reconciled => return,
            Purpose::Cross
            | Purpose::Name
            | Purpose::Gate
            | Purpose::Status
            | Purpose::Prepared
            | Purpose::Call
            | Purpose::Label => {}
        }
        self.enter(place.import, place.each);
        match (expression, place.destination) {
            (Expression::Condition(condition), _) => self.condition(condition),
            (Expression::ForEach(each), _) => self.enter(place.import, Some(each)),
            (Expression::Leaf(_), Some(Destination::Status(field))) => self.status_field(field),
            (Expression::Leaf(leaf), Some(Destination::Resource(path))) => {
                self.leaf(leaf, self.at_path(path));
            }
            (Expression::Leaf(leaf), None) => self.leaf(leaf, None),
            (Expression::Body(_), _) => {}
        }
    }

    /// Selects the scope of the following checks: an import, and the element of a list.
    fn enter(&mut self, import: Option<usize>, each: Option<&ForEachPlan>) {
        self.import.set(import);
        self.element = None;
        self.element = each.map(|each| self.element(each));
    }

    /// Returns the template root in the current scope.
    fn root(&self) -> &Type<'s> {
        let inside = self.import.get().and_then(|import| self.inside.get(import));
        let around = inside.unwrap_or(&self.root);
        self.element.as_ref().unwrap_or(around)
    }

    fn status_field(&self, field: &StatusFieldPlan) {
        let below = match self.resource.map(|schema| schema.field("status")) {
            Some(NestedSchema::Schema(status)) => status.at_path(&field.path),
            Some(other) => other,
            None => NestedSchema::Anything,
        };
        let schema = match below {
            NestedSchema::Schema(schema) => Some(schema),
            NestedSchema::Anything | NestedSchema::Nowhere => None,
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
        self.report(leaf.path.here(), &inference);
        let target = Target {
            coerce: leaf.coerce,
            schema,
        };
        self.list(leaf.path.here(), &leaf.template, &inference, Some(&target));
        if schema.is_some_and(|schema| schema.is_quantity()) {
            for Constant { node, at } in inference.gives.constants() {
                self.amount(leaf.path.here(), node, *at as usize);
            }
        }
        if leaf.template.literal().is_none() {
            self.fit(leaf.path.here(), &inference.gives, &target);
        } else if let Some(words) = target.words() {
            // The compiler of the leaf already checked the type of a literal.
            for Constant { node, at } in inference.gives.constants() {
                self.word(leaf.path.here(), node, words, *at as usize);
            }
        }
    }

    /// Reports the problems inside of a template, once.
    fn report(&self, place: PlaceRef<'_>, inference: &Inference<'s>) {
        for (severity, found) in &inference.findings {
            self.record(place, *severity, found.clone());
        }
    }

    fn record(&self, place: PlaceRef<'_>, severity: Severity, found: TemplateError) {
        let what = format!("{} {}", found.offset, found.message);
        if self.is_new(place, what) {
            self.at.place(place).report_in_text(severity, found);
        }
    }

    /// True if this was not yet reported at the place.
    fn is_new(&self, PlaceRef { place, field }: PlaceRef<'_>, what: String) -> bool {
        let key = (place.clone(), field, what);
        self.reported.borrow_mut().insert(key)
    }

    /// Reports a result that does not fit the field.
    fn fit(&self, place: PlaceRef<'_>, gives: &Type<'s>, target: &Target<'s>) {
        let takes = target.takes();
        if gives.may != Kinds::NONE && !gives.may.meets(takes) && gives.constants().is_empty() {
            let message = format!(
                "expected {}, but the template returns {}",
                target.describe(),
                target.given(gives)
            );
            return self.record(
                place,
                Severity::Error,
                problem(Code::WrongValue, 0, message),
            );
        }
        if let Some(message) = target.mismatch_inside(gives) {
            let found = problem(Code::WrongValue, 0, message);
            return self.record(place, Severity::Error, found);
        }
        let words = target.words();
        if let (Some(words), Some(given)) =
            (words, gives.schema().and_then(|schema| schema.words()))
            && given
                .iter()
                .all(|word| !words.contains(&target.spelled(word)))
        {
            let message = format!(
                "expected {}, but the template returns {gives}",
                target.describe()
            );
            return self.record(place, Severity::Error, problem(Code::NotInEnum, 0, message));
        }
        for Constant { node, at } in gives.constants() {
            let offset = *at as usize;
            if !takes.meets(Kinds::of(node)) && *node != Node::Null {
                let message = format!(
                    "expected {}, found `{}`",
                    target.describe(),
                    shortened(&node.to_text())
                );
                self.record(
                    place,
                    Severity::Error,
                    problem(Code::WrongValue, offset, message),
                );
            } else if let Some(words) = words {
                self.word(place, &target.spelled(node), words, offset);
            }
        }
        self.doubtful(place, gives, target);
    }

    /// Reports a word that is not in the enum of a schema.
    fn word(&self, place: PlaceRef<'_>, node: &Node, words: &[Node], offset: usize) {
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
        self.record(place, Severity::Error, TemplateError { hint, ..found });
    }

    /// Warns about a text field that could be declared with the needed type: its value may be a number now and a word
    /// later.
    fn doubtful(&self, place: PlaceRef<'_>, gives: &Type<'s>, target: &Target<'s>) {
        let is_plain = |schema: Schema<'s>| {
            schema.kinds() == Kinds::TEXT && !schema.is_of_map() && schema.words().is_none()
        };
        let refuses_words = !target.takes().meets(Kinds::WORDS);
        if refuses_words && gives.schema().is_some_and(is_plain) {
            let wanted = target.describe();
            let message = format!(
                "expected {wanted}, but the template returns text: each custom resource is checked when it is reconciled"
            );
            let found = problem(Code::MayNotFit, 0, message);
            let hint = Some(format!(
                "declare the field that the template reads as {wanted}, or convert it with `toInt` or `toBool`"
            ));
            self.record(place, Severity::Warning, TemplateError { hint, ..found });
        }
    }

    fn list(
        &self,
        place: PlaceRef<'_>,
        template: &Template,
        inference: &Inference<'s>,
        target: Option<&Target<'s>>,
    ) {
        let Some(listed) = self.listed else {
            return;
        };
        let at = self.at.place(place);
        let takes = target.filter(|_| template.is_single_expression());
        for expression in &inference.expressions {
            if self.is_new(place, format!("{} is listed", expression.offset)) {
                let typed = Typed::new(&at, expression, takes.map(Target::describe));
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

/// Returns the type of `.external` in `import`.
fn of_calls<'s>(plan: &OperatorPlan, import: Option<usize>) -> Type<'s> {
    let answer = || {
        let texts = ["status", "body", "error", "called"];
        Type::of_names(texts.map(|name| (name.to_owned(), Type::of(Kinds::TEXT))))
    };
    let here = plan.calls.iter().filter(|call| call.import == import);
    Type::of_names(here.map(|call| (call.name.to_string(), answer())))
}
