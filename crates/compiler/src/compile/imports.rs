//! Resolves imports of Motifs, and their inputs.
//!
//! A Motif may be imported several times, each time with its own inputs. A plan therefore has an [`ImportPlan`] for each
//! import, and every child and status field names the import that declares it.

use std::collections::BTreeMap;

use crate::scope::{
    At, Library, ReferenceKind,
    library::{Content, named, refusal},
};
use orkestra_language::{
    api::{
        MotifImport, MotifSpec,
        motif::{InputType, MotifInput},
    },
    diagnostics::{Code, nearest_or_all},
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::inputs;
use orkestra_plan::{Coerce, ImportPlan, InputPlan, ObjectTree};

/// Maximum number of imports of one operator, including those inside of Motifs: each adds its children.
const MOST_IMPORTS: usize = 200;

/// An import and its Motif.
pub(crate) struct Imported<'a> {
    /// The path of the import.
    pub(crate) place: At<'a>,
    /// `None` for a Motif that is checked alone.
    import: Option<&'a MotifImport>,
    /// The path of the Motif's `spec`.
    pub(crate) at: At<'a>,
    /// The Motif's `spec`.
    pub(crate) motif: &'a MotifSpec,
    /// The import whose Motif declares this one; `None` for the Katalog. It always comes before this one.
    outer: Option<usize>,
}

impl Imported<'_> {
    /// True if it is declared in the Katalog itself.
    pub(crate) fn is_outermost(&self) -> bool {
        self.outer.is_none()
    }

    /// True if it gives inputs.
    pub(crate) fn gives_inputs(&self) -> bool {
        self.import.is_some_and(|import| !import.with.is_empty())
    }

    /// Returns the name of the Motif's document.
    pub(crate) fn name(&self) -> &str {
        self.at.origin().map_or("this Motif", |origin| &origin.name)
    }
}

/// Follows the imports at `at`, and those of their Motifs. Imports that cannot be resolved are reported and left out.
pub(crate) fn follow<'a>(
    at: &At<'a>,
    imports: &'a [MotifImport],
    library: &'a Library,
) -> Vec<Imported<'a>> {
    let mut follow = Follow {
        library,
        found: Vec::new(),
        path: Vec::new(),
    };
    follow.list(at, imports, None);
    follow.found
}

/// Returns a Motif whose `spec` is at `at`, checked alone, and its imports.
pub(crate) fn of_motif<'a>(
    at: &At<'a>,
    motif: &'a MotifSpec,
    library: &'a Library,
) -> Vec<Imported<'a>> {
    let mut follow = Follow {
        library,
        found: vec![Imported {
            place: at.clone(),
            import: None,
            at: at.clone(),
            motif,
            outer: None,
        }],
        path: Vec::new(),
    };
    follow.list(&at.field("imports"), &motif.imports, Some(0));
    follow.found
}

struct Follow<'a> {
    library: &'a Library,
    found: Vec<Imported<'a>>,
    /// The names of the Motifs from the Katalog to the current one.
    path: Vec<Box<str>>,
}

impl<'a> Follow<'a> {
    fn list(&mut self, at: &At<'a>, imports: &'a [MotifImport], outer: Option<usize>) {
        for (index, import) in imports.iter().enumerate() {
            self.one(&at.index(index), import, outer);
        }
    }

    fn one(&mut self, at: &At<'a>, import: &'a MotifImport, outer: Option<usize>) {
        if let Some((field, code, what, remedy)) = refusal(import) {
            at.field(field).error_hint(code, what, remedy);
            return;
        }
        let place = at.field("motif");
        let Some(document) = self
            .library
            .open(&place, ReferenceKind::Motif, &named(import))
        else {
            return;
        };
        let Content::Motif(motif) = &document.content else {
            return;
        };
        let name = &document.origin.name;
        if let Some(start) = self.path.iter().position(|known| known == name) {
            let circle: Vec<&str> = self.path[start..].iter().map(|name| &**name).collect();
            let message = format!("`{name}` imports itself: {} → {name}", circle.join(" → "));
            place.error_hint(Code::ImportCycle, message, "remove one of these imports");
            return;
        }
        if self.found.len() == MOST_IMPORTS {
            let message = format!("more than {MOST_IMPORTS} imports, those of Motifs included");
            place.shared().error(Code::TooLarge, message);
            return;
        }
        let index = self.found.len();
        let spec = at.document(&document.origin).field("spec");
        self.found.push(Imported {
            place: at.clone(),
            import: Some(import),
            at: spec.clone(),
            motif,
            outer,
        });
        self.path.push(name.clone());
        self.list(&spec.field("imports"), &motif.imports, Some(index));
        self.path.pop();
    }
}

/// Returns the order in which imports are merged: those of a Motif before the Motif itself.
pub(crate) fn merge_order(imported: &[Imported<'_>]) -> Vec<usize> {
    fn visit(imported: &[Imported<'_>], outer: Option<usize>, order: &mut Vec<usize>) {
        for (index, _) in imported
            .iter()
            .enumerate()
            .filter(|(_, import)| import.outer == outer)
        {
            visit(imported, Some(index), order);
            order.push(index);
        }
    }
    let mut order = Vec::with_capacity(imported.len());
    visit(imported, None, &mut order);
    order
}

/// Compiles the inputs of imports, in order; `at` carries the symbols.
pub(crate) fn plans(at: &At<'_>, imported: &[Imported<'_>]) -> Box<[ImportPlan]> {
    let mut plans: Vec<ImportPlan> = Vec::with_capacity(imported.len());
    for import in imported {
        check_with(&import.place.as_at(at), import);
        let outer = import.outer.and_then(|outer| plans.get(outer));
        let inputs = import.motif.inputs.iter().enumerate();
        let inputs = inputs.map(|(index, input)| self::input(at, import, (index, input), outer));
        let inputs = inputs.collect();
        plans.push(ImportPlan {
            motif: import.name().into(),
            outer: import.outer,
            inputs,
        });
    }
    plans.into()
}

fn input(
    at: &At<'_>,
    imported: &Imported<'_>,
    (index, input): (usize, &MotifInput),
    outer: Option<&ImportPlan>,
) -> InputPlan {
    let place = imported.place.as_at(at).field("with").field(&input.name);
    let inputs = imported.at.as_at(at).field("inputs");
    let given = imported
        .import
        .and_then(|import| import.with.get(&input.name));
    let given = given.and_then(|node| value(&place, input, node));
    let default = input.default.as_ref();
    let default =
        default.and_then(|node| value(&inputs.index(index).field("default"), input, node));
    let mut is_intent = true;
    for (tree, inputs) in [(&given, outer), (&default, None)] {
        if let Some(tree) = tree {
            tree.visit(&mut |leaf| {
                let mut reads = leaf.template.reads().iter();
                is_intent &= reads.all(|path| inputs::is_intent(path, inputs));
            });
        }
    }
    InputPlan {
        name: Key::from(&*input.name),
        given,
        default,
        coerce: input.type_.map_or(Coerce::Native, coerce),
        is_intent,
        path: place.kept(),
    }
}

/// Reports inputs that the Motif does not have, and required inputs that are missing.
fn check_with(place: &At<'_>, imported: &Imported<'_>) {
    let Some(MotifImport { with, .. }) = imported.import else {
        return;
    };
    unknown(place, imported, with);
    let missing: Vec<String> = (imported.motif.inputs.iter())
        .filter(|input| input.required == Some(true) && !is_given(with, &input.name))
        .map(|input| format!("`{}`", input.name))
        .collect();
    if !missing.is_empty() {
        let inputs = if missing.len() == 1 {
            "input"
        } else {
            "inputs"
        };
        let message = format!(
            "`{}` needs the {inputs} {}",
            imported.name(),
            missing.join(", ")
        );
        let hint = "set it under `with`";
        place
            .field("motif")
            .error_hint(Code::MissingInput, message, hint);
    }
}

fn is_given(with: &BTreeMap<String, Node>, name: &str) -> bool {
    with.get(name).is_some_and(|node| *node != Node::Null)
}

fn unknown(place: &At<'_>, imported: &Imported<'_>, with: &BTreeMap<String, Node>) {
    let names = || imported.motif.inputs.iter().map(|input| &*input.name);
    for name in with
        .keys()
        .filter(|name| names().all(|known| known != &***name))
    {
        let at = place.field("with").field(name);
        let message = format!("`{}` has no input `{name}`", imported.name());
        let hint = if imported.motif.inputs.is_empty() {
            "it takes no inputs".to_owned()
        } else {
            nearest_or_all(name, "", names().collect::<Vec<_>>())
        };
        at.error_hint(Code::UnknownInput, message, hint);
    }
}

/// Compiles the value at `at` and checks its type as far as it is literal.
fn value(at: &At<'_>, input: &MotifInput, node: &Node) -> Option<ObjectTree> {
    let tree = at.manifest(node)?;
    let Some(type_) = input.type_ else {
        return Some(tree);
    };
    let fits = match &tree {
        ObjectTree::Leaf(_) | ObjectTree::Fixed(Node::Null) => true,
        ObjectTree::Fixed(Node::List(_) | Node::Map(_)) => false,
        // Numbers and booleans are valid where text is expected.
        ObjectTree::Fixed(node) => coerce(type_)
            .apply(node.clone())
            .is_ok_and(|node| node.is_some()),
        _ => false,
    };
    if fits {
        return Some(tree);
    }
    let message = format!("the input `{}` takes {}", input.name, called(type_));
    at.error(Code::InputType, message);
    None
}

fn coerce(type_: InputType) -> Coerce {
    match type_ {
        InputType::String => Coerce::Text,
        InputType::Int => Coerce::Int,
        InputType::Bool => Coerce::Bool,
    }
}

fn called(type_: InputType) -> &'static str {
    match type_ {
        InputType::String => "text",
        InputType::Int => "an integer",
        InputType::Bool => "`true` or `false`",
    }
}
