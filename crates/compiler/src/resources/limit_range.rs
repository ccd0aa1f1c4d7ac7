//! `limitRanges`.

use super::{Child, CopySource, Metadata, Shorthand};
use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::children::{Copies, Limit, LimitRange, Limits},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

const TYPES: [&str; 3] = ["Container", "Pod", "PersistentVolumeClaim"];

impl Shorthand for LimitRange {
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        Some((source(self), &self.copies))
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let LimitRange {
            common: _,
            limits,
            profile,
            from_limit_range: _,
            copies: _,
        } = self;
        let at = &child.at;
        let own = [
            ("limits", !limits.limits.is_absent()),
            ("profile", profile.is_some()),
        ];
        if source(self).is_given(at, &own) {
            return Fields::default();
        }
        let set = [("limits", !limits.limits.is_absent())];
        if profile.is_none() && limits.limits.is_absent() {
            let hint = "declare `limits`, or a `profile` of `profiles.limitRanges`";
            at.error_hint(Code::Missing, "the LimitRange limits nothing", hint);
        }
        let resolved = resolve_profile(at, profile.as_deref(), &set, limits, |profiles| {
            &profiles.limit_ranges
        });
        let spec = resolved.map(|resolved| resolved.fields(self::limits));
        spec.unwrap_or_default().into_root("spec")
    }
}

fn source(entry: &LimitRange) -> CopySource<'_> {
    CopySource::whole("fromLimitRange", entry, entry.from_limit_range.as_ref())
}

/// Returns the limits, which a profile may contain.
pub(crate) fn limits(at: &At<'_>, limits: &Limits) -> Fields {
    let at = at.field("limits");
    let limits = at.whole(&limits.limits, Whole::List, |at, limits| {
        let items = limits.iter().enumerate();
        let items = items.map(|(index, declared)| limit(&at.index(index), declared));
        (!limits.is_empty()).then(|| ObjectTree::list(items.collect()))
    });
    let mut fields = Fields::default();
    fields.put("limits", limits);
    fields
}

fn limit(at: &At<'_>, declared: &Limit) -> ObjectTree {
    let Limit {
        type_,
        default,
        default_request,
        max,
        min,
    } = declared;
    let mut fields = Fields::default();
    fields.put("type", at.word_field("type", Some(type_), &TYPES));
    for (name, quantities) in [
        ("default", default),
        ("defaultRequest", default_request),
        ("max", max),
        ("min", min),
    ] {
        let quantities = at
            .field(name)
            .map_of_texts(quantities, Coerce::OptionalText);
        fields.put(name, quantities);
    }
    fields.into_tree()
}
