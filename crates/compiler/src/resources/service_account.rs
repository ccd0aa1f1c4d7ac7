//! `serviceAccounts`.

use super::{Child, Metadata, Shorthand};
use crate::scope::Fields;
use orkestra_language::api::children::ServiceAccount;

impl Shorthand for ServiceAccount {
    fn expand(&self, _: &Child<'_>, _: &mut Metadata) -> Fields {
        Fields::default()
    }
}
