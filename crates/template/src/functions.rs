//! Notes of a user: named expressions without arguments, compiled.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::Template;
use super::ast::{Dialect, Katalog};
use super::notes::BuiltInNote;
use orkestra_object::value::{Node, hash};

/// A set of notes of a user, compiled together. A clone is a reference.
///
/// ```
/// use orkestra_template::{Data, EvalBudget, FunctionSource, Functions, Template};
/// use orkestra_object::value::Node;
///
/// let declared = [FunctionSource { name: "tier", expression: "{{ .spec.tier | default \"small\" }}", shadow: false }];
/// let (functions, problems) = Functions::compile(&declared);
/// assert!(problems.is_empty());
///
/// let spec = Node::object([("tier", Node::from("large"))]);
/// let text = Template::parse_with("{{ tier }}-pond", &functions)
///     .map_err(|errors| errors[0].clone())?
///     .render_text(&Data::new().with("spec", &spec), &mut EvalBudget::default())?;
/// assert_eq!(text, "large-pond");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Functions(Arc<BTreeMap<Box<str>, Arc<Function>>>);

/// One note of a user.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Box<str>,
    pub(crate) template: Template,
    /// A digest of its name, its expression and the notes that it calls.
    pub(crate) digest: Box<str>,
}

/// The notes that a template calls, each with the offset of its first call in the source.
pub(crate) type Calls = BTreeMap<Box<str>, (Arc<Function>, usize)>;

impl Dialect for Katalog {
    type Function = &'static BuiltInNote;
    type Named = Arc<Function>;
    type Stmt = Infallible;
}

impl Functions {
    /// Iterates over the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// True if there are no notes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the compiled expression of a note.
    pub fn get(&self, name: &str) -> Option<&Template> {
        self.0.get(name).map(|function| &function.template)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Function>> {
        self.0.get(name)
    }

    /// Adds a note, or replaces the one of its name.
    pub(crate) fn put(&mut self, function: Function) {
        let functions = Arc::make_mut(&mut self.0);
        functions.insert(function.name.clone(), Arc::new(function));
    }
}

impl Function {
    /// Creates a note from its compiled expression.
    pub(crate) fn new(name: &str, template: Template) -> Function {
        let parts = [
            name,
            template.source(),
            template.notes_hash().unwrap_or_default(),
        ];
        let digest = hash(&Node::from(parts.map(Node::from).to_vec()));
        Function {
            name: name.into(),
            template,
            digest: digest.into(),
        }
    }
}

/// Returns a digest that distinguishes the notes that a template calls from others of the same names; `None` if it calls
/// none.
pub(crate) fn digest(calls: &Calls) -> Option<Box<str>> {
    let digests = calls
        .values()
        .map(|(function, _)| Node::from(&*function.digest));
    let digests: Vec<Node> = digests.collect();
    (!digests.is_empty()).then(|| hash(&Node::from(digests)).into())
}
