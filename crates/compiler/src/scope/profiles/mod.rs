//! `profiles`: resolves `profile` fields.
//!
//! A name is looked up in the Katalog's own profiles and those of its Motifs, then in the built-in ones, ignoring case.

mod markdown;

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use super::{At, Fields, Library, ReferenceKind, library::Content};
use orkestra_language::{
    api::{Profile, Profiles},
    diagnostics::{Code, nearest_or_all},
    document, profile_classes,
    tree::Origin,
};
use orkestra_object::value::Key;
use orkestra_plan::{Chosen, Coerce, Leaf, ObjectTree};

pub use markdown::profiles_markdown;

/// The built-in profiles, in the format of a `profiles` file.
const BUILT_IN_PROFILES: &str = include_str!("../profiles.yaml");

/// The name of the built-in document in messages.
const BUILT_IN_NAME: &str = "built-in profiles";

static BUILT_IN: LazyLock<(Arc<Origin>, Profiles)> = LazyLock::new(|| {
    let source = document::parse_stream(BUILT_IN_NAME, BUILT_IN_PROFILES)
        .sources
        .pop();
    let profiles = source
        .as_ref()
        .and_then(|source| Some(document::read_included(source, "profiles").ok()?.0));
    let tree = source.map_or(document::Tree::new(document::TreeValue::Null), |source| {
        source.tree
    });
    let origin = Origin::new(BUILT_IN_NAME, BUILT_IN_NAME, tree);
    (Arc::new(origin), profiles.unwrap_or_default())
});

/// Returns the profiles that need no declaration.
///
/// Source: language reference, built-in profile values.
pub fn built_in_profiles() -> &'static Profiles {
    &BUILT_IN.1
}

/// The profiles of one class.
pub(crate) struct Table<'a, T> {
    class: &'static str,
    /// Declared ones, in the order of lookup.
    declared: Vec<(At<'a>, &'a Profile<T>)>,
    built_in: Vec<(At<'a>, &'a Profile<T>)>,
}

macro_rules! tables {
    ($(#[doc = $doc:literal] $class:ident: $($values:ident)::+, $name:literal, $field:literal;)*) => {
        /// All profiles, by class.
        pub(crate) struct ProfileTables<'a> {
            $(pub(crate) $class: Table<'a, orkestra_language::api::$($values)::+>,)*
        }

        impl<'a> ProfileTables<'a> {
            /// Creates the tables with only the built-in profiles; `at` is any place in the Katalog.
            pub(crate) fn new(at: &At<'a>) -> Self {
                let (origin, built_in) = &*BUILT_IN;
                let at = at.document(origin).field("profiles");
                Self { $($class: Table::new($name, &at, &built_in.$class)),* }
            }

            fn add(&mut self, at: &At<'a>, profiles: &'a Profiles) {
                $(self.$class.add(at, &profiles.$class);)*
            }
        }
    };
}
profile_classes!(tables);

impl<'a> ProfileTables<'a> {
    /// Adds the profiles of a document, those of its include first.
    pub(crate) fn add_all(&mut self, at: &At<'a>, profiles: &'a Profiles, library: &'a Library) {
        if let Some(file) = &profiles.include
            && let Some(document) =
                library.open(&at.field("include"), ReferenceKind::Profiles, file)
            && let Content::Profiles(included) = &document.content
        {
            let at = at.document(&document.origin).field("profiles");
            no_include_inside(&at, included.include.is_some());
            self.add(&at, included);
        }
        self.add(at, profiles);
    }
}

/// Refuses an include inside of an included file.
pub(crate) fn no_include_inside(at: &At<'_>, has_include: bool) {
    if has_include {
        let hint = "write what it holds here";
        let message = "an included file cannot include another file";
        at.field("include")
            .error_hint(Code::NotSupportedYet, message, hint);
    }
}

impl<'a, T> Table<'a, T> {
    fn new(class: &'static str, at: &At<'a>, built_in: &'a [Profile<T>]) -> Self {
        let at = at.field(class);
        Self {
            class,
            declared: Vec::new(),
            built_in: (built_in.iter().enumerate())
                .map(|(index, profile)| (at.index(index), profile))
                .collect(),
        }
    }

    fn add(&mut self, at: &At<'a>, profiles: &'a [Profile<T>]) {
        let at = at.field(self.class);
        for (index, profile) in profiles.iter().enumerate() {
            let place = at.index(index);
            let name = place.field("name");
            if let Some((other, _)) = find(&self.declared, &profile.name) {
                let message = format!("{} already has the name `{}`", other.text(), profile.name);
                name.error_hint(Code::ProfileTwice, message, "rename one of the two");
                continue;
            }
            if find(&self.built_in, &profile.name).is_some() {
                let message = format!("`{}` hides the built-in profile of this name", profile.name);
                name.warn_hint(
                    Code::ProfileShadows,
                    message,
                    "choose another name, unless this is intended",
                );
            }
            self.declared.push((place, profile));
        }
    }

    /// Returns the profile that the field at `at` names; an unknown one is reported.
    pub(crate) fn get(&self, at: &At<'a>, name: &str) -> Option<(At<'a>, &'a T)> {
        let name = name.trim();
        if name.is_empty() {
            at.error(Code::Empty, "the value is empty");
            return None;
        }
        if name.contains("{{") {
            let hint = "write the name out: it counts for all resources of the operator";
            let message = "the name of this profile cannot be a template: it is needed before any resource exists";
            at.error_hint(Code::NotATemplate, message, hint);
            return None;
        }
        let found = find(&self.declared, name).or_else(|| find(&self.built_in, name));
        if let Some((place, profile)) = found {
            return Some((place.as_at(at), &profile.values));
        }
        let all = self.declared.iter().chain(&self.built_in);
        let names: Vec<&str> = all.map(|(_, profile)| &*profile.name).collect();
        let hint = nearest_or_all(&name.to_lowercase(), "", names.iter().copied());
        let message = format!("there is no profile `{name}` for {}", self.class);
        at.error_hint(Code::UnknownProfile, message, hint);
        None
    }

    /// Returns all profiles; the template at `at` names one of them.
    fn any(&self, at: &At<'a>, template: &str) -> Option<ResolvedBlock<'a, T>> {
        let leaf = at.leaf(template, Coerce::OptionalText)?;
        let mut all: Vec<(Box<str>, At<'a>, &'a T)> = Vec::new();
        for (place, profile) in self.declared.iter().chain(&self.built_in) {
            let name = profile.name.trim().to_lowercase();
            if all.iter().all(|(known, ..)| **known != *name) {
                all.push((name.into(), place.shared().as_at(at), &profile.values));
            }
        }
        let names: Vec<&str> = all.iter().map(|(name, ..)| &**name).collect();
        let hint = format!("the profiles for {} are {}", self.class, names.join(", "));
        let message =
            "each custom resource chooses its profile: one that names no known profile fails";
        at.warn_hint(Code::NotATemplate, message, hint);
        Some(ResolvedBlock::Chosen(leaf, all))
    }

    /// Expands each declared profile once, to report its problems.
    pub(crate) fn check<R>(&self, at: &At<'_>, expand: impl Fn(&At<'_>, &T) -> R) {
        for (place, profile) in &self.declared {
            expand(&place.shared().as_at(at), &profile.values);
        }
    }
}

fn find<'t, 'a, T>(
    table: &'t [(At<'a>, &'a Profile<T>)],
    name: &str,
) -> Option<&'t (At<'a>, &'a Profile<T>)> {
    let is_it =
        |profile: &Profile<T>| profile.name.trim().to_lowercase() == name.trim().to_lowercase();
    table.iter().find(|(_, profile)| is_it(profile))
}

/// A resolved block with a `profile`.
pub(crate) enum ResolvedBlock<'a, T> {
    /// One block: the profile that it names, or the block itself if it names none.
    One(At<'a>, &'a T),
    /// The profile that a template names for each custom resource, and all possible profiles.
    Chosen(Leaf, Vec<(Box<str>, At<'a>, &'a T)>),
}

impl<'a, T> ResolvedBlock<'a, T> {
    /// Expands the block; if the custom resource chooses, each profile.
    pub(crate) fn tree(
        &self,
        expand: impl Fn(&At<'a>, &'a T) -> Option<ObjectTree>,
    ) -> Option<ObjectTree> {
        match self {
            Self::One(at, block) => expand(at, block),
            Self::Chosen(name, all) => {
                let options = all
                    .iter()
                    .map(|(name, at, block)| (name.clone(), expand(at, block)));
                let options: Box<[(Box<str>, Option<ObjectTree>)]> = options.collect();
                let is_any = options.iter().any(|(_, tree)| tree.is_some());
                let chosen = || {
                    ObjectTree::Chosen(Box::new(Chosen {
                        name: name.clone(),
                        options,
                    }))
                };
                is_any.then(chosen)
            }
        }
    }

    /// Expands the block into fields; if the custom resource chooses, each field of any profile.
    pub(crate) fn fields(&self, expand: impl Fn(&At<'a>, &'a T) -> Fields) -> Fields {
        let all = match self {
            Self::One(at, block) => return expand(at, block),
            Self::Chosen(_, all) => all,
        };
        let all: Vec<Fields> = all.iter().map(|(_, at, block)| expand(at, block)).collect();
        let keys: BTreeSet<&Key> = all.iter().flat_map(Fields::keys).collect();
        let mut fields = Fields::default();
        for key in keys {
            let mut of_each = all.iter();
            fields.put(key, self.chosen_of(|| of_each.next()?.get(key).cloned()));
        }
        fields
    }

    /// Returns one field; `next` returns the value of each profile, in order.
    fn chosen_of(&self, mut next: impl FnMut() -> Option<ObjectTree>) -> Option<ObjectTree> {
        let Self::Chosen(name, all) = self else {
            return None;
        };
        let options = all.iter().map(|(name, ..)| (name.clone(), next()));
        Some(ObjectTree::Chosen(Box::new(Chosen {
            name: name.clone(),
            options: options.collect(),
        })))
    }
}

/// Resolves a block with a `profile`: to the profile, or to the block itself if it names none. A template may name any
/// known profile.
///
/// `set` lists whether the block sets each field itself: a profile excludes them. An invalid profile is reported and gives
/// `None`.
pub(crate) fn resolve_profile<'a, T>(
    at: &At<'a>,
    profile: Option<&str>,
    set: &[(&str, bool)],
    block: &'a T,
    table: impl FnOnce(&'a ProfileTables<'a>) -> &'a Table<'a, T>,
) -> Option<ResolvedBlock<'a, T>> {
    let Some(name) = profile else {
        return Some(ResolvedBlock::One(at.clone(), block));
    };
    let place = at.field("profile");
    let own: Vec<String> = (set.iter().filter(|(_, is_set)| *is_set))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !own.is_empty() {
        let message = format!("`profile` and {} are mutually exclusive", own.join(", "));
        let hint = "remove `profile`, or declare a profile of your own under `profiles`";
        place.error_hint(Code::Exclusive, message, hint);
    }
    let table = table(&at.symbols()?.profiles);
    if name.contains("{{") {
        return table.any(&place, name);
    }
    let (at, values) = table.get(&place, name)?;
    Some(ResolvedBlock::One(at, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Problems;

    #[test]
    fn every_built_in_profile_can_be_used_and_every_class_that_has_one_is_documented() {
        let built_in = built_in_profiles();
        let problems = Problems::default();
        let at = At::root(&problems);
        let mut profiles = ProfileTables::new(&at);
        profiles.add(&at, built_in);
        profiles.check(&at);
        let mut found = problems.into_inner();
        // The built-in profiles are declared a second time here, so each shadows itself.
        found
            .0
            .retain(|problem| problem.code != Code::ProfileShadows);
        assert!(found.is_empty(), "{found}");
        let classes = built_in.names().into_iter();
        let filled: Vec<_> = classes
            .filter(|(_, names)| !names.is_empty())
            .map(|(class, _)| class)
            .collect();
        let page = profiles_markdown();
        let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
        assert_eq!(filled, sections.collect::<Vec<_>>());
        assert!(filled.len() > 9, "{filled:?}");
    }
}
