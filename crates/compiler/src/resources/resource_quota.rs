//! `resourceQuotas`.

use super::{Child, CopySource, Metadata, Shorthand};
use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::children::{Copies, Quota, ResourceQuota},
    diagnostics::Code,
};
use orkestra_plan::Coerce;

impl Shorthand for ResourceQuota {
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        Some((source(self), &self.copies))
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
            ("hard", !quota.hard.is_absent()),
            ("profile", profile.is_some()),
        ];
        if source(self).is_given(at, &own) {
            return Fields::default();
        }
        let set = [("hard", !quota.hard.is_absent())];
        if profile.is_none() && quota.hard.is_absent() {
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

fn source(entry: &ResourceQuota) -> CopySource<'_> {
    CopySource::whole(
        "fromResourceQuota",
        entry,
        entry.from_resource_quota.as_ref(),
    )
}

/// Returns the quantities, which a profile may contain.
pub(crate) fn hard(at: &At<'_>, quota: &Quota) -> Fields {
    let at = at.field("hard");
    let mut fields = Fields::default();
    fields.put("hard", at.map_of_texts(&quota.hard, Coerce::OptionalText));
    fields
}
