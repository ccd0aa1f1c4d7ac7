//! Imports of Motifs, and values of their inputs: texts that are known without a custom resource, and values that only the user
//! sets.

use super::{Coerce, Leaf, ObjectTree, PlanPlace};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};
use orkestra_template::{Data, EvalBudget};

/// One import of a Motif: `.inputs` of the children and status fields that it declares.
#[derive(Debug)]
pub struct ImportPlan {
    /// The name of the Motif's document, for messages.
    pub motif: Box<str>,
    /// The import whose Motif declares this one, as an index into
    /// [`OperatorPlan::imports`](super::OperatorPlan::imports): the given values read its inputs as `.inputs`. `None` for the
    /// Katalog.
    pub outer: Option<usize>,
    /// The inputs that the Motif declares, in order.
    pub inputs: Box<[InputPlan]>,
}

/// One input of an import.
#[derive(Debug)]
pub struct InputPlan {
    /// Its name below `.inputs`.
    pub name: Key,
    /// The value that the import gives.
    pub given: Option<ObjectTree>,
    /// The Motif's default if no value is given, or the given value renders to nothing. It reads no inputs.
    pub default: Option<ObjectTree>,
    /// The declared type.
    pub coerce: Coerce,
    /// True if only the user's intent determines it, not the state of the cluster.
    pub is_intent: bool,
    /// The path of the given value, for messages.
    pub path: PlanPlace,
}

/// Returns the text of a leaf of a child of `import` if it does not depend on the custom resource: a literal, or inputs
/// that are literal.
pub fn known_text(imports: &[ImportPlan], import: Option<usize>, leaf: &Leaf) -> Option<String> {
    if let Some(literal) = leaf.template.literal() {
        return Some(literal.trim().to_owned());
    }
    let inputs = &imports.get(import?)?.inputs;
    let known = |path: &Path| match path.steps() {
        [PathStep::Field(root), PathStep::Field(name), ..] if &**root == "inputs" => inputs
            .iter()
            .any(|input| input.name == *name && input.fixed().is_some()),
        _ => false,
    };
    let template = &leaf.template;
    if template.reads_clock() || template.is_random() || !template.reads().iter().all(known) {
        return None;
    }
    let fixed = inputs
        .iter()
        .filter_map(|input| Some((input.name.clone(), input.fixed()?.clone())));
    let inputs = Node::Map(fixed.collect::<Map>());
    let data = Data::new().with("inputs", &inputs);
    let text = leaf.template.render_text(&data, &mut EvalBudget::default());
    Some(text.ok()?.trim().to_owned())
}

impl InputPlan {
    /// Returns the value if it does not depend on the custom resource.
    fn fixed(&self) -> Option<&Node> {
        match self.given.as_ref().or(self.default.as_ref()) {
            Some(ObjectTree::Fixed(node)) => Some(node),
            _ => None,
        }
    }
}

impl ImportPlan {
    /// Calls `visit` with every expression that the value of the input with that name, or of any input, may come from, and with the
    /// import whose inputs that expression reads: what is given reads those of the importing document, a default reads none.
    pub fn visit_values(&self, name: Option<&str>, visit: &mut dyn FnMut(Option<usize>, &Leaf)) {
        let inputs = self.inputs.iter();
        for input in inputs.filter(|input| name.is_none_or(|name| &*input.name == name)) {
            for (tree, import) in [(&input.given, self.outer), (&input.default, None)] {
                if let Some(tree) = tree {
                    tree.visit(&mut |leaf| visit(import, leaf));
                }
            }
        }
    }
}

/// True if only the user sets the value at a path. An input has the origin of the value given for it.
pub fn is_intent(path: &Path, import: Option<&ImportPlan>) -> bool {
    let Some(PathStep::Field(root)) = path.steps().first() else {
        return false;
    };
    if &**root != "inputs" {
        return matches!(&**root, "apiVersion" | "kind" | "metadata" | "spec");
    }
    let inputs = import.map_or(&[][..], |import| &import.inputs);
    match path.steps().get(1) {
        Some(PathStep::Field(name)) => inputs
            .iter()
            .any(|input| input.name == *name && input.is_intent),
        _ => inputs.iter().all(|input| input.is_intent),
    }
}

/// True if the namespace of `leaf`, in the document of `import`, is always the custom resource's own.
pub fn is_own(imports: &[ImportPlan], import: Option<usize>, leaf: &Leaf) -> bool {
    let source = leaf.template.source().trim();
    let inside = source
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    let Some(inside) = inside.map(|inside| inside.trim_matches('-').trim()) else {
        return false;
    };
    if inside == OWN_NAMESPACE {
        return true;
    }
    let (Some(name), Some(import)) = (
        inside.strip_prefix(".inputs."),
        import.and_then(|import| imports.get(import)),
    ) else {
        return false;
    };
    let input = import.inputs.iter().find(|input| *input.name == *name);
    match input.and_then(|input| input.given.as_ref()) {
        Some(ObjectTree::Leaf(given)) => is_own(imports, import.outer, given),
        _ => false,
    }
}

/// The namespace of the custom resource in templates.
const OWN_NAMESPACE: &str = ".metadata.namespace";
