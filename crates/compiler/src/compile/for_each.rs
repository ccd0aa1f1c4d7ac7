//! `forEach`: expands an entry into one child per element of a list or map.

use crate::scope::At;
use orkestra_language::{api::children, diagnostics::Code};
use orkestra_object::value::{Key, Path};
use orkestra_plan::{
    ChildPlan, ForEachPlan, HOOK, Leaf,
    for_each::{INDEX, ITEM, VALUE},
    walk::{Expression, visit_child},
};

/// Reserved names.
const TAKEN: [&str; 16] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "children",
    "cross",
    "external",
    HOOK,
    "inputs",
    "enriched",
    "health",
    "metrics",
    "ork",
    INDEX,
    VALUE,
];

/// Compiles the `forEach` of the entry at `at`; errors are reported and the `forEach` is left out.
pub(crate) fn plan(at: &At<'_>, declared: Option<&children::ForEach>) -> Option<ForEachPlan> {
    let children::ForEach { field, as_ } = declared?;
    let at = at.field("forEach");
    let name = as_.as_deref().map_or(Some(ITEM), |name| {
        let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let what = if !is_word {
            "the name must consist of letters, digits and `_`".to_owned()
        } else if TAKEN.contains(&name) {
            format!("`.{name}` already has another meaning")
        } else {
            return Some(name);
        };
        let hint = "choose another name for the element, such as `region`";
        at.field("as").error_hint(Code::BadName, what, hint);
        None
    });
    let written: &str = field;
    let text = written.trim();
    let place = at.field("field");
    if text.contains("{{") {
        place.error_hint(
            Code::BadPath,
            "`forEach` takes a path, not a template",
            "write `spec.regions`",
        );
        return None;
    }
    match Path::parse(text) {
        Ok(path) if !path.is_empty() => Some(ForEachPlan {
            field: path,
            name: Key::from(name?),
            pairs: false,
            path: at.kept(),
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
pub(crate) fn determine_form(child: &mut ChildPlan) {
    let Some(each) = child.for_each.as_deref() else {
        return;
    };
    let mut pairs = false;
    let mut look = |path: &Path| pairs |= each.is_of_pair(path);
    visit_child(child, true, &mut |expression, _| match expression {
        Expression::Leaf(leaf) => leaf.template.reads().iter().for_each(&mut look),
        Expression::Condition(condition) => condition.visit_reads(&mut look),
        Expression::ForEach(_) | Expression::Body(_) => {}
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
            "each element of `{}` creates the same {}",
            each.field, child.kind.kind
        ),
        format!("include the element in the name, such as `{{{{ .metadata.name }}}}-{element}`"),
    );
}
