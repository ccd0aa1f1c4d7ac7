//! The templates in documents give the results that are written below them.
//!
//! A block ```` ```template ```` holds templates. Below each one is a line `=> ` with the result as JSON, or `=> error: ` with
//! the beginning of the message. The templates read the data of the last block ```` ```yaml data ```` and use the notes of the
//! last block ```` ```yaml notes ````.

use std::{collections::BTreeMap, fs};

use jiff::Timestamp;
use orkestra_object::value::Node;
use orkestra_template::{Data, Entropy, EvalBudget, FunctionSource, Functions, Template};
use serde_json::Value;

/// The data and notes that templates can use.
#[derive(Default)]
struct Seen {
    root: Node,
    functions: Functions,
}

impl Seen {
    fn notes(&mut self, yaml: &str) {
        let declared: BTreeMap<String, String> = serde_saphyr::from_str(yaml).unwrap();
        let declared: Vec<FunctionSource<'_>> = declared
            .iter()
            .map(|(name, expression)| FunctionSource {
                name,
                expression,
                shadow: false,
            })
            .collect();
        let (functions, problems) = Functions::compile(&declared);
        assert!(problems.is_empty(), "{problems:?}");
        self.functions = functions;
    }

    /// Returns the value of a template, or its error.
    fn value(&self, source: &str) -> Result<Value, String> {
        let template = Template::parse_with(source, &self.functions)
            .map_err(|errors| errors[0].to_string())?;
        let entropy = Entropy::seeded([7; 32]);
        let now: Timestamp = "2026-01-09T12:00:00Z".parse().unwrap();
        let data = Data::of(&self.root).at(now).random(&entropy);
        let value = template.eval(&data, &mut EvalBudget::default());
        value.map(|node| node.to_json()).map_err(|e| e.to_string())
    }

    /// Compares each template of a block with the result below it. Returns the number of templates.
    fn check(&self, file: &str, block: &str) -> usize {
        let (mut source, mut checked) = (Vec::new(), 0);
        for line in block.lines() {
            let Some(expected) = line.strip_prefix("=> ") else {
                source.push(line);
                continue;
            };
            let template = std::mem::take(&mut source).join("\n");
            let given = self.value(&template);
            if let Some(start) = expected.strip_prefix("error: ") {
                assert!(
                    given.as_ref().is_err_and(|error| error.starts_with(start)),
                    "{file}: {template} gives {given:?}"
                );
            } else {
                let expected = serde_json::from_str(expected);
                let expected = expected.unwrap_or_else(|e| panic!("{file}: {template}: {e}"));
                assert_eq!(given, Ok(expected), "{file}: {template}");
            }
            checked += 1;
        }
        assert!(source.is_empty(), "{file}: {source:?} has no result");
        checked
    }
}

/// Returns the fenced blocks of a Markdown text: the text after the fence, and the content.
fn blocks(markdown: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = markdown.split("\n```").skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n'))
}

#[test]
fn the_templates_that_documents_show_give_what_they_say() {
    let mut checked = 0;
    for path in super::documents() {
        let text = fs::read_to_string(&path).unwrap();
        let mut seen = Seen::default();
        for (kind, block) in blocks(&text) {
            match kind {
                "yaml data" => {
                    let root: Value = serde_saphyr::from_str(block).unwrap();
                    seen.root = Node::from(&root);
                }
                "yaml notes" => seen.notes(block),
                "template" => checked += seen.check(&path.display().to_string(), block),
                _ => {}
            }
        }
    }
    assert!(checked > 30, "{checked} templates are shown");
}
