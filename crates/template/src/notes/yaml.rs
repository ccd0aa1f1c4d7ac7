//! Reads and writes YAML and JSON in texts, charged to the budget.

use std::{fmt, io};

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use orkestra_object::value::{Key, Node, PlainNumbers};

/// The maximum nesting of lists and maps.
const MAX_DEPTH: usize = 64;

/// The maximum number of values that aliases expand to, in total.
const MAX_REPLAYED: usize = 10_000;

/// Reading a value costs as much as several expressions.
const STEPS_A_VALUE: u64 = 4;

/// Parses a text as JSON or else as YAML; `None` if it is neither.
///
/// A byte costs a step, because reading is slow. Every value is charged before it is built, including those that an alias
/// repeats.
pub(crate) fn read(text: &str, budget: &mut EvalBudget) -> Result<Option<Node>, EvalFailure> {
    budget.step(text.len() as u64)?;
    let depth = budget.depth;
    let mut reader = BudgetReader {
        budget,
        spent: None,
    };
    let json = text.trim_start().starts_with(['{', '[']);
    let mut parsed = None;
    if json {
        let mut source = serde_json::Deserializer::from_str(text);
        let value = Seed(&mut reader).deserialize(&mut source).ok();
        parsed = value.filter(|_| source.end().is_ok());
    }
    if parsed.is_none() && reader.spent.is_none() {
        reader.budget.depth = depth;
        let options = serde_saphyr::options! {
            legacy_octal_numbers: true,
            with_snippet: false,
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                flow_nesting_limit: MAX_DEPTH,
                enforce_alias_anchor_ratio: false,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: MAX_REPLAYED,
                max_replay_stack_depth: 16,
            },
        };
        let value =
            serde_saphyr::with_deserializer_from_str_with_options(text, options, |source| {
                Seed(&mut reader).deserialize(source)
            });
        parsed = value.ok();
    }
    let spent = reader.spent.take();
    budget.depth = depth;
    spent.map_or(Ok(parsed), Err)
}

/// The remaining budget, and the failure once it is exhausted.
struct BudgetReader<'b> {
    budget: &'b mut EvalBudget,
    spent: Option<EvalFailure>,
}

impl BudgetReader<'_> {
    fn pay<E: Error>(
        &mut self,
        price: impl FnOnce(&mut EvalBudget) -> Result<(), EvalFailure>,
    ) -> Result<(), E> {
        price(self.budget).map_err(|failure| {
            self.spent.get_or_insert(failure);
            E::custom("the budget is spent")
        })
    }
}

/// Reads one value.
struct Seed<'r, 'b>(&'r mut BudgetReader<'b>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Node, D::Error> {
        self.0.pay(|budget| budget.step(STEPS_A_VALUE))?;
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Node, D::Error> {
        self.deserialize(source)
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<Node, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Node, E> {
        Ok(Node::Int(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Node, E> {
        Ok(Node::from(n))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Node, E> {
        if n.is_finite() {
            Ok(Node::Float(n))
        } else {
            Err(E::custom("infinity and NaN are not valid values"))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        self.0.pay(|budget| budget.text(text.len()))?;
        Ok(Node::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        self.0.pay(EvalBudget::enter)?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Seed(self.0))? {
            self.0.pay(|budget| budget.items(1))?;
            items.push(item);
        }
        self.0.budget.leave();
        Ok(Node::from(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        self.0.pay(EvalBudget::enter)?;
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Key>()? {
            let bytes = size_of::<(Key, Node)>() * 2 + key.len();
            self.0.pay(|budget| budget.take(bytes))?;
            entries.push((key, map.next_value_seed(Seed(self.0))?));
        }
        self.0.budget.leave();
        Ok(Node::Map(entries.into_iter().collect()))
    }
}

/// Writes compact JSON with sorted keys and numbers as in text. Floats that JSON cannot represent become null.
pub(crate) fn to_json(node: &Node, budget: &mut EvalBudget) -> Result<String, EvalFailure> {
    let mut writer = BudgetWriter {
        out: Vec::new(),
        budget,
        spent: None,
    };
    let mut json = serde_json::Serializer::with_formatter(&mut writer, PlainNumbers);
    let written = node.serialize(&mut json);
    match (written, writer.spent) {
        (Ok(()), _) => Ok(String::from_utf8(writer.out).unwrap_or_default()),
        (Err(_), Some(failure)) => Err(failure),
        // A node contains only types that JSON has.
        (Err(error), None) => Err(EvalFailure::refused(format!("cannot write JSON: {error}"))),
    }
}

/// Charges the budget for every piece before it stores it.
struct BudgetWriter<'b> {
    out: Vec<u8>,
    budget: &'b mut EvalBudget,
    spent: Option<EvalFailure>,
}

impl io::Write for BudgetWriter<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let paid = self.budget.step(1);
        let paid = paid.and_then(|()| self.budget.longer(self.out.len(), piece.len()));
        if let Err(failure) = paid {
            self.spent = Some(failure);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.out.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn json_of(text: &str) -> Option<serde_json::Value> {
        let read = read(text, &mut EvalBudget::default()).unwrap();
        read.map(|node| node.to_json())
    }

    #[test]
    fn both_notations_are_read_and_what_is_neither_is_nothing() {
        let cases = [
            ("{\"k\":1}", Some(json!({"k": 1}))),
            (
                "\t[1,\n\t2.5, null, \"x\"]",
                Some(json!([1, 2.5, null, "x"])),
            ),
            (
                "a: {b: [x, 1, yes]}\nc: ~",
                Some(json!({"a": {"b": ["x", 1, true]}, "c": null})),
            ),
            ("- a\n- b", Some(json!(["a", "b"]))),
            ("{a: 1}", Some(json!({"a": 1}))),
            (
                "a: &x {n: 1}\nb: *x",
                Some(json!({"a": {"n": 1}, "b": {"n": 1}})),
            ),
            ("", Some(json!(null))),
            ("plain", Some(json!("plain"))),
            ("[1, 2", None),
            ("a: b: c", None),
            ("{\"a\": 1} x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(json_of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_would_grow_without_bounds_ends_in_time() {
        let line = |n: usize| {
            let items = vec![format!("*l{}", n - 1); 10].join(", ");
            format!("l{n}: &l{n} [{items}]\n")
        };
        let lines: String = (1..12).map(line).collect::<Vec<_>>().concat();
        let laughs = format!("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n{lines}");
        let long = format!(
            "a: &a {}\nb: [{}]",
            "x".repeat(9000),
            vec!["*a"; 5000].join(",")
        );
        let deep = "[".repeat(50_000);
        let deep_yaml = format!("a: {deep}");
        let wide = format!("[{}]", vec!["1"; 400_000].join(","));
        for text in [&laughs, &long, &deep, &deep_yaml, &wide] {
            let begun = std::time::Instant::now();
            let read = read(text, &mut EvalBudget::default());
            assert!(!matches!(read, Ok(Some(_))), "{}", &text[..20]);
            assert!(begun.elapsed().as_secs() < 5, "{}", &text[..20]);
        }
    }

    #[test]
    fn json_is_compact_sorted_and_paid_for() {
        let tree = Node::from(&json!({"b": [1, null, "\"x\"\n"], "a": {"c": 1.5, "b": true}}));
        let written = to_json(&tree, &mut EvalBudget::default()).unwrap();
        assert_eq!(
            written,
            r#"{"a":{"b":true,"c":1.5},"b":[1,null,"\"x\"\n"]}"#
        );
        let controls = Node::from("\u{1}".repeat(300_000));
        assert!(to_json(&controls, &mut EvalBudget::default()).is_err());
    }
}
