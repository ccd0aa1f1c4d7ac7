//! `resourceQuotas`.

use super::{Child, CopySource, Metadata, Shorthand};
use crate::{
    api::children::{Copies, Quota, ResourceQuota},
    diagnostics::Code,
    plan::Coerce,
    scope::{At, Fields, resolve_profile},
};

impl Shorthand for ResourceQuota {
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        Some((self.source(), &self.copies))
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let ResourceQuota {
            common: _,
            quota,
            profile,
            from_resource_quota: _,
            copies: _,
        } = self;
        let at = &child.at;
        let own = [
            ("hard", !quota.hard.is_empty()),
            ("profile", profile.is_some()),
        ];
        if self.source().is_given(at, &own) {
            return Fields::default();
        }
        let set = [("hard", !quota.hard.is_empty())];
        if profile.is_none() && quota.hard.is_empty() {
            let hint = "declare `hard`, or a `profile` such as `small`";
            at.error_hint(Code::Missing, "the ResourceQuota limits nothing", hint);
        }
        let resolved = resolve_profile(at, profile.as_deref(), &set, quota, |profiles| {
            &profiles.resource_quotas
        });
        let spec = resolved.map(|resolved| resolved.fields(hard));
        spec.unwrap_or_default().into_root("spec")
    }
}

impl ResourceQuota {
    fn source(&self) -> CopySource<'_> {
        CopySource::whole("fromResourceQuota", self, self.from_resource_quota.as_ref())
    }
}

/// Returns the quantities, which a profile may contain.
pub(crate) fn hard(at: &At<'_>, quota: &Quota) -> Fields {
    let quantities = at.field("hard").texts(&quota.hard, Coerce::OptionalText);
    let mut fields = Fields::default();
    fields.put("hard", quantities.into_optional());
    fields
}
