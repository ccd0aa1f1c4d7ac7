//! The fields of an object that a field manager applies, and the edits that another client could make to them.

use serde_json::{Map, Value, json};

/// A step from the root of an object: a field, a list item by its keys, or a value of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Field(String),
    Item(Map<String, Value>),
    Member(Value),
}

/// A path from the root of an object.
pub(crate) type Trail = Vec<Step>;

/// An edit of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Another value.
    Change,
    /// No value.
    Remove,
    /// Another field or item in the same map or list.
    AddBeside,
}

/// An edit that a client makes.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) trail: Trail,
    pub(crate) edit: Edit,
}

impl Planned {
    /// Reports whether the edit may take a value away from the field at `trail`.
    fn affects(&self, trail: &Trail) -> bool {
        let at = &self.trail;
        let item = match at.last() {
            // A change of a key changes the identity of the item.
            Some(Step::Field(name)) => at[..at.len() - 1]
                .iter()
                .rposition(|step| matches!(step, Step::Item(keys) if keys.contains_key(name))),
            _ => None,
        };
        let prefix = match item {
            Some(item) if item + 2 == at.len() => &at[..=item],
            _ => at.as_slice(),
        };
        self.edit != Edit::AddBeside && trail.starts_with(prefix)
    }
}

/// Returns the edits of all fields in rounds: in one round no field is affected more than three times, which counts as a contest with
/// another writer.
pub(crate) fn rounds(planned: Vec<Planned>, fields: &[Trail]) -> Vec<Vec<Planned>> {
    const MOST: usize = 3;
    let mut rounds: Vec<(Vec<Planned>, Vec<usize>)> = Vec::new();
    for edit in planned {
        let affected: Vec<usize> = (0..fields.len())
            .filter(|at| edit.affects(&fields[*at]))
            .collect();
        let found = rounds
            .iter()
            .position(|(_, counts)| affected.iter().all(|at| counts[*at] < MOST));
        let at = found.unwrap_or_else(|| {
            rounds.push((Vec::new(), vec![0; fields.len()]));
            rounds.len() - 1
        });
        let (edits, counts) = &mut rounds[at];
        for field in affected {
            counts[field] += 1;
        }
        edits.push(edit);
    }
    rounds.into_iter().map(|(edits, _)| edits).collect()
}

/// Returns the applied fields of an object: each leaf, and each list item that is applied as such.
pub(crate) fn applied(fields: &Value) -> Vec<Trail> {
    let mut all = Vec::new();
    collect(fields, &mut Vec::new(), &mut all);
    all
}

fn collect(fields: &Value, trail: &mut Trail, all: &mut Vec<Trail>) {
    let Some(map) = fields.as_object() else {
        return;
    };
    let is_item = matches!(trail.last(), Some(Step::Item(_)));
    if !trail.is_empty() && (map.keys().all(|key| key == ".") || (is_item && map.contains_key(".")))
    {
        all.push(trail.clone());
    }
    for (key, below) in map {
        let step = match key.split_once(':') {
            Some(("f", name)) => Step::Field(name.to_owned()),
            Some(("k", keys)) => Step::Item(serde_json::from_str(keys).unwrap_or_default()),
            Some(("v", value)) => Step::Member(serde_json::from_str(value).unwrap_or_default()),
            _ => continue,
        };
        trail.push(step);
        collect(below, trail, all);
        trail.pop();
    }
}

/// Returns the JSON pointer and the value at a path, if the object has it.
pub(crate) fn find<'a>(object: &'a Value, trail: &[Step]) -> Option<(String, &'a Value)> {
    let (mut at, mut pointer) = (object, String::new());
    for step in trail {
        let (token, below) = match step {
            Step::Field(name) => (
                name.replace('~', "~0").replace('/', "~1"),
                at.as_object()?.get(name)?,
            ),
            Step::Item(keys) => {
                let is_it = |item: &Value| keys.iter().all(|(key, value)| item[key] == *value);
                let position = at.as_array()?.iter().position(is_it)?;
                (position.to_string(), &at[position])
            }
            Step::Member(value) => {
                let position = at.as_array()?.iter().position(|item| item == value)?;
                (position.to_string(), &at[position])
            }
        };
        pointer.push('/');
        pointer.push_str(&token);
        at = below;
    }
    Some((pointer, at))
}

/// Returns a path as text: `spec.ports[port=80,protocol=TCP].name`.
pub(crate) fn text(trail: &[Step]) -> String {
    let mut text = String::new();
    for step in trail {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.extend([".", name]),
            Step::Item(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(key, value)| format!("{key}={}", value.to_string().trim_matches('"')))
                    .collect();
                text.extend(["[", &keys.join(","), "]"]);
            }
            Step::Member(value) => text.extend(["[=", &value.to_string(), "]"]),
        }
    }
    text
}

/// Returns the JSON patches that could make an edit, the plainest first: the API server refuses some.
pub(crate) fn patches(object: &Value, planned: &Planned) -> Vec<Value> {
    let Some((pointer, value)) = find(object, &planned.trail) else {
        return Vec::new();
    };
    match planned.edit {
        Edit::Remove => vec![json!([{ "op": "remove", "path": pointer }])],
        Edit::Change => others(value)
            .into_iter()
            .map(|other| json!([{ "op": "replace", "path": pointer, "value": other }]))
            .collect(),
        Edit::AddBeside => beside(object, planned, value),
    }
}

fn beside(object: &Value, planned: &Planned, value: &Value) -> Vec<Value> {
    let trail = &planned.trail;
    let Some((last, parent)) = trail.split_last() else {
        return Vec::new();
    };
    let Some((pointer, _)) = find(object, parent) else {
        return Vec::new();
    };
    let add = |at: &str, value: Value| json!([{ "op": "add", "path": format!("{pointer}/{at}"), "value": value }]);
    match last {
        // Only maps with free keys take it; elsewhere the API server drops an unknown field, or refuses it.
        Step::Field(_) => vec![add("drift-beside", value.clone())],
        Step::Member(_) => others(value).into_iter().map(|one| add("-", one)).collect(),
        Step::Item(keys) => {
            let renamed = |names: &[&str]| {
                let mut item = value.clone();
                for name in names {
                    if let Some(other) = others(&item[*name]).into_iter().next() {
                        item[*name] = other;
                    }
                }
                add("-", item)
            };
            let first: Vec<&str> = keys.keys().take(1).map(String::as_str).collect();
            let with_name: Vec<&str> = first.iter().copied().chain(["name"]).collect();
            vec![renamed(&first), renamed(&with_name)]
        }
    }
}

/// Returns values that a client could write instead.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            vec![
                json!(number + 1),
                json!((number - 1).max(0)),
                json!(number * 2),
            ]
        }
        Value::String(text) => other_texts(text),
        Value::Array(items) => {
            let mut lists = Vec::new();
            if let Some((last, rest)) = items.split_last() {
                lists.extend(others(last).into_iter().map(|other| {
                    let changed = rest.iter().cloned().chain([other]);
                    changed.collect::<Value>()
                }));
                lists.push(rest.iter().cloned().collect());
                lists.extend(others(last).into_iter().take(1).map(|other| {
                    let longer = items.iter().cloned().chain([other]);
                    longer.collect::<Value>()
                }));
            }
            lists
        }
        Value::Object(map) => {
            let mut maps = Vec::new();
            for (key, value) in map {
                maps.extend(others(value).into_iter().map(|other| {
                    let mut changed = map.clone();
                    changed.insert(key.clone(), other);
                    Value::Object(changed)
                }));
            }
            maps.push(json!({ "drift-beside": "x" }));
            maps
        }
    }
}

/// The values of fields that have few.
const ENUMS: [&[&str]; 12] = [
    &["TCP", "UDP"],
    &["ClusterIP", "NodePort"],
    &["Always", "IfNotPresent", "OnFailure", "Never"],
    &["RollingUpdate", "Recreate", "OnDelete"],
    &["Ingress", "Egress"],
    &["ReadWriteOnce", "ReadWriteMany"],
    &["Prefix", "Exact"],
    &["Forbid", "Allow", "Replace"],
    &["Role", "ClusterRole"],
    &["OrderedReady", "Parallel"],
    &["get", "list"],
    &["/", "/other"],
];

fn other_texts(text: &str) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let known = ENUMS.iter().find(|values| values.contains(&text));
    found.extend(
        known
            .iter()
            .flat_map(|values| values.iter())
            .filter(|one| **one != text)
            .map(|one| json!(one)),
    );
    let digits = text.trim_end_matches(|one: char| !one.is_ascii_digit());
    if let Ok(number) = digits.parse::<i64>() {
        found.push(json!(format!("{}{}", number + 1, &text[digits.len()..])));
        found.push(json!(format!("{}{}", number * 2, &text[digits.len()..])));
    }
    found.push(json!(format!("{text}x")));
    found.push(json!("eHg="));
    found.push(json!("drift"));
    found
}
