//! `serviceAccounts`.

use super::{Child, Metadata, Shorthand};
use crate::{api::children::ServiceAccount, scope::Fields};

impl Shorthand for ServiceAccount {
    fn expand(&self, _: &Child<'_>, _: &mut Metadata) -> Fields {
        Fields::default()
    }
}
