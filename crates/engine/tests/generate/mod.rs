//! Random rules and objects, for the tests that compare verdicts. Included with `#[path]`.
//!
//! A seed determines everything. Objects match the definition. Values cover the edge cases of comparisons: absent and empty
//! values, numbers as text, surrounding white space, other scripts, quotes and nested lists.

use serde_json::{Value, json};

/// A reproducible source of choices.
pub(crate) struct Random(u64);

impl Random {
    /// Creates the source of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or(0) % end
    }

    /// Returns one of the items.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len());
        &of[at]
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Texts of fields and of literals.
const TEXTS: [&str; 36] = [
    "",
    " ",
    "a",
    " a ",
    "abc",
    "ABC",
    "a,b",
    "0",
    "5",
    "05",
    "5.0",
    "5.5",
    "-3",
    "1e3",
    "true",
    "false",
    "myorg/app:v1",
    "docker.io/app",
    "größe",
    "日本語",
    "say \"x\"",
    "back\\slash",
    "line\nbreak",
    "\u{a0}a\u{2003}",
    "\u{85}a\u{85}",
    "\u{200b}a",
    "\u{feff}a",
    "\u{1f600}",
    "tab\tstop",
    "+5",
    "1_000",
    "0x10",
    "NaN",
    "Infinity",
    "9007199254740993",
    "aXc",
];

/// Texts that the API server accepts as values of labels.
const LABELS: [&str; 9] = ["", "a", "abc", "ABC", "0", "5", "05", "5.0", "true"];

/// Regular expressions of conditions.
const EXPRESSIONS: [&str; 14] = [
    "^a",
    "[0-9]+$",
    "^[a-z]{1,3}$",
    r"\d",
    "a|b",
    "^$",
    "^.{2,4}$",
    "(?i)abc",
    "^[^a-z]",
    "a.c",
    "(ab)*c?$",
    r"\.",
    "line.break",
    "^ *a? *$",
];

/// Whole numbers of fields and of literals.
const INTEGERS: [i64; 8] = [0, 1, 3, 5, -3, 100, 9_007_199_254_740_991, i64::MAX];

/// Decimals of fields.
const DECIMALS: [f64; 7] = [0.0, 0.5, 2.5, 3.0, -1.25, 1e10, 5.5];

/// Fields with their types.
const FIELDS: [(&str, &str); 21] = [
    ("spec.text", "text"),
    ("spec.image", "text"),
    ("spec.tier", "text"),
    ("spec.more.name", "text"),
    ("metadata.labels.team", "label"),
    ("metadata.annotations[\"demo.example/owner\"]", "text"),
    ("metadata.name", "text"),
    ("spec.depth", "int"),
    ("spec.more.depth", "int"),
    ("spec.ratio", "number"),
    ("spec.open", "bool"),
    ("spec.tags", "list"),
    ("spec.more", "map"),
    ("spec.maybe", "nullable"),
    ("spec.port", "either"),
    ("spec.namespace", "text"),
    ("spec.max-depth", "int"),
    ("spec.a__b", "text"),
    ("spec.extra.key", "text"),
    ("spec.free.text", "text"),
    ("metadata.namespace", "place"),
];

/// Returns the definition of the objects.
pub(crate) fn definition() -> Value {
    let spec = json!({ "type": "object", "properties": {
        "text": { "type": "string" }, "image": { "type": "string" }, "tier": { "type": "string" },
        "depth": { "type": "integer" }, "ratio": { "type": "number" }, "open": { "type": "boolean" },
        "replicas": { "type": "integer" }, "filled": { "type": "string" },
        "tags": { "type": "array", "items": { "type": "array", "items": { "type": "string" } } },
        "maybe": { "type": "string", "nullable": true }, "port": { "x-kubernetes-int-or-string": true },
        "namespace": { "type": "string" }, "max-depth": { "type": "integer" }, "a__b": { "type": "string" },
        "extra": { "type": "object", "additionalProperties": { "type": "string" } },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "more": { "type": "object", "properties": { "name": { "type": "string" }, "depth": { "type": "integer" } } },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "ponds.water.example" },
        "spec": {
            "group": "water.example", "scope": "Namespaced",
            "names": { "kind": "Pond", "plural": "ponds", "singular": "pond", "listKind": "PondList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": spec, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    })
}

/// Returns a Katalog, as JSON, with random `validation` rules, and random `mutation` rules if `with_mutation`.
///
/// Some combinations are refused by the compiler; the caller must skip them.
pub(crate) fn katalog(seed: u64, with_mutation: bool) -> Value {
    let mut random = Random::new(seed);
    let count = 1 + random.below(4);
    let rules: Vec<Value> = (0..count).map(|at| rule(&mut random, at)).collect();
    let mut entry = json!({
        "apiTypes": { "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" },
        "validation": { "rules": rules },
    });
    if with_mutation {
        let rules: Vec<Value> = (0..=random.below(3))
            .map(|_| mutation(&mut random))
            .collect();
        entry["mutation"] = json!({ "rules": rules });
    }
    json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "metadata": { "name": "waters" },
        "spec": { "security": { "webhooks": { "admission": { "enabled": true } } }, "crds": { "pond": entry } },
    })
}

/// Returns a random object that matches the definition. It has no uid.
pub(crate) fn object(seed: u64) -> Value {
    let mut random = Random::new(seed ^ 0xABCD_EF01);
    let mut object = json!({
        "apiVersion": "water.example/v1", "kind": "Pond",
        "metadata": { "name": format!("pond-{}", random.below(3)), "namespace": "default" },
        "spec": {},
    });
    for (path, kind) in FIELDS {
        if random.once_in(3) || path == "metadata.name" {
            continue;
        }
        let value = match kind {
            "label" => json!(random.one(&LABELS)),
            "int" => json!(random.one(&INTEGERS)),
            "nullable" if random.once_in(3) => Value::Null,
            "either" | "number" if random.once_in(2) => json!(random.one(&INTEGERS[..6])),
            "text" | "nullable" | "either" => json!(random.one(&TEXTS)),
            "number" => json!(random.one(&DECIMALS)),
            "bool" => json!(random.once_in(2)),
            "list" => json!(
                (0..random.below(3))
                    .map(|_| vec![*random.one(&TEXTS)])
                    .collect::<Vec<_>>()
            ),
            _ => continue,
        };
        put(&mut object, path, value);
    }
    object
}

fn put(object: &mut Value, path: &str, value: Value) {
    if let Some(key) = path.strip_prefix("metadata.annotations[\"") {
        object["metadata"]["annotations"][key.trim_end_matches("\"]")] = value;
        return;
    }
    let mut at = object;
    for key in path.split('.') {
        at = &mut at[key];
    }
    *at = value;
}

fn rule(random: &mut Random, at: usize) -> Value {
    let mut rule = condition(random, true);
    rule["name"] = json!(format!("rule-{at}"));
    let messages = [
        "must be so",
        "is {{ .spec.text }}, not \"so\"",
        "of {{ .metadata.name }}: {{ .spec.depth }}",
        "two\nlines of {{ upper .spec.text }}",
    ];
    if !random.once_in(3) {
        rule["message"] = json!(random.one(&messages));
    }
    if random.once_in(4) {
        rule["action"] = json!("warn");
    }
    if random.once_in(4) {
        rule["optional"] = json!(true);
    }
    if random.once_in(6) {
        rule["immutable"] = json!(true);
        if let Some(rule) = rule.as_object_mut() {
            rule.remove("negate");
        }
    }
    for list in ["when", "or"] {
        if random.once_in(4) {
            let conditions: Vec<Value> = (0..=random.below(2))
                .map(|_| condition(random, false))
                .collect();
            rule[list] = json!(conditions);
        }
    }
    rule
}

fn condition(random: &mut Random, can_be_old: bool) -> Value {
    let (mut field, kind) = *random.one(&FIELDS);
    if can_be_old && random.once_in(12) {
        field = "operation";
    }
    let mut condition = json!({ "field": field });
    for _ in 0..=usize::from(random.once_in(5)) {
        compare(&mut condition, random, can_be_old);
    }
    if ["text", "label"].contains(&kind) && random.once_in(8) {
        condition["field"] = json!(format!(
            "{{{{ .{} }}}}",
            if field.contains('[') {
                "spec.text"
            } else {
                field
            }
        ));
    }
    if random.once_in(8) {
        condition["negate"] = json!(true);
    }
    condition
}

/// Adds a random comparison to a condition.
fn compare(condition: &mut Value, random: &mut Random, can_be_old: bool) {
    match random.below(16) {
        0 => condition["exists"] = json!(!random.once_in(4)),
        1 => condition["equals"] = text(random, can_be_old),
        2 => condition["notEquals"] = text(random, can_be_old),
        3 => condition["contains"] = text(random, can_be_old),
        4 => condition["notContains"] = text(random, can_be_old),
        5 => condition["prefix"] = text(random, can_be_old),
        6 => condition["suffix"] = text(random, can_be_old),
        7 => condition["regex"] = json!(random.one(&EXPRESSIONS)),
        8 => condition["greaterThan"] = number(random, can_be_old),
        9 => condition["lessThanOrEqual"] = number(random, can_be_old),
        10 => condition["min"] = number(random, can_be_old),
        11 => {
            condition[if random.once_in(2) {
                "between"
            } else {
                "notBetween"
            }] = json!("1, 5");
        }
        12 | 13 => {
            let list: Vec<Value> = (0..=random.below(3))
                .map(|_| json!(random.one(&TEXTS)))
                .collect();
            condition[if random.once_in(2) { "in" } else { "notIn" }] = json!(list);
        }
        14 => {
            condition["operator"] = json!(random.one(&[
                "typeString",
                "typeNumber",
                "typeNull",
                "typeList",
                "typeMap",
                "typeBool"
            ]));
        }
        _ => {
            let (of, value) = *random.one(&[
                ("int", "5"),
                ("float", "5.5"),
                ("bool", "true"),
                ("int", "3.0"),
                ("bool", "false"),
            ]);
            condition["equals"] = json!(value);
            condition["valueType"] = json!(of);
        }
    }
}

/// Returns a text or a template to compare with.
fn text(random: &mut Random, can_be_old: bool) -> Value {
    match random.below(14) {
        0 => json!("{{ .spec.text }}"),
        1 => json!("{{ .spec.depth }}"),
        2 => json!("{{ lower .spec.tier }}"),
        3 if can_be_old => json!("{{ .old.spec.text }}"),
        _ => json!(random.one(&TEXTS)),
    }
}

/// Returns a number, as text, or a template to compare with.
fn number(random: &mut Random, can_be_old: bool) -> Value {
    match random.below(10) {
        0 => json!("{{ .spec.depth }}"),
        1 => json!("2.5"),
        2 => json!("9007199254740993"),
        3 => json!(""),
        4 if can_be_old => json!("{{ .old.spec.depth }}"),
        _ => json!(random.one(&INTEGERS).to_string()),
    }
}

fn mutation(random: &mut Random) -> Value {
    let (field, value) = *random.one(&[
        ("spec.replicas", "2"),
        ("spec.filled", "{{ .spec.text }}-x"),
        ("spec.depth", "{{ .spec.more.depth }}"),
        ("spec.more.name", "made"),
        ("metadata.labels.team", "water"),
        ("spec.ratio", "2.50"),
        ("spec.open", "true"),
    ]);
    let how = if random.once_in(3) {
        "override"
    } else {
        "default"
    };
    let mut rule = json!({ "field": field, how: value });
    if random.once_in(3) {
        rule["when"] = json!([condition(random, false)]);
    }
    rule
}
