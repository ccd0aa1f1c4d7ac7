//! The blocks of a whole composition: `security`, `notification` and `providers`.
//!
//! They are merged in the order of the sources, and the composition itself comes last. `security`: of the sources the stricter
//! value is used for each field, and the composition itself wins ([`super::security`]). `notification`: the same, and teams are added to each other, each as a whole. `providers`: added to each
//! other by name; the later one of a name replaces the earlier one.

use super::security::{tighten, without_empty};
use orkestra_language::tree::{Tree, TreeKey, TreeValue};

/// The merged blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The `security` of the sources.
    of_sources: Option<Tree>,
    security: Option<Tree>,
    notification: Option<Tree>,
    providers: Option<Tree>,
}

impl Blocks {
    /// Adds the blocks of the document of a source, in the present spelling. One with operators has protection by default.
    pub(crate) fn add_source(&mut self, document: &Tree, has_operators: bool) {
        let spec = document.get("spec");
        let security = spec.and_then(|spec| spec.get("security"));
        if security.is_some() || has_operators {
            let known = self.of_sources.get_or_insert_with(|| Tree::map(Vec::new()));
            tighten(known, security);
        }
        if let Some(spec) = spec {
            self.add_others(spec);
        }
    }

    /// Adds the blocks of the outermost composition, which come last.
    pub(crate) fn add_own(&mut self, document: &Tree) {
        let of_sources = self.of_sources.take();
        self.security = of_sources.and_then(without_empty);
        let Some(spec) = document.get("spec") else {
            return;
        };
        if let Some(security) = spec.get("security") {
            over(&mut self.security, security);
        }
        self.add_others(spec);
    }

    fn add_others(&mut self, spec: &Tree) {
        if let Some(notification) = spec.get("notification") {
            self.add_notification(notification);
        }
        if let Some(providers) = spec.get("providers") {
            self.add_providers(providers);
        }
    }

    fn add_notification(&mut self, added: &Tree) {
        let teams = added.get("teams").and_then(Tree::as_map);
        // A team is replaced as a whole: half of one message with the webhook of another would reach no reader.
        let known = self
            .notification
            .as_mut()
            .and_then(|tree| tree.get_mut("teams"));
        if let (Some(teams), Some(known)) = (teams, known.and_then(Tree::as_map_mut)) {
            known.retain(|(key, _)| teams.iter().all(|(team, _)| team.name != key.name));
        }
        over(&mut self.notification, added);
    }

    fn add_providers(&mut self, added: &Tree) {
        let (Some(known), TreeValue::List(added)) = (&mut self.providers, &added.value) else {
            self.providers = Some(added.clone());
            return;
        };
        let name = |tree: &Tree| tree.get("name").and_then(Tree::as_str).map(str::to_owned);
        let Some(items) = known.as_list_mut() else {
            return;
        };
        items.retain(|item| added.iter().all(|other| name(other) != name(item)));
        items.extend(added.iter().cloned());
    }

    /// Puts the blocks into the `spec` of a document.
    pub(crate) fn put(&self, spec: &mut Tree) {
        for (name, block) in [
            ("security", &self.security),
            ("notification", &self.notification),
            ("providers", &self.providers),
        ] {
            if let Some(block) = block {
                spec.take(&[name]);
                if let Some(fields) = spec.as_map_mut() {
                    fields.push((TreeKey::new(name), block.clone()));
                }
            }
        }
    }
}

fn over(known: &mut Option<Tree>, added: &Tree) {
    known
        .get_or_insert_with(|| Tree::map(Vec::new()))
        .override_with(added);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn merged(sources: &[Value], own: &Value) -> Value {
        let mut blocks = Blocks::default();
        for spec in sources {
            blocks.add_source(&Tree::from_json(&json!({ "spec": spec })), true);
        }
        blocks.add_own(&Tree::from_json(&json!({ "spec": own })));
        let mut spec = Tree::map(Vec::new());
        blocks.put(&mut spec);
        spec.to_json()
    }

    #[test]
    fn the_security_of_the_composition_wins_for_each_field() {
        let source = json!({ "security": { "deletionProtection": { "enabled": true, "strictMode": true } } });
        let own = json!({ "security": { "deletionProtection": { "strictMode": false } } });
        let wanted = json!({ "security": { "deletionProtection": { "enabled": true, "strictMode": false } } });
        assert_eq!(merged(&[source], &own), wanted);
    }

    #[test]
    fn a_later_source_does_not_weaken_the_protection_of_an_earlier_one() {
        let strict = json!({ "security": {
            "deletionProtection": { "strictMode": true },
            "namespaceProtection": { "restrictedNamespaces": ["kube-system"] },
            "webhooks": { "admission": { "enabled": true } },
        } });
        let wanted = json!({
            "deletionProtection": { "enabled": true, "strictMode": true },
            "namespaceProtection": { "enabled": true, "restrictedNamespaces": ["kube-system"] },
            "webhooks": { "admission": { "enabled": true } },
        });
        let none = json!({});
        for weak in [
            json!({ "deletionProtection": { "enabled": false } }),
            json!({ "deletionProtection": { "strictMode": false, "cleanupOnShutdown": true, "failurePolicy": "Ignore" } }),
            json!({ "deletionProtection": null, "namespaceProtection": null, "webhooks": null }),
            json!({ "namespaceProtection": { "enabled": false, "restrictedNamespaces": [] } }),
            json!({ "webhooks": { "admission": { "enabled": false }, "failurePolicy": "Ignore", "cleanupOnShutdown": true } }),
            json!({ "webhooks": { "serviceName": "theirs" }, "serviceName": "theirs", "gatewayEndpoint": "https://theirs.example" }),
        ] {
            let weak = json!({ "security": weak });
            for sources in [
                [strict.clone(), weak.clone()],
                [weak.clone(), strict.clone()],
            ] {
                assert_eq!(merged(&sources, &none)["security"], wanted, "{weak}");
            }
        }
        let off = json!({ "security": { "deletionProtection": { "enabled": false } } });
        let found = merged(&[strict], &off);
        assert_eq!(found["security"]["deletionProtection"]["enabled"], false);
    }

    #[test]
    fn namespaces_of_sources_become_fewer() {
        let of = |block: Value| json!({ "security": { "namespaceProtection": block } });
        for (one, other, wanted) in [
            (
                json!({ "restrictedNamespaces": ["a"] }),
                json!({ "restrictedNamespaces": ["b", "a"] }),
                json!({ "restrictedNamespaces": ["a", "b"] }),
            ),
            (
                json!({ "allowedNamespaces": ["a", "b"] }),
                json!({ "allowedNamespaces": ["b", "c"] }),
                json!({ "allowedNamespaces": ["b"] }),
            ),
            (
                json!({ "allowedNamespaces": ["a"] }),
                json!({ "allowedNamespaces": ["b"] }),
                // Both lists: the Katalog is refused.
                json!({ "allowedNamespaces": ["a", "b"], "restrictedNamespaces": ["a", "b"] }),
            ),
            (
                json!({ "allowedNamespaces": ["a", "b"] }),
                json!({ "restrictedNamespaces": ["b"] }),
                json!({ "allowedNamespaces": ["a"] }),
            ),
            (
                json!({ "allowedNamespaces": ["a"] }),
                json!({ "restrictedNamespaces": ["a"] }),
                json!({ "allowedNamespaces": ["a"], "restrictedNamespaces": ["a"] }),
            ),
            (
                json!({ "restrictedNamespaces": ["b"] }),
                json!({ "allowedNamespaces": ["a", "b"] }),
                json!({ "allowedNamespaces": ["a"] }),
            ),
        ] {
            let found = merged(&[of(one), of(other)], &json!({}));
            let mut found = found["security"]["namespaceProtection"].clone();
            assert_eq!(found["enabled"].take(), true);
            found.as_object_mut().unwrap().remove("enabled");
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn teams_are_added_and_each_is_replaced_as_a_whole() {
        let source = json!({ "notification": { "enabled": false, "teams": {
            "a": { "interval": "5m", "email": ["a@x.example"] }, "b": { "interval": "1m" } } } });
        let own = json!({ "notification": { "teams": { "a": { "email": ["c@x.example"] } } } });
        let wanted = json!({ "notification": { "enabled": false, "teams": {
            "a": { "email": ["c@x.example"] }, "b": { "interval": "1m" } } } });
        assert_eq!(merged(&[source], &own), wanted);
    }

    #[test]
    fn providers_are_added_by_name() {
        let source =
            json!({ "providers": [{ "name": "aws", "required": true }, { "name": "gcp" }] });
        let own = json!({ "providers": [{ "name": "aws", "version": "2" }] });
        let wanted = json!({ "providers": [{ "name": "gcp" }, { "name": "aws", "version": "2" }] });
        assert_eq!(merged(&[source], &own), wanted);
    }
}
