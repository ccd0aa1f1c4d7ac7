//! `namespaces`.

use super::{Child, Metadata, Shorthand};
use crate::{api::children::Namespace, scope::Fields};

impl Shorthand for Namespace {
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
