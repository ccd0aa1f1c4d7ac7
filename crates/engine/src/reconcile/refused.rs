//! The fields that the API server names when it refuses an apply, matched with the leaves of a rendered object.
//!
//! Source: structured-merge-diff, `fieldpath.Path.String`: `.name` is a field, `[key="value",other=1]` a list item by its
//! keys, `[="value"]` a set's value, `[0]` an item by position. Names are not escaped, not even their dots: such a path can
//! be followed along a leaf's trail, but not be parsed on its own.

use super::owned::{Element, ElementValue, OwnValues, PathElement};
use orkestra_object::value::Node;

/// True if `field` is the path at `trail`, or an atomic list or map above it.
pub(crate) fn names(field: &str, trail: &[PathElement<'_>], own: OwnValues<'_>) -> bool {
    let mut rest = field;
    for step in trail {
        if rest.is_empty() {
            return true;
        }
        let after = match step {
            PathElement::Field(key) => rest
                .strip_prefix('.')
                .and_then(|rest| rest.strip_prefix(&***key)),
            PathElement::Item(..) => read_item(rest, own)
                .filter(|(element, _)| element.matches(*step, own))
                .map(|(_, after)| after),
        };
        let Some(after) = after else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

/// Splits a field as validation writes it (`spec.ports[1].name`, `data[key]`) into steps; `None` is a list item or a key of a map.
///
/// Source: apimachinery, `field.Path.String`.
pub(crate) fn validation_steps(field: &str) -> Vec<Option<&str>> {
    let mut steps = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            steps.push(None);
            rest = inside.split_once(']').map_or("", |(_, after)| after);
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            steps.push(Some(name));
        }
        rest = after;
    }
    steps
}

/// Reads the list item or set value at the beginning of `text`; returns it and the rest.
fn read_item<'a>(text: &'a str, own: OwnValues<'_>) -> Option<(Element, &'a str)> {
    let mut rest = text.strip_prefix('[')?;
    let (position, after) = rest.split_once(']')?;
    if let Ok(position) = position.parse() {
        return Some((Element::Index(position), after));
    }
    let mut keys = Vec::new();
    loop {
        let (key, value) = rest.split_once('=')?;
        let (scalar, after) = read_scalar(value, own)?;
        if key.is_empty() {
            return Some((Element::Value(scalar), after.strip_prefix(']')?));
        }
        keys.push((key.into(), scalar));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Some((Element::Item(keys.into()), after.strip_prefix(']')?)),
        }
    }
}

/// Reads the value at the beginning of `text`: Go's quoted strings are JSON, except for control characters.
fn read_scalar<'a>(text: &'a str, own: OwnValues<'_>) -> Option<(ElementValue, &'a str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Node>();
    let value = values.next()?.ok()?;
    Some((
        ElementValue::read(&value, own),
        text.get(values.byte_offset()..)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::owned::tests::{OWN, node};
    use orkestra_object::value::Key;

    /// True if `field` names the field `leaf` of `item`, the second of the list `spec.list`.
    fn names_in(field: &str, item: &str, leaf: &str) -> bool {
        let (spec, list, leaf) = (Key::from("spec"), Key::from("list"), Key::from(leaf));
        let item = node(item);
        let trail = [
            PathElement::Field(&spec),
            PathElement::Field(&list),
            PathElement::Item(1, &item),
            PathElement::Field(&leaf),
        ];
        names(field, &trail, OWN)
    }

    #[test]
    fn a_list_item_is_named_by_its_keys_and_by_those_alone() {
        for (named, item, field) in [
            (true, r#"{"name":"web"}"#, r#".spec.list[name="web"].image"#),
            (
                true,
                r#"{"name":"a\"],b"}"#,
                r#".spec.list[name="a\"],b"].image"#,
            ),
            (false, r#"{"name":"web"}"#, r#".spec.list[name="db"].image"#),
            (
                true,
                r#"{"port":80}"#,
                r#".spec.list[port=80,protocol="TCP"].image"#,
            ),
            (
                false,
                r#"{"port":80}"#,
                r#".spec.list[port=80,protocol="UDP"].image"#,
            ),
            (false, r#"{"port":80}"#, ".spec.list[port=8080].image"),
            (true, r#"{"port":80}"#, ".spec.list[1].image"),
            (false, r#"{"port":80}"#, ".spec.list[2].image"),
        ] {
            assert_eq!(names_in(field, item, "image"), named, "{item} {field}");
        }
    }

    #[test]
    fn what_lies_below_an_atomic_list_is_named_with_it_and_no_neighbour_is() {
        for (named, field) in [
            (true, ".spec.list"),
            (true, r#".spec.list[name="web"]"#),
            (false, ".spec.lists"),
            (false, ".spec.li"),
            (false, r#".spec.list[name="web"].image.tag"#),
            (false, r#".spec.list[name="web"].images"#),
            (false, r#".spec.list[name="web""#),
            (false, ".spec.list[name=web].image"),
        ] {
            assert_eq!(
                names_in(field, r#"{"name":"web"}"#, "image"),
                named,
                "{field}"
            );
        }
    }

    #[test]
    fn a_name_with_dots_is_one_name() {
        let item = r#"{"name":"web"}"#;
        assert!(names_in(r#".spec.list[name="web"].a.b/c"#, item, "a.b/c"));
        assert!(!names_in(r#".spec.list[name="web"].a.b/c"#, item, "a"));
        assert!(!names_in(r#".spec.list[name="web"].a"#, item, "a.b/c"));
    }

    #[test]
    fn a_field_of_validation_is_split_at_dots_and_brackets() {
        assert_eq!(
            validation_steps("spec.ports[1].name"),
            [Some("spec"), Some("ports"), None, Some("name")]
        );
        assert_eq!(validation_steps("data[a.b]"), [Some("data"), None]);
        assert_eq!(validation_steps("a["), [Some("a"), None]);
        assert!(validation_steps("").is_empty());
    }

    #[test]
    fn a_set_is_named_by_its_value() {
        let (set, value) = (Key::from("finalizers"), node(r#""a/b""#));
        let trail = [PathElement::Field(&set), PathElement::Item(0, &value)];
        assert!(names(r#".finalizers[="a/b"]"#, &trail, OWN));
        assert!(!names(r#".finalizers[="a/c"]"#, &trail, OWN));
    }
}
