//! `.children`: the children of the custom resource, and objects of `observe.watch`.

use super::{RootRead, TemplateSource};
use crate::compile::{
    known_schemas::KnownSchemas,
    reads::{PlanReads, ReadScope, children::KnownChildren, without_covered},
};
use orkestra_language::{diagnostics::Code, schema::Type};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{
    ChildAlias, GroupKind, NameForm, OperatorPlan, kinds,
    observe::{WatchPlan, endpoint_slice},
    roots::CHILDREN,
};

/// `.children`.
pub(crate) struct ChildReads;

impl TemplateSource for ChildReads {
    fn roots(&self) -> &'static [&'static str] {
        &[CHILDREN]
    }

    fn add(&self, read: RootRead<'_>, around: ReadScope<'_>, gathered: &mut PlanReads) {
        let known = around.known;
        let Some((name, rest)) = read.below.split_first() else {
            return self.add_all(around, gathered);
        };
        let found = match name {
            PathStep::Field(name) => known.names.get_key_value(&**name),
            PathStep::Index(_) => None,
        };
        let Some((name, (kind, number))) = found else {
            return unknown(name, read, known, gathered);
        };
        let rest = if *number == NameForm::Plural {
            rest.get(1..).unwrap_or_default()
        } else {
            rest
        };
        let path = rest.iter().cloned().collect();
        if known.is_watched(kind) {
            let reads = gathered.watched.entry(kind.clone());
            reads.or_default().push(path);
        } else {
            gathered.addition(kind, rest, read.place, known);
            let reads = gathered.reads.children.entry(kind.clone());
            reads.or_default().push(path);
        }
        gathered.aliases.insert(alias(name, kind, *number));
    }

    /// Records each kind under its preferred names.
    fn add_all(&self, around: ReadScope<'_>, gathered: &mut PlanReads) {
        let known = around.known;
        let made = known.names.iter();
        for (name, (kind, number)) in made.filter(|(_, (kind, _))| !known.is_watched(kind)) {
            let reads = gathered.reads.children.entry(kind.clone());
            reads.or_default().push(Path::root());
            let lower = name.bytes().all(|byte| !byte.is_ascii_uppercase());
            let has_camel = kinds::lower_camel(&kind.kind)
                .bytes()
                .any(|byte| byte.is_ascii_uppercase());
            if !(lower && has_camel) {
                gathered.aliases.insert(alias(name, kind, *number));
            }
        }
    }

    fn root_type<'s>(
        &self,
        _root: &'static str,
        known: KnownSchemas<'s>,
        plan: &OperatorPlan,
    ) -> Type<'s> {
        let children = &plan.children;
        let object = |kind: &GroupKind| {
            let made = children.iter().map(|child| child.kind.clone());
            let mut all = made.chain(plan.observe.readable(children));
            let found = all.find(|known| known.group_kind() == *kind);
            found.map_or_else(Type::any, |kind| known.objects(&kind))
        };
        let names = KnownChildren::of(children, &plan.observe).into_iter();
        Type::of_names(names.map(|(name, (kind, number))| {
            let object = object(&kind);
            let given = match number {
                NameForm::Singular => object,
                NameForm::Plural => Type::map_of(object),
            };
            (name, given)
        }))
    }

    /// Sets the reads of the watched objects, and adds a watch of `EndpointSlices` if they are read.
    fn settle(&self, gathered: &mut PlanReads, plan: &mut OperatorPlan) {
        let observe = &mut plan.observe;
        let slices = endpoint_slice().group_kind();
        let is_of = |watch: &WatchPlan| watch.kind.group_kind() == slices;
        if gathered.watched.contains_key(&slices) && !observe.watches.iter().any(is_of) {
            let watches = std::mem::take(&mut observe.watches).into_iter();
            let slices = WatchPlan::of_endpoint_slices();
            observe.watches = watches.chain([slices]).collect();
        }
        for watch in &mut observe.watches {
            let read = gathered.watched.get(&watch.kind.group_kind());
            watch.reads = without_covered(read.cloned().unwrap_or_default());
        }
    }
}

fn alias(name: &str, kind: &GroupKind, number: NameForm) -> ChildAlias {
    ChildAlias {
        name: Key::from(name),
        kind: kind.clone(),
        number,
    }
}

/// Reports a name that no kind has.
fn unknown(name: &PathStep, read: RootRead<'_>, known: &KnownChildren, gathered: &mut PlanReads) {
    if !known.all {
        return;
    }
    let name = Path::from_iter([name.clone()]);
    let hint = if known.names.is_empty() {
        "the operatorBox declares no children".to_owned()
    } else {
        format!("expected one of {}", known.listed())
    };
    let text = format!("{CHILDREN}.{name}");
    let message = format!("the operatorBox declares no `{name}`");
    gathered.unreadable(Code::UnknownChild, read.place, &text, message, Some(hint));
}
