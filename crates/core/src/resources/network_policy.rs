//! `networkPolicies`.

use std::collections::BTreeMap;

use super::{Child, CopySource, Metadata, Shorthand, workload::match_labels};
use crate::{
    api::{
        children::{Copies, NetworkPolicy, NetworkRules},
        scalar::Text,
    },
    diagnostics::Code,
    plan::ObjectTree,
    scope::{At, Fields, resolve_profile},
    value::{Map, Node},
};

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
        Some((self.source(), &self.copies))
    }

    fn expand(&self, child: &Child<'_>, _: &mut Metadata) -> Fields {
        let NetworkPolicy {
            common: _,
            pod_selector,
            rules,
            profile,
            from_network_policy: _,
            copies: _,
        } = self;
        let at = &child.at;
        let own = [
            ("podSelector", pod_selector.is_some()),
            ("ingress", rules.ingress.is_some()),
            ("egress", rules.egress.is_some()),
            ("policyTypes", rules.policy_types.is_some()),
            ("profile", profile.is_some()),
        ];
        if self.source().is_given(at, &own) {
            return Fields::default();
        }
        let mut labels = Fields::default();
        if let Some(selector) = pod_selector {
            let at = at.field("podSelector");
            labels.extend(at.field("matchLabels").labels(&selector.match_labels));
            labels.extend(at.labels(&selector.labels));
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
        let selector = labels.into_optional().map(match_labels);
        let all = || ObjectTree::Fixed(Node::Map(Map::default()));
        spec.put("podSelector", selector.unwrap_or_else(all));
        spec.into_root("spec")
    }
}

impl NetworkPolicy {
    fn source(&self) -> CopySource<'_> {
        CopySource::whole("fromNetworkPolicy", self, self.from_network_policy.as_ref())
    }
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
        let at = at.field(name);
        let rules = list.iter().enumerate();
        let rules = rules.filter_map(|(index, node)| rule(&at.index(index), node));
        fields.put(name, ObjectTree::list(rules.collect()));
    }
    let types = match policy_types {
        Some(types) => words(&at.field("policyTypes"), types),
        None if declared.is_empty() => {
            let hint = "declare `ingress` or `egress`, where `[]` permits none, or a `profile` such as `deny-all`";
            at.error_hint(Code::Missing, "the NetworkPolicy has no rules", hint);
            return fields;
        }
        None => ObjectTree::texts(&declared),
    };
    fields.put("policyTypes", types);
    fields
}

fn words(at: &At<'_>, types: &[Text]) -> ObjectTree {
    let words = types.iter().enumerate();
    let words = words.filter_map(|(index, word)| at.index(index).word(word, &TYPES));
    ObjectTree::list(words.collect())
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
    let label = |(key, value): (&crate::value::Key, &Node)| {
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
