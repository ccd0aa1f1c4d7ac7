//! `forEach`: expands an entry into one child per element of a list or map.

use super::{
    ChildPlan, ForEach, ImportPlan, Leaf, conditions,
    walk::{Expression, visit_child},
};
use crate::{
    api::children,
    diagnostics::Code,
    resources::scope::At,
    value::{Key, Path, Step},
};

/// The element, in addition to its declared name.
pub(crate) const ITEM: &str = "item";
/// The index of the element, from 0.
pub(crate) const INDEX: &str = "index";
/// The value of a map's element.
pub(crate) const VALUE: &str = "value";
/// Reserved names.
const TAKEN: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "children",
    "cross",
    "external",
    "inputs",
    "enriched",
    INDEX,
    VALUE,
];

impl ForEach {
    /// True if a template that reads `path` reads the element; the root includes it.
    pub(crate) fn is_read_by(&self, path: &Path) -> bool {
        match path.steps().first() {
            Some(Step::Field(root)) => self.names().contains(&&**root),
            Some(Step::Index(_)) => false,
            None => true,
        }
    }

    /// Returns the roots that only its templates have.
    pub(crate) fn names(&self) -> [&str; 4] {
        [ITEM, INDEX, VALUE, &self.name]
    }

    /// True if `path` uses the element of a map as a pair: `.item.key` or `.item.value`.
    fn is_of_pair(&self, path: &Path) -> bool {
        let [Step::Field(root), Step::Field(part), ..] = path.steps() else {
            return false;
        };
        [ITEM, &*self.name].contains(&&**root) && ["key", VALUE].contains(&&**part)
    }

    /// True if only the user determines the elements.
    pub(crate) fn is_intent(&self, import: Option<&ImportPlan>) -> bool {
        conditions::is_intent(&self.field, import)
    }
}

/// Compiles the `forEach` of the entry at `at`; errors are reported and the `forEach` is left out.
pub(crate) fn compile(at: &At<'_>, declared: Option<&children::ForEach>) -> Option<ForEach> {
    let children::ForEach { field, as_ } = declared?;
    let at = at.field("forEach");
    let name = as_.as_deref().map_or(Some(ITEM), |name| {
        let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let what = if !is_word {
            "templates can only name what is made of letters, digits and `_`".to_owned()
        } else if TAKEN.contains(&name) {
            format!("`.{name}` is something else")
        } else {
            return Some(name);
        };
        let hint = "call the element by another word, such as `region`";
        at.field("as").error_hint(Code::BadName, what, hint);
        None
    });
    let written: &str = field;
    let text = written.trim();
    let place = at.field("field");
    place.text(); // Invalid reads are reported here.
    if text.contains("{{") {
        place.error_hint(
            Code::BadPath,
            "`forEach` takes a path, not a template",
            "write `spec.regions`",
        );
        return None;
    }
    match Path::parse(text) {
        Ok(path) if !path.is_empty() => Some(ForEach {
            field: path,
            name: Key::from(name?),
            pairs: false,
            path: at.text(),
        }),
        Ok(_) => {
            place.error_hint(
                Code::BadPath,
                "`forEach` needs the path of a list or map",
                "write `spec.regions`",
            );
            None
        }
        Err(why) => {
            place.bad_path(written, text, &why);
            None
        }
    }
}

/// Determines how the templates of a child use the element of a map: as its key, or as the pair of earlier documents.
pub(crate) fn settle(child: &mut ChildPlan) {
    let Some(each) = child.for_each.as_deref() else {
        return;
    };
    let mut pairs = false;
    let mut look = |path: &Path| pairs |= each.is_of_pair(path);
    visit_child(child, true, &mut |expression, _| match expression {
        Expression::Leaf(leaf) => leaf.template.reads().iter().for_each(&mut look),
        Expression::Condition(condition) => condition.visit_reads(&mut look),
        Expression::ForEach(_) => {}
    });
    if let Some(each) = &mut child.for_each {
        each.pairs = pairs;
    }
}

/// Refuses a child that would be the same for each element.
pub(crate) fn check_name(at: &At<'_>, child: &ChildPlan) {
    let Some(each) = &child.for_each else {
        return;
    };
    let reads = |leaf: &Leaf| {
        leaf.template
            .reads()
            .iter()
            .any(|path| each.is_read_by(path))
    };
    if reads(&child.name) || child.namespace.as_ref().is_some_and(reads) {
        return;
    }
    let element = if *each.name == *ITEM {
        "{{ .item }}".to_owned()
    } else {
        format!("{{{{ .{} }}}}", each.name)
    };
    at.place(&child.path).error_hint(
        Code::SameChildTwice,
        format!(
            "each element of `{}` makes the same {}",
            each.field, child.kind.kind
        ),
        format!("put the element into the name, such as `{{{{ .metadata.name }}}}-{element}`"),
    );
}
