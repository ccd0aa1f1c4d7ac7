//! The blocks of a whole composition: `security`, `notification` and `providers`.
//!
//! They are merged in the order of the sources, and the composition itself comes last. `security`: the later document wins
//! for each field. `notification`: the same, and teams are added to each other, each as a whole. `providers`: added to each
//! other by name; the later one of a name replaces the earlier one.

use crate::tree::{Tree, TreeKey, TreeValue};

/// The merged blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    security: Option<Tree>,
    notification: Option<Tree>,
    providers: Option<Tree>,
}

impl Blocks {
    /// Adds the blocks of a document in the present spelling.
    pub(super) fn add(&mut self, document: &Tree) {
        let Some(spec) = document.get("spec") else {
            return;
        };
        if let Some(security) = spec.get("security") {
            over(&mut self.security, security);
        }
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
    pub(super) fn put(&self, spec: &mut Tree) {
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

    fn merged(documents: &[Value]) -> Value {
        let mut blocks = Blocks::default();
        for spec in documents {
            blocks.add(&Tree::from_json(&json!({ "spec": spec })));
        }
        let mut spec = Tree::map(Vec::new());
        blocks.put(&mut spec);
        spec.to_json()
    }

    #[test]
    fn the_security_of_the_composition_wins_for_each_field() {
        let source = json!({ "security": { "deletionProtection": { "enabled": true, "strictMode": true } } });
        let own = json!({ "security": { "deletionProtection": { "strictMode": false } } });
        let wanted = json!({ "security": { "deletionProtection": { "enabled": true, "strictMode": false } } });
        assert_eq!(merged(&[source, own]), wanted);
    }

    #[test]
    fn teams_are_added_and_each_is_replaced_as_a_whole() {
        let source = json!({ "notification": { "enabled": false, "teams": {
            "a": { "interval": "5m", "email": ["a@x.example"] }, "b": { "interval": "1m" } } } });
        let own = json!({ "notification": { "teams": { "a": { "email": ["c@x.example"] } } } });
        let wanted = json!({ "notification": { "enabled": false, "teams": {
            "a": { "email": ["c@x.example"] }, "b": { "interval": "1m" } } } });
        assert_eq!(merged(&[source, own]), wanted);
    }

    #[test]
    fn providers_are_added_by_name() {
        let source =
            json!({ "providers": [{ "name": "aws", "required": true }, { "name": "gcp" }] });
        let own = json!({ "providers": [{ "name": "aws", "version": "2" }] });
        let wanted = json!({ "providers": [{ "name": "gcp" }, { "name": "aws", "version": "2" }] });
        assert_eq!(merged(&[source, own]), wanted);
    }
}
