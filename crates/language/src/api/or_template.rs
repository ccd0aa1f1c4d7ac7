//! Values with parts that one template may return as a whole.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::later::TEMPLATE;
use super::scalar::Text;

/// A map, a list or an object that is written out, or one template that returns all of it.
///
/// It dereferences to the parts that are written out. Of a template these are none: code that concludes something from
/// missing parts checks [`OrTemplate::template`] first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrTemplate<T> {
    written: T,
    template: Option<Text>,
}

impl<T> OrTemplate<T> {
    /// Returns the template, if the value is not written out.
    pub fn template(&self) -> Option<&Text> {
        self.template.as_ref()
    }

    /// Returns the value, if it is written out.
    pub fn written(&self) -> Option<&T> {
        self.template.is_none().then_some(&self.written)
    }
}

impl<T: Default + PartialEq> OrTemplate<T> {
    /// True if nothing is declared: neither a part nor a template.
    pub fn is_absent(&self) -> bool {
        self.template.is_none() && self.written == T::default()
    }
}

impl<T> Deref for OrTemplate<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.written
    }
}

impl<T> From<T> for OrTemplate<T> {
    fn from(written: T) -> Self {
        Self {
            written,
            template: None,
        }
    }
}

impl<T: Serialize> Serialize for OrTemplate<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.template {
            Some(text) => text.serialize(serializer),
            None => self.written.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for OrTemplate<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<T> {
            Written(T),
            Template(Text),
        }
        Ok(match Either::<T>::deserialize(deserializer)? {
            Either::Written(written) => written.into(),
            Either::Template(text) => Self {
                written: T::default(),
                template: Some(text),
            },
        })
    }
}

impl<T: JsonSchema> JsonSchema for OrTemplate<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}OrTemplate", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let written = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [written, { "type": "string" }], TEMPLATE: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_template_and_everything_else_the_value() {
        let read = |json: &str| serde_json::from_str::<OrTemplate<Vec<Text>>>(json).unwrap();
        let template = read(r#""{{ .spec.hosts }}""#);
        assert_eq!(template.template().unwrap().as_str(), "{{ .spec.hosts }}");
        assert!(template.is_empty() && template.written().is_none() && !template.is_absent());
        let written = read(r#"["a"]"#);
        assert_eq!((written.len(), written.template()), (1, None));
        assert!(read("[]").is_absent());
        for value in [template, written] {
            let again = serde_json::to_string(&value).unwrap();
            assert_eq!(read(&again), value);
        }
    }
}
