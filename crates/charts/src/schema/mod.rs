//! Checks values against `values.schema.json`.
//!
//! Supports the JSON Schema that charts use. An unknown keyword that could reject values is an error, so that values which
//! helm would reject never pass.

mod keywords;

use std::rc::Rc;

use orkestra_object::value::Node;

use crate::dependencies::Member;
use crate::error::Error;
use crate::value::{Elem, Table, Value};
use crate::values::as_table;
use keywords::{pattern, simple};

/// The maximum number of keywords that the check of one chart evaluates.
const MOST_STEPS: usize = 1_000_000;
/// The maximum nesting of schemas and references.
const MOST_LEVELS: usize = 100;

/// Checks the values of a chart and of its dependencies.
///
/// # Errors
/// All errors in the values of the first chart whose schema they violate.
pub(crate) fn check(member: &Member<'_>, values: &Rc<Table>) -> Result<(), Error> {
    if let Some(schema) = &member.chart.schema {
        let name = &member.metadata.name;
        let mut checker = Checker {
            root: schema,
            steps: 0,
        };
        let mut wrong = Vec::new();
        let values = Value::Map(Rc::clone(values), Elem::Any);
        if values.measure(&mut (MOST_STEPS as u64), 100).is_none() {
            return Err(Error::Values(format!(
                "the values of `{name}` are nested too deeply"
            )));
        }
        let result = checker.check(schema, &values.to_node(), "", 0, &mut wrong);
        result.map_err(|problem| Error::file(format!("{name}/values.schema.json"), problem))?;
        if !wrong.is_empty() {
            let message = format!(
                "the values of `{name}` do not fit its schema: {}",
                wrong.join("; ")
            );
            return Err(Error::Values(message));
        }
    }
    for dependency in &member.dependencies {
        let own = values
            .borrow()
            .get(&*dependency.metadata.name)
            .and_then(as_table);
        check(dependency, &own.unwrap_or_default())?;
    }
    Ok(())
}

struct Checker<'s> {
    root: &'s Node,
    steps: usize,
}

impl<'s> Checker<'s> {
    /// Adds the errors in a value.
    fn check(
        &mut self,
        schema: &'s Node,
        value: &Node,
        path: &str,
        level: usize,
        wrong: &mut Vec<String>,
    ) -> Result<(), String> {
        if level > MOST_LEVELS {
            return Err(format!(
                "the schema is nested deeper than {MOST_LEVELS} levels"
            ));
        }
        let place = if path.is_empty() { "the values" } else { path };
        let map = match schema {
            Node::Bool(true) => return Ok(()),
            Node::Bool(false) => {
                wrong.push(format!("{place}: not allowed"));
                return Ok(());
            }
            Node::Map(map) => map,
            other => {
                return Err(format!(
                    "a schema is a map or a boolean, not a {}",
                    other.type_name()
                ));
            }
        };
        for (keyword, rule) in map.iter() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err("checking the values takes too many steps".into());
            }
            let at = At {
                schema,
                path,
                level: level + 1,
            };
            if let Some(problem) = simple(keyword, rule, value)? {
                wrong.extend((!problem.is_empty()).then(|| format!("{place}: {problem}")));
            } else if !self.nested(keyword, rule, value, &at, wrong)? {
                return Err(format!("the keyword `{keyword}` is not supported"));
            }
        }
        Ok(())
    }

    fn fits(&mut self, schema: &'s Node, value: &Node, at: &At<'s, '_>) -> Result<bool, String> {
        let mut wrong = Vec::new();
        self.check(schema, value, at.path, at.level, &mut wrong)?;
        Ok(wrong.is_empty())
    }

    /// Evaluates keywords that contain schemas; returns whether the keyword is one.
    // Over 60 lines: a table, one arm for each keyword.
    fn nested(
        &mut self,
        keyword: &str,
        rule: &'s Node,
        value: &Node,
        at: &At<'s, '_>,
        wrong: &mut Vec<String>,
    ) -> Result<bool, String> {
        let place = if at.path.is_empty() {
            "the values"
        } else {
            at.path
        };
        match (keyword, value) {
            ("$ref", _) => {
                let target = self.target(rule)?;
                self.check(target, value, at.path, at.level, wrong)?;
            }
            ("allOf", _) => {
                for schema in rule.as_list().unwrap_or_default() {
                    self.check(schema, value, at.path, at.level, wrong)?;
                }
            }
            ("anyOf" | "oneOf", _) => {
                let mut fitting = 0;
                for schema in rule.as_list().unwrap_or_default() {
                    fitting += usize::from(self.fits(schema, value, at)?);
                }
                if fitting == 0 || keyword == "oneOf" && fitting > 1 {
                    wrong.push(format!(
                        "{place}: {fitting} of the schemas of `{keyword}` fit"
                    ));
                }
            }
            ("not", _) => {
                if self.fits(rule, value, at)? {
                    wrong.push(format!("{place}: fits the schema of `not`"));
                }
            }
            ("if", _) => {
                let branch = if self.fits(rule, value, at)? {
                    "then"
                } else {
                    "else"
                };
                if let Some(schema) = at.schema.get(branch) {
                    self.check(schema, value, at.path, at.level, wrong)?;
                }
            }
            ("properties", Node::Map(map)) => {
                for (key, schema) in rule
                    .as_map()
                    .into_iter()
                    .flat_map(orkestra_object::value::Map::iter)
                {
                    if let Some(value) = map.get(key) {
                        self.check(schema, value, &at.below(key), at.level, wrong)?;
                    }
                }
            }
            ("patternProperties" | "additionalProperties" | "propertyNames", Node::Map(_)) => {
                self.keys(keyword, rule, value, at, wrong)?;
            }
            ("items", Node::List(items)) => {
                for (position, item) in items.iter().enumerate() {
                    let schema = match rule {
                        Node::List(schemas) => schemas
                            .get(position)
                            .or_else(|| at.schema.get("additionalItems")),
                        schema => Some(schema),
                    };
                    if let Some(schema) = schema {
                        self.check(
                            schema,
                            item,
                            &at.below(&position.to_string()),
                            at.level,
                            wrong,
                        )?;
                    }
                }
            }
            ("contains", Node::List(items)) => {
                let mut found = false;
                for item in items {
                    found = found || self.fits(rule, item, at)?;
                }
                if !found {
                    wrong.push(format!("{place}: no item fits the schema of `contains`"));
                }
            }
            (keyword, _) => {
                let others = [
                    "properties",
                    "patternProperties",
                    "additionalProperties",
                    "propertyNames",
                    "items",
                    "contains",
                ];
                return Ok(others.contains(&keyword));
            }
        }
        Ok(true)
    }

    /// Evaluates keywords about the keys of a map.
    fn keys(
        &mut self,
        keyword: &str,
        rule: &'s Node,
        value: &Node,
        at: &At<'s, '_>,
        wrong: &mut Vec<String>,
    ) -> Result<(), String> {
        let map = value.as_map();
        let patterns = |schema: &'s Node| -> Result<Vec<(regex::Regex, &'s Node)>, String> {
            let patterns = schema.get("patternProperties").and_then(Node::as_map);
            let patterns = patterns
                .into_iter()
                .flat_map(orkestra_object::value::Map::iter);
            patterns
                .map(|(key, schema)| Ok((pattern(key)?, schema)))
                .collect()
        };
        let patterns = patterns(at.schema)?;
        let named = at.schema.get("properties");
        for (key, value) in map.into_iter().flat_map(orkestra_object::value::Map::iter) {
            let path = at.below(key);
            match keyword {
                "patternProperties" => {
                    for (pattern, schema) in &patterns {
                        if pattern.is_match(key) {
                            self.check(schema, value, &path, at.level, wrong)?;
                        }
                    }
                }
                "propertyNames" => {
                    self.check(rule, &Node::from(key.as_str()), &path, at.level, wrong)?;
                }
                _ => {
                    let known = named.is_some_and(|named| named.get(key).is_some())
                        || patterns.iter().any(|(pattern, _)| pattern.is_match(key));
                    if !known {
                        self.check(rule, value, &path, at.level, wrong)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the schema that a reference refers to, which must be in the same file.
    fn target(&self, reference: &Node) -> Result<&'s Node, String> {
        let text = reference.as_str().unwrap_or_default();
        let Some(pointer) = text.strip_prefix('#') else {
            return Err(format!(
                "the reference {text:?} leaves the file, which is not supported"
            ));
        };
        let mut parts = pointer.split('/').skip(1);
        let found = parts.try_fold(self.root, |node, part| {
            let part = part.replace("~1", "/").replace("~0", "~");
            match node {
                Node::List(items) => items.get(part.parse::<usize>().ok()?),
                node => node.get(&part),
            }
        });
        found.ok_or_else(|| format!("the reference {text:?} leads nowhere"))
    }
}

/// The position of a keyword.
struct At<'s, 'p> {
    schema: &'s Node,
    path: &'p str,
    level: usize,
}

impl At<'_, '_> {
    fn below(&self, key: &str) -> String {
        match self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}
