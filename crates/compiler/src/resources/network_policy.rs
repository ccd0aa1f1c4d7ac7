//! `networkPolicies`.

use std::collections::BTreeMap;

use super::{
    Child, CopySource, Metadata, Shorthand, Workload,
    workload::{Search, match_labels},
};
use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::{
        children::{Copies, NetworkPolicy, NetworkRules, PodSelector},
        or_template::OrTemplate,
        scalar::Text,
    },
    diagnostics::Code,
};
use orkestra_object::value::{Map, Node};
use orkestra_plan::{ObjectTree, Whole};

/// Fields of a rule that list peers.
const PEERS: [&str; 2] = ["from", "to"];
/// The selectors of a peer, which may be declared as plain labels.
const SELECTORS: [&str; 2] = ["namespaceSelector", "podSelector"];
/// The policy types.
const TYPES: [&str; 2] = ["Ingress", "Egress"];
/// The fields of a selector in Kubernetes format.
const OF_SELECTORS: [&str; 2] = ["matchExpressions", "matchLabels"];

impl Shorthand for NetworkPolicy {
    fn copies(&self) -> Option<(CopySource<'_>, &Copies)> {
        Some((source(self), &self.copies))
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let NetworkPolicy {
            common,
            pod_selector,
            rules,
            profile,
            from_network_policy: _,
            copies,
        } = self;
        let at = &child.at;
        let own = [
            ("podSelector", pod_selector.is_some()),
            ("ingress", rules.ingress.is_some()),
            ("egress", rules.egress.is_some()),
            ("policyTypes", rules.policy_types.is_some()),
            ("profile", profile.is_some()),
        ];
        if source(self).is_given(at, &own) {
            return Fields::default();
        }
        let set = [
            ("ingress", rules.ingress.is_some()),
            ("egress", rules.egress.is_some()),
            ("policyTypes", rules.policy_types.is_some()),
        ];
        let resolved = resolve_profile(at, profile.as_deref(), &set, rules, |profiles| {
            &profiles.network_policies
        });
        let spec = resolved.map(|resolved| resolved.fields(self::rules));
        let mut spec = spec.unwrap_or_default();
        // The pods of a workload are in the namespace of the workload: elsewhere the policy would select none.
        let is_elsewhere = common.meta.namespace.is_some() || !copies.to_namespaces.is_empty();
        if pod_selector.is_none() && is_elsewhere {
            let message = "a NetworkPolicy with a namespace of its own needs `podSelector`";
            at.error_hint(
                Code::ServiceSelector,
                message,
                "`{}` selects all pods of the namespace",
            );
        } else {
            spec.put("podSelector", selected(child, pod_selector.as_ref()));
        }
        spec.into_root("spec")
    }
}

/// Returns the selector of the pods that the policy applies to: without one, those of the workload of the same name, or of
/// the only one.
fn selected(child: &Child<'_>, declared: Option<&OrTemplate<PodSelector>>) -> Option<ObjectTree> {
    let at = &child.at;
    let search = Search {
        kind: "NetworkPolicy",
        endings: &[
            "",
            "-netpol",
            "-network-policy",
            "-networkpolicy",
            "-policy",
        ],
        instead: "declare `podSelector` with the labels of the pods; `{}` selects all pods of the namespace",
        wanted: |_| true,
        child,
    };
    let pods = |workload: &Workload<'_>| workload.pods(at).map(match_labels);
    let Some(declared) = declared else {
        return search.needed().and_then(pods);
    };
    let place = at.field("podSelector");
    if declared.template().is_none() {
        return place.whole(declared, Whole::Selector, written);
    }
    // If the template returns nothing, the policy must not select all pods: without a workload it cannot be rendered.
    let Some(workload) = search.found() else {
        return place.whole(declared, Whole::NeededSelector, written);
    };
    let default = pods(workload);
    let rendered = place.whole(declared, Whole::Selector, written);
    let parts: Vec<ObjectTree> = default.into_iter().chain(rendered).collect();
    Some(ObjectTree::Joined(parts.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
fn written(at: &At<'_>, selector: &PodSelector) -> Option<ObjectTree> {
    let mut labels = Fields::default();
    labels.extend(at.field("matchLabels").labels(&selector.match_labels));
    labels.extend(at.labels(&selector.labels));
    let all = || ObjectTree::Fixed(Node::Map(Map::default()));
    Some(labels.into_optional().map_or_else(all, match_labels))
}

fn source(entry: &NetworkPolicy) -> CopySource<'_> {
    CopySource::whole(
        "fromNetworkPolicy",
        entry,
        entry.from_network_policy.as_ref(),
    )
}

/// Returns the rules, which a profile may contain.
pub(crate) fn rules(at: &At<'_>, rules: &NetworkRules) -> Fields {
    let NetworkRules {
        ingress,
        egress,
        policy_types,
    } = rules;
    let mut fields = Fields::default();
    let mut declared = Vec::new();
    for (name, type_, list) in [
        ("ingress", "Ingress", ingress),
        ("egress", "Egress", egress),
    ] {
        let Some(list) = list else {
            continue;
        };
        declared.push(type_);
        // An empty list means the same as the type alone, no peers; but we own it, so that a rule applied by others is
        // detected.
        let rules = at.field(name).whole(list, Whole::List, |at, list| {
            let rules = list.iter().enumerate();
            let rules = rules.filter_map(|(index, node)| rule(&at.index(index), node));
            Some(ObjectTree::list(rules.collect()))
        });
        fields.put(name, rules);
    }
    let types = match policy_types {
        Some(types) => at
            .field("policyTypes")
            .whole(types, Whole::Words, |at, list| words(at, list)),
        None if declared.is_empty() => {
            let hint = "declare `ingress` or `egress`, where `[]` permits none, or a `profile` such as `deny-all`";
            at.error_hint(Code::Missing, "the NetworkPolicy has no rules", hint);
            return fields;
        }
        None => Some(ObjectTree::texts(&declared)),
    };
    fields.put("policyTypes", types);
    fields
}

#[expect(clippy::unnecessary_wraps, reason = "the form that `At::whole` takes")]
fn words(at: &At<'_>, types: &[Text]) -> Option<ObjectTree> {
    let words = types.iter().enumerate();
    let words = words.filter_map(|(index, word)| at.index(index).word(word, &TYPES));
    Some(ObjectTree::list(words.collect()))
}

/// Returns one rule, whose peers may have selectors of plain labels.
fn rule(at: &At<'_>, node: &Node) -> Option<ObjectTree> {
    let Node::Map(entries) = node else {
        return at.manifest(node);
    };
    let mut fields = Fields::default();
    for (key, value) in entries.iter() {
        let at = at.field(key);
        let peers = value.as_list().filter(|_| PEERS.contains(&&**key));
        let tree = match peers {
            Some(peers) => {
                let peers = peers.iter().enumerate();
                let peers = peers.filter_map(|(index, node)| peer(&at.index(index), node));
                Some(ObjectTree::list(peers.collect()))
            }
            None => at.manifest(value),
        };
        fields.put(key, tree);
    }
    Some(fields.into_tree())
}

fn peer(at: &At<'_>, node: &Node) -> Option<ObjectTree> {
    let Node::Map(entries) = node else {
        return at.manifest(node);
    };
    let mut fields = Fields::default();
    for (key, value) in entries.iter() {
        let at = at.field(key);
        let labels = plain_labels(value).filter(|_| SELECTORS.contains(&&**key));
        let tree = match labels {
            Some(labels) => Some(match_labels(at.labels(&labels).into_tree())),
            None => at.manifest(value),
        };
        fields.put(key, tree);
    }
    Some(fields.into_tree())
}

/// Returns the labels of a selector that consists only of labels.
fn plain_labels(selector: &Node) -> Option<BTreeMap<String, Text>> {
    let entries = selector.as_map()?;
    if entries.is_empty() {
        return None;
    }
    let label = |(key, value): (&orkestra_object::value::Key, &Node)| {
        let is_plain = !matches!(value, Node::Map(_) | Node::List(_));
        let is_label = is_plain && !OF_SELECTORS.contains(&&**key);
        is_label.then(|| (key.to_string(), Text::from(value.to_text().into_owned())))
    };
    entries.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn labels_alone_are_distinguished_from_a_selector_of_kubernetes() {
        let plain = plain_labels(&node(r#"{"app":"web","tier":1}"#)).unwrap();
        assert_eq!(plain["tier"].as_str(), "1");
        for selector in [
            r#"{"matchLabels":{"app":"web"}}"#,
            r#"{"matchExpressions":[]}"#,
            "{}",
            "[]",
        ] {
            assert_eq!(plain_labels(&node(selector)), None, "{selector}");
        }
    }
}
