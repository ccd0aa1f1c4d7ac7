//! Compares objects with expected ones.

use orkestra_engine::reconcile::kstatus::{Readiness, readiness};
use orkestra_engine::reconcile::simulate::compare;
use orkestra_language::api::simulate::ExpectedResource;
use orkestra_object::value::{Node, Path};
use orkestra_plan::GroupKind;

/// Returns the differences between the objects that were found and the expected one: `-` is expected, `+` is actual. Empty
/// if there are none.
///
/// `found` contains all objects of the kind in the namespace that have the expected name.
pub fn check_resource(expected: &ExpectedResource, found: &[Node]) -> Vec<String> {
    let mut diff = Vec::new();
    let what = expected.name.as_ref().map_or_else(
        || expected.kind.clone(),
        |name| format!("{} {name}", expected.kind),
    );
    let wanted = expected.count.and_then(|count| usize::try_from(count).ok());
    if wanted.map_or(found.is_empty(), |wanted| found.len() != wanted) {
        let wanted = wanted.map_or("at least 1".to_owned(), |wanted| wanted.to_string());
        diff.push(format!("- {what}: {wanted}"));
        diff.push(format!("+ {what}: {}", found.len()));
        diff.extend(found.iter().map(|object| format!("  {}", name_of(object))));
    }
    for object in found {
        let mut own = Vec::new();
        if expected.ready == Some(true) {
            let why = match readiness(&kind_of(object), object) {
                Readiness::Current => None,
                Readiness::InProgress(why) | Readiness::Failed(why) => Some(why.into_string()),
                Readiness::Unreadable(_) => Some("the object cannot be read".to_owned()),
            };
            if let Some(why) = why {
                own.extend(["- ready".to_owned(), format!("+ not ready: {why}")]);
            }
        }
        let is_secret = kind_of(object).to_string() == "Secret";
        for (field, wanted) in &expected.fields {
            // The document layer has validated the path.
            let at = Path::parse(field).unwrap_or_default();
            let nothing = Node::Null;
            let seen = object.at(&at).unwrap_or(&nothing);
            compare(wanted, seen, field, is_secret, &mut own);
        }
        if !own.is_empty() {
            diff.push(format!("  {}", name_of(object)));
            diff.append(&mut own);
        }
    }
    diff
}

fn text<'n>(object: &'n Node, field: &str) -> &'n str {
    object.get(field).and_then(Node::as_str).unwrap_or_default()
}

fn kind_of(object: &Node) -> GroupKind {
    let version = text(object, "apiVersion");
    GroupKind {
        group: version
            .split_once('/')
            .map_or("", |(group, _)| group)
            .into(),
        kind: text(object, "kind").into(),
    }
}

/// Returns `Website shop/hello`.
fn name_of(object: &Node) -> String {
    let nothing = Node::Null;
    let metadata = object.get("metadata").unwrap_or(&nothing);
    let (kind, name) = (text(object, "kind"), text(metadata, "name"));
    match text(metadata, "namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}
