//! `serviceAccounts`.

use super::{Child, ChildList, Metadata, Shorthand};
use crate::{
    api::children::{Common, ServiceAccount},
    scope::Fields,
};

impl Shorthand for ServiceAccount {
    fn row(&self) -> &'static ChildList {
        &ChildList {
            list: "serviceAccounts",
            group: "",
            version: "v1",
            kind: "ServiceAccount",
            name: Some("{{ .metadata.name }}-sa"),
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn expand(&self, _: &Child<'_>, _: &mut Metadata) -> Fields {
        Fields::default()
    }
}
