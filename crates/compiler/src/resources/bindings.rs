//! `roleBindings` and `clusterRoleBindings`.

use super::{Child, Metadata, Shorthand, roles::RBAC};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        children::{ClusterRoleBinding, RoleBinding, Subject},
        or_template::OrTemplate,
        scalar::Text,
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

const SUBJECTS: [&str; 3] = ["ServiceAccount", "User", "Group"];

/// The default namespace of a service account.
const OWN_NAMESPACE: &str = "{{ .metadata.namespace }}";

impl Shorthand for RoleBinding {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let role = (&self.role_ref.name, self.role_ref.kind.as_ref());
        binding(&child.at, role, &["Role", "ClusterRole"], &self.subjects)
    }
}

impl Shorthand for ClusterRoleBinding {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let role = (&self.role_ref.name, self.role_ref.kind.as_ref());
        binding(&child.at, role, &["ClusterRole"], &self.subjects)
    }
}

/// Expands a role reference, whose kind defaults to the first of `kinds`, and its subjects.
fn binding(
    at: &At<'_>,
    (name, kind): (&Text, Option<&Text>),
    kinds: &'static [&'static str],
    subjects: &OrTemplate<Vec<Subject>>,
) -> Fields {
    let place = at.field("roleRef");
    let mut role = Fields::default();
    role.put_text("apiGroup", RBAC);
    let default = kinds.first().map(|kind| ObjectTree::text(kind));
    let kind = match kind {
        Some(kind) => place.word_field("kind", Some(kind), kinds),
        None => default,
    };
    role.put("kind", kind);
    role.put("name", place.required("name", name));

    let place = at.field("subjects");
    if subjects.is_absent() {
        place.error(Code::Empty, "at least one subject is needed");
    }
    let subjects = place.whole(subjects, Whole::List, |place, subjects| {
        let subjects = subjects.iter().enumerate();
        let subjects = subjects.map(|(index, declared)| subject(&place.index(index), declared));
        Some(ObjectTree::list(subjects.collect()))
    });
    let mut root = Fields::default();
    root.put("roleRef", role.into_tree());
    root.put("subjects", subjects);
    root
}

fn subject(at: &At<'_>, declared: &Subject) -> ObjectTree {
    let Subject {
        kind,
        name,
        namespace,
    } = declared;
    let mut fields = Fields::default();
    let is_account = match kind.as_deref().map(str::trim) {
        Some(text) if text.contains("{{") => {
            let hint = "write a literal kind, or use `when` in two entries with different kinds";
            let message =
                "the kind of a subject cannot be a template: its other fields depend on it";
            at.field("kind")
                .error_hint(Code::NotATemplate, message, hint);
            true
        }
        Some(text) => text.eq_ignore_ascii_case("ServiceAccount"),
        None => true,
    };
    let default = || ObjectTree::text("ServiceAccount");
    let word = at.word_field("kind", kind.as_ref(), &SUBJECTS);
    fields.put("kind", word.unwrap_or_else(default));
    fields.put("name", at.required("name", name));
    if is_account {
        let at = at.field("namespace");
        let text = namespace.as_deref().unwrap_or(OWN_NAMESPACE);
        fields.put("namespace", at.value(text, Coerce::OptionalText));
    } else {
        fields.put_text("apiGroup", RBAC);
        if namespace.is_some() {
            let message = "only a service account has a namespace";
            at.field("namespace").error(Code::Exclusive, message);
        }
    }
    fields.into_tree()
}
