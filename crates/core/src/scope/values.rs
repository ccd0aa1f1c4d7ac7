//! Compiles values: templates, leaves and trees.

use std::collections::BTreeMap;

use super::{At, Fields};
use crate::{
    api::scalar::{Scalar, Text},
    diagnostics::{Code, Severity, did_you_mean},
    plan::{Coerce, Leaf, ObjectTree},
    template::{Template, kro_expression},
    value::Node,
};

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
