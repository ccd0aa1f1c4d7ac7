//! `namespaces`.

use super::{Child, Metadata, Shorthand};
use crate::scope::Fields;
use orkestra_language::api::children::Namespace;

impl Shorthand for Namespace {
    fn expand(&self, child: &Child<'_>, metadata: &mut Metadata) -> Fields {
        let Namespace {
            common: _,
            finalizers,
        } = self;
        metadata.finalizers = child.at.field("finalizers").words(finalizers);
        Fields::default()
    }
}
