//! `namespaces`.

use super::{Child, ChildList, Metadata, Shorthand};
use crate::{
    api::children::{Common, Namespace},
    scope::Fields,
};

impl Shorthand for Namespace {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "namespaces",
            group: "",
            version: "v1",
            kind: "Namespace",
            name: Some("{{ .metadata.name }}-ns"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let Namespace {
            common: _,
            finalizers,
        } = self;
        if !finalizers.is_empty() {
            let at = child.at.field("finalizers");
            metadata.finalizers = Some(at.text_list(finalizers));
        }
        Fields::default()
    }
}
