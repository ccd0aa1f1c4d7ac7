//! The field that is asked about: `deployment/north.spec.template.spec.containers[name=web].image`.

use orkestra_object::value::{Key, Node, Path, PathStep};
use orkestra_plan::{ChildKey, kinds};

/// Finds the child and the text of the path among the objects that a custom resource has.
///
/// Names may contain dots, so the longest name that fits counts.
///
/// # Errors
/// What is wrong, and which children there are.
pub(crate) fn find<'c>(
    text: &str,
    children: impl IntoIterator<Item = &'c ChildKey>,
) -> Result<(ChildKey, &str), String> {
    let children: Vec<&ChildKey> = children.into_iter().collect();
    let Some((kind, rest)) = text.split_once('/') else {
        return Err(format!(
            "`{text}` is not of the form `KIND/NAME` or `KIND/NAME.PATH`{}",
            known(&children)
        ));
    };
    let mut found: Vec<(&ChildKey, &str)> = Vec::new();
    for key in children.iter().filter(|key| is_kind(key, kind)) {
        let Some(path) = rest.strip_prefix(&*key.object.name) else {
            continue;
        };
        if path.is_empty() || path.starts_with(['.', '[']) {
            found.push((key, path));
        }
    }
    found.sort_by_key(|(key, _)| std::cmp::Reverse(key.object.name.len()));
    let Some((first, path)) = found.first() else {
        return Err(format!("`{text}` names no child{}", known(&children)));
    };
    let is_alike = |(key, _): &&(&ChildKey, &str)| key.object.name == first.object.name;
    if found.iter().filter(is_alike).count() > 1 {
        let all: Vec<String> = found.iter().map(|(key, _)| key.to_string()).collect();
        return Err(format!("`{text}` is ambiguous: {}", all.join(", ")));
    }
    Ok(((*first).clone(), path))
}

/// True if the word names the kind: the kind in any case, a plural or a short name, or `KIND.GROUP`.
fn is_kind(key: &ChildKey, word: &str) -> bool {
    let is_named = |name: &str| name.eq_ignore_ascii_case(word);
    is_named(&key.kind.kind)
        || is_named(&key.kind.to_string())
        || is_named(&format!("{}s", key.kind.kind))
        || kinds::named(word).is_some_and(|known| known.group_kind() == key.kind)
}

fn known(children: &[&ChildKey]) -> String {
    let names = children.iter().map(|key| {
        let kind = key.kind.kind.to_lowercase();
        format!("\n  {kind}/{}", key.object.name)
    });
    let names: String = names.collect();
    if names.is_empty() {
        return "; the custom resource has no children".to_owned();
    }
    format!("; its children are:{names}")
}

/// Parses the path of a field of an object: as [`Path::parse`], and with `[name=web]` for the item of a list that has these values.
///
/// # Errors
/// What is wrong with the text, and where.
pub(crate) fn path(text: &str, object: &Node) -> Result<Path, String> {
    let text = text.trim_start_matches('.');
    let mut path = Path::root();
    let mut rest = text;
    while let Some(open) = selector(rest) {
        let (before, after) = rest.split_at(open);
        let close = after
            .find(']')
            .ok_or_else(|| format!("`{text}`: bracket without end"))?;
        extend(&mut path, before, text)?;
        let keys = &after[1..close];
        let items = object.at(&path).and_then(Node::as_list).unwrap_or_default();
        let at = items.iter().position(|item| has(item, keys));
        let at = at.ok_or_else(|| format!("`{path}` has no item with `{keys}`"))?;
        path.push_index(at);
        rest = &after[close + 1..];
    }
    extend(&mut path, rest, text)?;
    Ok(path)
}

/// Returns where the next `[key=value]` begins.
fn selector(text: &str) -> Option<usize> {
    let opens = text.match_indices('[').map(|(at, _)| at);
    opens.into_iter().find(|at| {
        let inside = text[at + 1..].split(']').next().unwrap_or_default();
        inside.contains('=') && !inside.starts_with(['"', '\''])
    })
}

fn extend(path: &mut Path, part: &str, whole: &str) -> Result<(), String> {
    let parsed = Path::parse(part).map_err(|error| format!("`{whole}`: {error}"))?;
    for step in parsed.steps() {
        match step {
            PathStep::Field(key) => path.push_field(Key::clone(key)),
            PathStep::Index(index) => path.push_index(*index),
        }
    }
    Ok(())
}

/// True if the item has these values: `port=53,protocol=UDP`.
fn has(item: &Node, keys: &str) -> bool {
    keys.split(',').all(|pair| {
        let Some((name, value)) = pair.split_once('=') else {
            return false;
        };
        let found = item.get(name.trim()).map(Node::to_text);
        // The API server assumes it; a rendered object may not have it.
        let found = found.or((name.trim() == "protocol").then(|| "TCP".into()));
        found.is_some_and(|found| *found == *value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use orkestra_plan::{GroupKind, ObjectKey};
    use serde_json::json;

    fn child(kind: &str, name: &str) -> ChildKey {
        ChildKey {
            kind: GroupKind::parse(kind),
            object: ObjectKey {
                namespace: Some("shop".into()),
                name: name.into(),
            },
        }
    }

    #[test]
    fn a_child_is_named_by_kind_and_the_longest_name_that_fits() {
        let all = [
            child("Deployment.apps", "web"),
            child("Deployment.apps", "web.v2"),
            child("ConfigMap", "web"),
        ];
        let of = |text: &'static str| find(text, &all).map(|(key, path)| (key.to_string(), path));
        let web = || "Deployment.apps shop/web".to_owned();
        assert_eq!(
            of("deployment/web.spec.replicas"),
            Ok((web(), ".spec.replicas"))
        );
        assert_eq!(of("deploy/web"), Ok((web(), "")));
        let dotted = "Deployment.apps shop/web.v2".to_owned();
        assert_eq!(of("deployments/web.v2.spec"), Ok((dotted, ".spec")));
        assert!(of("cm/web.data").is_ok());
        let unknown = of("secret/web.data").unwrap_err();
        assert!(unknown.contains("configmap/web"), "{unknown}");
        assert!(of("web").unwrap_err().contains("KIND/NAME"));
    }

    #[test]
    fn items_are_selected_by_index_or_by_their_keys() {
        let object = Node::from(&json!({ "spec": { "ports": [
            { "port": 53, "protocol": "UDP" }, { "port": 53, "name": "tcp" },
        ] }, "metadata": { "labels": { "a.b/c": "x" } } }));
        let of = |text: &str| path(text, &object).map(|path| path.to_string());
        assert_eq!(of(".spec.ports[1].name").unwrap(), "spec.ports[1].name");
        let tcp = ".spec.ports[port=53,protocol=TCP].name";
        assert_eq!(of(tcp).unwrap(), "spec.ports[1].name");
        let label = r#".metadata.labels["a.b/c"]"#;
        assert_eq!(of(label).unwrap(), r#"metadata.labels["a.b/c"]"#);
        assert!(of(".spec.ports[port=1]").unwrap_err().contains("no item"));
        assert!(of(".spec..x").is_err());
    }
}
