//! `roles` and `clusterRoles`.

use super::{Child, Metadata, Shorthand};
use crate::scope::{At, Fields};
use orkestra_language::{
    api::{
        children::{ClusterRole, PolicyRule, Role},
        scalar::Text,
    },
    diagnostics::Code,
};
use orkestra_plan::ObjectTree;

/// The API group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

impl Shorthand for Role {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        rules(&child.at, &self.rules)
    }
}

impl Shorthand for ClusterRole {
    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        rules(&child.at, &self.rules)
    }
}

fn rules(at: &At<'_>, rules: &[PolicyRule]) -> Fields {
    let at = at.field("rules");
    if rules.is_empty() {
        at.error(Code::Empty, "at least one rule is needed");
    }
    let rules = rules.iter().enumerate();
    let rules = rules.map(|(index, declared)| rule(&at.index(index), declared));
    let mut root = Fields::default();
    root.put("rules", ObjectTree::list(rules.collect()));
    root
}

fn rule(at: &At<'_>, declared: &PolicyRule) -> ObjectTree {
    let PolicyRule {
        api_groups,
        resources,
        verbs,
        resource_names,
    } = declared;
    let list = |name: &str, texts: &[Text]| {
        if texts.is_empty() {
            at.field(name).error(Code::Empty, "the value is empty");
        }
        at.field(name).text_list(texts)
    };
    let mut fields = Fields::default();
    let groups = match api_groups {
        Some(groups) => list("apiGroups", groups),
        None => ObjectTree::texts(&[""]),
    };
    fields.put("apiGroups", groups);
    fields.put("resources", list("resources", resources));
    fields.put("verbs", list("verbs", verbs));
    let names = || list("resourceNames", resource_names);
    fields.put("resourceNames", (!resource_names.is_empty()).then(names));
    fields.into_tree()
}
