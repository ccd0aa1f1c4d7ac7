//! Compiles values: templates, leaves and trees.

use std::collections::BTreeMap;

use super::{At, Fields};
use orkestra_language::{
    api::{
        or_template::OrTemplate,
        scalar::{Scalar, Text},
    },
    diagnostics::{Code, Severity, did_you_mean},
};
use orkestra_object::value::Node;
use orkestra_plan::{Coerce, Leaf, ObjectTree, Whole};
use orkestra_template::{Template, kro_expression};

impl At<'_> {
    /// Parses a template; `None` after an error, which is reported, or if errors are no longer reported.
    pub(crate) fn template(&self, text: &str) -> Option<Template> {
        if self.problems.is_full() {
            return None;
        }
        let parsed = match self.symbols {
            Some(symbols) => Template::parse_with(text, &symbols.functions),
            None => Template::parse(text),
        };
        match parsed {
            Ok(template) => {
                for warning in template.warnings() {
                    self.report_in_text(Severity::Warning, warning.clone());
                }
                if !self.of_kro
                    && let Some(found) = kro_expression(text)
                {
                    self.report_in_text(Severity::Warning, found);
                }
                Some(template)
            }
            Err(errors) => {
                for error in errors {
                    self.report_in_text(Severity::Error, error);
                }
                None
            }
        }
    }

    /// Returns a leaf for the text here, literal or not.
    pub(crate) fn leaf(&self, text: &str, coerce: Coerce) -> Option<Leaf> {
        Some(Leaf {
            template: self.template(text)?,
            coerce,
            path: self.kept(),
        })
    }

    /// Returns a leaf for the scalar here; the caller sets its type.
    pub(crate) fn scalar_leaf(&self, scalar: &Scalar) -> Option<Leaf> {
        self.leaf(&scalar.to_string(), Coerce::Native)
    }

    /// Returns the value of the text here; `None` if it is left out, or after an error, which is reported.
    pub(crate) fn value(&self, text: &str, coerce: Coerce) -> Option<ObjectTree> {
        let leaf = self.leaf(text, coerce)?;
        match leaf.template.literal() {
            Some(literal) => self.fixed(Node::from(literal), coerce),
            None => Some(ObjectTree::Leaf(leaf)),
        }
    }

    /// Returns the value here: what `written` returns for a value that is written out, or the result of its template.
    pub(crate) fn whole<T>(
        &self,
        declared: &OrTemplate<T>,
        form: Whole,
        written: impl FnOnce(&Self, &T) -> Option<ObjectTree>,
    ) -> Option<ObjectTree> {
        match declared.template() {
            Some(text) => Some(ObjectTree::Leaf(self.whole_leaf(text, form)?)),
            None => written(self, declared),
        }
    }

    /// Returns the template here, which must return a value with parts: a text with more than one action is never one.
    pub(crate) fn whole_leaf(&self, text: &Text, form: Whole) -> Option<Leaf> {
        // A block scalar ends in a line break.
        let leaf = self.leaf(text.trim_end(), Coerce::Whole(form))?;
        if !leaf.template.is_single_expression() {
            let message = format!(
                "expected {}, but the template returns text",
                form.describe()
            );
            let hint = "write one action that returns the whole value, such as `{{ .spec.field }}`, or write the value out";
            self.error_hint(Code::WrongValue, message, hint);
            return None;
        }
        Some(leaf)
    }

    /// Compiles a list of texts that may also be one template.
    pub(crate) fn words(&self, declared: &OrTemplate<Vec<Text>>) -> Option<ObjectTree> {
        self.whole(declared, Whole::Words, |at, list| {
            (!list.is_empty()).then(|| at.text_list(list))
        })
    }

    /// Compiles texts by key that may also be one template.
    pub(crate) fn map_of_texts(
        &self,
        declared: &OrTemplate<BTreeMap<String, Text>>,
        coerce: Coerce,
    ) -> Option<ObjectTree> {
        let form = if coerce == Coerce::Base64 {
            Whole::Secret
        } else {
            Whole::Texts
        };
        self.whole(declared, form, |at, texts| {
            at.texts(texts, coerce).into_optional()
        })
    }

    /// Compiles a list of a manifest that may also be one template.
    pub(crate) fn manifest_list(&self, declared: &OrTemplate<Vec<Node>>) -> Option<ObjectTree> {
        self.whole(declared, Whole::List, |at, nodes| {
            (!nodes.is_empty()).then(|| at.manifests(nodes))
        })
    }

    /// Compiles the items of a list of a manifest.
    pub(crate) fn manifests(&self, nodes: &[Node]) -> ObjectTree {
        let nodes = nodes.iter().enumerate();
        let trees = nodes.filter_map(|(index, node)| self.index(index).manifest(node));
        ObjectTree::list(trees.collect())
    }

    /// Compiles a list of texts, each of which may be a template.
    pub(crate) fn text_list(&self, list: &[Text]) -> ObjectTree {
        ObjectTree::list(
            list.iter()
                .enumerate()
                .filter_map(|(index, text)| self.index(index).value(text, Coerce::Text))
                .collect(),
        )
    }

    /// Returns the value of the scalar here; `None` if it is left out, or after an error, which is reported.
    pub(crate) fn scalar(&self, scalar: &Scalar, coerce: Coerce) -> Option<ObjectTree> {
        match scalar.as_str() {
            Some(text) => self.value(text, coerce),
            None => self.fixed(scalar.node().clone(), coerce),
        }
    }

    fn fixed(&self, node: Node, coerce: Coerce) -> Option<ObjectTree> {
        match coerce.apply(node) {
            Ok(node) => node.map(ObjectTree::Fixed),
            Err(mismatch) => {
                self.error(Code::WrongValue, mismatch.to_string());
                None
            }
        }
    }

    /// Returns the text field `name`, if it is declared.
    pub(crate) fn text_field(&self, name: &str, text: Option<&Text>) -> Option<ObjectTree> {
        self.field(name).value(text?, Coerce::OptionalText)
    }

    /// Returns the text field `name`, which must not be empty.
    pub(crate) fn required(&self, name: &str, text: &Text) -> Option<ObjectTree> {
        self.field(name).required_here(text)
    }

    /// Returns the text here, which must not be empty.
    pub(crate) fn required_here(&self, text: &Text) -> Option<ObjectTree> {
        if text.trim().is_empty() {
            self.error(Code::Empty, "the value is empty");
        }
        self.value(text, Coerce::OptionalText)
    }

    /// Returns the scalar field `name`, if it is declared.
    pub(crate) fn scalar_field(
        &self,
        name: &str,
        scalar: Option<&Scalar>,
        coerce: Coerce,
    ) -> Option<ObjectTree> {
        self.field(name).scalar(scalar?, coerce)
    }

    /// Returns the field `name`, one of `words` ignoring case, or a template for it.
    pub(crate) fn word_field(
        &self,
        name: &str,
        text: Option<&Text>,
        words: &'static [&'static str],
    ) -> Option<ObjectTree> {
        self.field(name).word(text?, words)
    }

    /// Returns the text here, one of `words` ignoring case, or a template for it.
    pub(crate) fn word(&self, text: &Text, words: &'static [&'static str]) -> Option<ObjectTree> {
        let leaf = self.leaf(text, Coerce::Word(words))?;
        let Some(literal) = leaf.template.literal() else {
            return Some(ObjectTree::Leaf(leaf));
        };
        let literal = literal.trim();
        let word = words.iter().find(|word| word.eq_ignore_ascii_case(literal));
        if word.is_none() && !literal.is_empty() {
            let message = format!("`{literal}` is none of {}", words.join(", "));
            match did_you_mean(literal, words.iter().copied()) {
                Some(hint) => self.error_hint(Code::UnknownWord, message, hint),
                None => self.error(Code::UnknownWord, message),
            }
        }
        word.map(|word| ObjectTree::Fixed(Node::from(*word)))
    }

    /// Returns the tree of a manifest: every text in it may be a template, which keeps the expression's own type.
    pub(crate) fn manifest(&self, node: &Node) -> Option<ObjectTree> {
        match node {
            Node::Str(text) => self.value(text, Coerce::Native),
            Node::List(items) => Some(ObjectTree::list(
                items
                    .iter()
                    .enumerate()
                    .filter_map(|(at, item)| self.index(at).manifest(item))
                    .collect(),
            )),
            Node::Map(entries) => {
                let mut fields = Fields::default();
                for (key, value) in entries.iter() {
                    self.key(key).literal_key(key);
                    fields.put(key, self.field(key).manifest(value));
                }
                Some(fields.into_tree())
            }
            _ => Some(ObjectTree::Fixed(node.clone())),
        }
    }

    /// Refuses a key that is a template.
    pub(crate) fn literal_key(&self, key: &str) {
        if key.contains("{{") {
            self.error_hint(
                Code::NotATemplate,
                "a key cannot be a template",
                "write the key out; only values are rendered",
            );
        }
    }

    /// Returns the texts by key here.
    pub(crate) fn texts(&self, texts: &BTreeMap<String, Text>, coerce: Coerce) -> Fields {
        let mut fields = Fields::default();
        for (key, text) in texts {
            self.key(key).literal_key(key);
            fields.put(key, self.field(key).value(text, coerce));
        }
        fields
    }
}
