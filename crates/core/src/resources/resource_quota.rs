//! `resourceQuotas`.

use super::{Child, Metadata, Row, Shorthand, scope::At};
use crate::{
    api::{
        children::{Common, ResourceQuota},
        profiles::Quota,
    },
    diagnostics::Code,
    plan::{Coerce, Fields, resolve_profile},
};

impl Shorthand for ResourceQuota {
    fn row(&self) -> &'static Row {
        &Row {
            list: "resourceQuotas",
            group: "",
            version: "v1",
            kind: "ResourceQuota",
            name: None,
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let ResourceQuota {
            common: _,
            quota,
            profile,
            later: _,
        } = self;
        let at = &child.at;
        let set = [("hard", !quota.hard.is_empty())];
        if profile.is_none() && quota.hard.is_empty() {
            let hint = "declare `hard`, or a `profile` such as `small`";
            at.error_hint(Code::Missing, "the ResourceQuota limits nothing", hint);
        }
        let resolved = resolve_profile(at, profile.as_deref(), &set, quota, |profiles| {
            &profiles.resource_quotas
        });
        let spec = resolved.map(|(at, quota)| hard(&at, quota));
        spec.unwrap_or_default().into_root("spec")
    }
}

/// The quantities: what a profile can stand for.
pub(crate) fn hard(at: &At<'_>, quota: &Quota) -> Fields {
    let quantities = at.field("hard").texts(&quota.hard, Coerce::OptionalText);
    let mut fields = Fields::default();
    fields.put("hard", quantities.into_optional());
    fields
}
