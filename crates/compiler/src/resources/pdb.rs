//! `pdb`.

use super::{
    Child, Metadata, Shorthand,
    workload::{Search, match_labels},
};
use crate::scope::{At, Fields, ResolvedBlock, resolve_profile};
use orkestra_language::{
    api::children::{Budget, BudgetBehavior, PodDisruptionBudget},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, Whole};

impl Shorthand for PodDisruptionBudget {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let PodDisruptionBudget {
            common: _,
            selector,
            bounds,
            behavior,
        } = self;
        let at = &child.at;
        let mut spec = self::bounds(at, bounds);
        let mut given = given(bounds);
        if let Some(BudgetBehavior { profile, bounds }) = behavior {
            let at = at.field("behavior");
            let set = [
                ("minAvailable", bounds.min_available.is_some()),
                ("maxUnavailable", bounds.max_unavailable.is_some()),
            ];
            let resolved = resolve_profile(&at, profile.as_deref(), &set, bounds, |profiles| {
                &profiles.pdb
            });
            // An unknown profile is already reported.
            given += match &resolved {
                Some(ResolvedBlock::One(_, bounds)) => self::given(bounds),
                Some(ResolvedBlock::Chosen(..)) | None => 1,
            };
            if let Some(resolved) = resolved {
                spec.extend(resolved.fields(self::bounds));
            }
        }
        if given != 1 {
            let message = "exactly one of `minAvailable` and `maxUnavailable` is needed";
            at.error(Code::Exclusive, format!("{message}, not {given}"));
        }
        let search = Search {
            kind: "PodDisruptionBudget",
            endings: &["", "-pdb"],
            instead: "declare `selector` with the labels of the pods",
            wanted: |_| true,
            child,
        };
        let selector = match selector {
            Some(declared) => at.field("selector").whole(
                declared,
                // Without labels it selects no pods.
                Whole::Selector,
                |at, labels| Some(match_labels(at.labels(labels).into_tree())),
            ),
            None => search
                .needed()
                .and_then(|workload| workload.pods(at))
                .map(match_labels),
        };
        spec.put("selector", selector);
        spec.into_root("spec")
    }
}

fn given(bounds: &Budget) -> usize {
    usize::from(bounds.min_available.is_some()) + usize::from(bounds.max_unavailable.is_some())
}

/// Returns the bounds, which a profile may contain.
pub(crate) fn bounds(at: &At<'_>, bounds: &Budget) -> Fields {
    let mut fields = Fields::default();
    for (name, number) in [
        ("minAvailable", &bounds.min_available),
        ("maxUnavailable", &bounds.max_unavailable),
    ] {
        fields.put(
            name,
            at.scalar_field(name, number.as_ref(), Coerce::IntOrText),
        );
    }
    fields
}
