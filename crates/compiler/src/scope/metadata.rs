//! Names, labels and annotations.

use std::collections::BTreeMap;

use super::{At, Check, Fields};
use orkestra_language::{
    api::{names, or_template::OrTemplate, scalar::Text},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};
use orkestra_template::Template;

impl At<'_> {
    /// Compiles the labels of an object here; a template may return all of them.
    pub(crate) fn object_labels(&self, declared: &OrTemplate<BTreeMap<String, Text>>) -> Fields {
        match declared.template() {
            Some(text) => Fields::of_template(self.whole_leaf(text, Whole::Metadata)),
            None => self.labels(declared),
        }
    }

    /// Compiles the labels of a selector; a template may return all of them.
    pub(crate) fn selected_labels(
        &self,
        declared: &OrTemplate<BTreeMap<String, Text>>,
    ) -> Option<ObjectTree> {
        self.whole(declared, Whole::Texts, |at, labels| {
            at.labels(labels).into_optional()
        })
    }

    /// Compiles the labels here, or a selector's.
    pub(crate) fn labels(&self, labels: &BTreeMap<String, Text>) -> Fields {
        for (key, value) in labels {
            self.key(key).metadata_key(key);
            if let Ok(template) = Template::parse(value) {
                self.field(key)
                    .legal(&template, |text| text, names::check_label_value);
            }
        }
        self.texts(labels, Coerce::Text)
    }

    /// True if the name here, which is trimmed after rendering, may be valid according to `check`; an error that no value
    /// can fix is reported.
    pub(crate) fn legal_name(&self, name: &Template, check: Check) -> bool {
        self.legal(name, str::trim, check)
    }

    fn legal(&self, template: &Template, kept: fn(&str) -> &str, check: Check) -> bool {
        if let Some(literal) = template.literal().map(kept) {
            return match check(literal) {
                Ok(()) => true,
                Err(why) => {
                    self.bad_name(literal, why, check);
                    false
                }
            };
        }
        let [shortest, longer] = template.samples("a");
        let (Err(why), Err(_)) = (check(kept(&longer)), check(kept(&shortest))) else {
            return true;
        };
        let [_, shown] = template.samples("…");
        self.error(Code::BadName, why.replace(longer.trim(), shown.trim()));
        false
    }

    /// Compiles the annotations of an object here; a template may return all of them.
    pub(crate) fn object_annotations(
        &self,
        declared: &OrTemplate<BTreeMap<String, Text>>,
    ) -> Fields {
        match declared.template() {
            Some(text) => Fields::of_template(self.whole_leaf(text, Whole::Metadata)),
            None => self.annotations(declared),
        }
    }

    /// Compiles the annotations here.
    pub(crate) fn annotations(&self, annotations: &BTreeMap<String, Text>) -> Fields {
        for key in annotations.keys() {
            self.key(key).metadata_key(key);
        }
        self.texts(annotations, Coerce::Text)
    }

    /// Reports that the label or annotation here is reserved.
    pub(crate) fn reserved(&self) {
        let message = format!(
            "labels and annotations that start with `{}` are Orkestra's own",
            names::PREFIX
        );
        self.error_hint(Code::ReservedLabel, message, "use a prefix of your own");
    }

    fn metadata_key(&self, key: &str) {
        if key.starts_with(names::PREFIX) {
            self.reserved();
        } else if !key.contains("{{")
            && let Err(why) = names::check_label_key(key)
        {
            self.bad_name(key, why, names::check_label_key);
        }
    }
}
