//! What a plan reads of the custom resource and of its children.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChildAlias, ChildPlan, Condition, GroupKind, Leaf, Number, Operand, Reads, StatusPlan, kinds,
};
use crate::{
    diagnostics::{Code, nearest},
    template,
    value::{Key, Path, Step},
};

/// Roots of the custom resource itself.
const CR_ROOTS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
/// Roots that the language has and that are not built yet.
const LATER_ROOTS: [&str; 9] = [
    "cross", "events", "external", "health", "inputs", "item", "metrics", "request", "value",
];

/// A read that cannot be answered.
pub(crate) struct Unreadable {
    /// The field of the Katalog that reads.
    pub(crate) place: String,
    /// The byte of the field's text where it reads, if that is known.
    pub(crate) offset: Option<usize>,
    /// Which kind of problem it is.
    pub(crate) code: Code,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// Everything that templates and conditions of an operator read, and the names below `.children` that they use.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The reads, without those that lie below others.
    pub(crate) reads: Reads,
    /// Names below `.children`.
    pub(crate) aliases: BTreeSet<ChildAlias>,
    /// What cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// What stands under each name below `.children`.
pub(crate) fn names(children: &[ChildPlan]) -> BTreeMap<String, (GroupKind, Number)> {
    Known::new(children).0
}

/// Gathers what children and status read.
pub(crate) fn gather(children: &[ChildPlan], status: &StatusPlan) -> Gathered {
    let known = Known::new(children);
    let mut gathered = Gathered::default();
    for kind in known.kinds() {
        gathered.reads.children.entry(kind.clone()).or_default();
    }
    for child in children {
        child.visit_leaves(&mut |leaf| gathered.leaf(leaf, &known));
        child
            .when
            .iter()
            .for_each(|condition| gathered.condition(condition, &known));
    }
    for field in &status.fields {
        gathered.leaf(&field.value, &known);
        field
            .when
            .iter()
            .for_each(|condition| gathered.condition(condition, &known));
    }
    gathered.reads.cr = without_covered(std::mem::take(&mut gathered.reads.cr));
    for paths in gathered.reads.children.values_mut() {
        *paths = without_covered(std::mem::take(paths));
    }
    gathered
}

impl ChildPlan {
    /// Calls `visit` with the leaves of name, namespace and body; not with those of conditions.
    pub fn visit_leaves<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        visit(&self.name);
        self.namespace.iter().for_each(&mut *visit);
        self.body.visit(visit);
    }
}

/// The names below `.children` that the declared kinds have.
struct Known(BTreeMap<String, (GroupKind, Number)>);

impl Known {
    /// Of two kinds that share a name Kubernetes' own has it, else the one that is declared first.
    fn new(children: &[ChildPlan]) -> Self {
        let mut known = BTreeMap::new();
        let built_in = children
            .iter()
            .filter(|child| kinds::built_in(&child.kind.group_kind()).is_some());
        for child in built_in.chain(children) {
            let kind = &child.kind;
            let plural = kind
                .plural
                .as_ref()
                .map_or_else(|| kinds::guess_plural(&kind.kind), Key::to_string);
            let singular = kinds::lower_camel(&kind.kind);
            let names = [
                (kinds::camel_plural(&singular, &plural), Number::Plural),
                (plural, Number::Plural),
                (kind.kind.to_ascii_lowercase(), Number::Singular),
                (singular, Number::Singular),
            ];
            for (name, number) in names {
                known
                    .entry(name)
                    .or_insert_with(|| (kind.group_kind(), number));
            }
        }
        Self(known)
    }

    fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.0.values().map(|(kind, _)| kind)
    }

    /// The names as they are preferred, for messages.
    fn listed(&self) -> String {
        let singulars = self
            .0
            .iter()
            .filter(|(name, (kind, _))| **name == kinds::lower_camel(&kind.kind));
        singulars
            .map(|(name, _)| format!("`.children.{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Where something is read: a field and, if it is a template, its text.
#[derive(Clone, Copy)]
struct Place<'a> {
    field: &'a str,
    source: Option<&'a str>,
}

impl Gathered {
    fn leaf(&mut self, leaf: &Leaf, known: &Known) {
        let place = Place {
            field: &leaf.path,
            source: Some(leaf.template.source()),
        };
        leaf.template
            .reads()
            .iter()
            .for_each(|path| self.add(path, place, known));
    }

    fn condition(&mut self, condition: &Condition, known: &Known) {
        let field = format!("{}.field", condition.path);
        match &condition.operand {
            Operand::Path(path) => self.add(
                path,
                Place {
                    field: &field,
                    source: None,
                },
                known,
            ),
            Operand::Template(template) => {
                let place = Place {
                    field: &field,
                    source: Some(template.source()),
                };
                template
                    .reads()
                    .iter()
                    .for_each(|path| self.add(path, place, known));
            }
        }
        if let Some(leaf) = condition.right() {
            self.leaf(leaf, known);
        }
    }

    fn add(&mut self, path: &Path, place: Place<'_>, known: &Known) {
        let Some((root, below)) = path.steps().split_first() else {
            // The whole: everything that there is.
            self.reads.cr.extend(
                CR_ROOTS
                    .iter()
                    .map(|root| Path::from_iter([Step::Field(Key::from(*root))])),
            );
            self.all_children(known);
            return;
        };
        match root {
            Step::Field(name) if CR_ROOTS.contains(&&**name) => self.reads.cr.push(path.clone()),
            Step::Field(name) if &**name == "children" => self.child(below, place, known),
            // What a custom resource may be enriched with: it is not there, and notes take that.
            Step::Field(name) if template::is_added_key(name) => {}
            Step::Field(name) if LATER_ROOTS.contains(&&**name) => {
                self.refuse(place, name, format!("`.{name}` is not supported yet"), None);
            }
            other => {
                let name = match other {
                    Step::Field(name) => name.to_string(),
                    Step::Index(index) => index.to_string(),
                };
                let meant = match &*name {
                    "Name" | "name" => Some("metadata.name"),
                    "Namespace" | "namespace" => Some("metadata.namespace"),
                    other => nearest(other, CR_ROOTS.into_iter().chain(["children"])),
                };
                let hint = match meant {
                    Some(meant) => format!("did you mean `.{meant}`?"),
                    None => format!(
                        "templates read `.metadata`, `.spec`, `.status` and `.children`; a field of the spec is `.spec.{name}`"
                    ),
                };
                self.refuse(place, &name, format!("there is no `.{name}`"), Some(hint));
            }
        }
    }

    fn child(&mut self, below: &[Step], place: Place<'_>, known: &Known) {
        let Some((name, rest)) = below.split_first() else {
            return self.all_children(known);
        };
        let found = match name {
            Step::Field(name) => known.0.get_key_value(&**name),
            Step::Index(_) => None,
        };
        let Some((name, (kind, number))) = found else {
            let name = Path::from_iter([name.clone()]);
            let hint = if known.0.is_empty() {
                "the operatorBox declares no children".to_owned()
            } else {
                format!("there is {}", known.listed())
            };
            let text = format!("children.{name}");
            return self.refuse(
                place,
                &text,
                format!("the operatorBox declares no `{name}`"),
                Some(hint),
            );
        };
        let rest = if *number == Number::Plural {
            rest.get(1..).unwrap_or_default()
        } else {
            rest
        };
        self.reads
            .children
            .entry(kind.clone())
            .or_default()
            .push(rest.iter().cloned().collect());
        self.aliases.insert(ChildAlias {
            name: Key::from(&**name),
            kind: kind.clone(),
            number: *number,
        });
    }

    /// `.children` as a whole, each kind under its preferred names.
    fn all_children(&mut self, known: &Known) {
        for (name, (kind, number)) in &known.0 {
            self.reads
                .children
                .entry(kind.clone())
                .or_default()
                .push(Path::root());
            let lower = name.bytes().all(|byte| !byte.is_ascii_uppercase());
            let has_camel = kinds::lower_camel(&kind.kind)
                .bytes()
                .any(|byte| byte.is_ascii_uppercase());
            if !(lower && has_camel) {
                self.aliases.insert(ChildAlias {
                    name: Key::from(&**name),
                    kind: kind.clone(),
                    number: *number,
                });
            }
        }
    }

    /// Reports that `read`, as it stands in the text, cannot be read.
    fn refuse(&mut self, place: Place<'_>, read: &str, message: String, hint: Option<String>) {
        let offset = place.source.and_then(|source| {
            source
                .find(&format!(".{read}"))
                .or_else(|| source.find(read))
        });
        let is_later = LATER_ROOTS.contains(&read);
        self.unreadable.push(Unreadable {
            code: if is_later {
                Code::NotSupportedYet
            } else {
                Code::UnknownData
            },
            place: place.field.to_owned(),
            offset,
            message,
            hint,
        });
    }
}

/// The paths, sorted, without those that lie below others.
fn without_covered(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_by(Path::order_of_places);
    let mut kept: Vec<Path> = Vec::new();
    for path in paths {
        if !kept.last().is_some_and(|known| path.starts_with(known)) {
            kept.push(path);
        }
    }
    kept.sort();
    kept
}
