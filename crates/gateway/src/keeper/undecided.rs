//! What stays while it is not known of some Katalog what it declares.

use orkestra_object::value::Node;
use serde_json::Value;

use super::{Desired, Keeper, desired};
use crate::{catalogue::Catalogue, webhooks};

impl Keeper<'_> {
    /// Adds what no plan declares and what stays nevertheless: conversions that stored objects need, and while Katalogs are
    /// undecided, all webhooks.
    ///
    /// # Errors
    /// An object cannot be read.
    pub(crate) async fn add_kept(
        &mut self,
        all: &mut Vec<Desired>,
        catalogue: &Catalogue,
        authorities: &str,
    ) -> Result<(), String> {
        if !catalogue.complete {
            self.keep_undecided(all, authorities).await?;
        }
        let leaving = self.leaving(all, authorities).await?;
        all.extend(leaving);
        Ok(())
    }

    /// Adds to the webhook configurations the webhooks that the stored ones have: other objects stay by not being removed, but an
    /// apply without a webhook would remove it.
    ///
    /// # Errors
    /// A configuration cannot be read.
    async fn keep_undecided(
        &self,
        all: &mut Vec<Desired>,
        authorities: &str,
    ) -> Result<(), String> {
        let name = &self.gateway.options.name;
        for served in desired::configurations() {
            let live = self.cluster.find(&served, name).await;
            let live =
                live.map_err(|error| format!("cannot read {} {name}: {error}", served.kind))?;
            let Some(live) = live.filter(|live| live.label(desired::LABEL) == Some(name)) else {
                continue;
            };
            let wanted = all.iter_mut().find(|one| one.served == served);
            let kept = webhooks_of(&live.to_json());
            if let Some(wanted) = wanted {
                add(wanted, kept, authorities);
            } else {
                let (options, of) = (&self.gateway.options, desired::Owners::new());
                let mut wanted = desired::configuration(&served, options, &[], of);
                add(&mut wanted, kept, authorities);
                all.push(wanted);
            }
        }
        Ok(())
    }
}

fn webhooks_of(configuration: &Value) -> Vec<Value> {
    let webhooks = configuration["webhooks"].as_array();
    webhooks.cloned().unwrap_or_default()
}

/// Adds the webhooks whose name is missing, with the current authorities. All keep the order in which they are stored: another one
/// would be a write.
fn add(wanted: &mut Desired, stored: Vec<Value>, authorities: &str) {
    let mut body = wanted.body.to_json();
    let mut wished = webhooks_of(&body);
    let mut webhooks = Vec::with_capacity(stored.len() + wished.len());
    for mut webhook in stored {
        let same = wished.iter().position(|one| one["name"] == webhook["name"]);
        if let Some(same) = same {
            webhook = wished.remove(same);
        } else {
            webhook["clientConfig"]["caBundle"] = webhooks::bundle(authorities).into();
        }
        webhooks.push(webhook);
    }
    webhooks.extend(wished);
    body["webhooks"] = webhooks.into();
    wanted.body = Node::from(&body);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Reach, tests::options};

    #[test]
    fn stored_webhooks_keep_their_order_and_new_ones_follow() {
        let webhook =
            |name: &str, path: &str| json!({ "name": name, "clientConfig": { "url": path } });
        let [served, _] = desired::configurations();
        let mut wanted = desired::configuration(
            &served,
            &options(Reach::Unserved),
            &[],
            desired::Owners::new(),
        );
        let mut body = wanted.body.to_json();
        body["webhooks"] = json!([webhook("new", "n"), webhook("b", "now")]);
        wanted.body = Node::from(&body);
        add(
            &mut wanted,
            vec![webhook("a", "then"), webhook("b", "then")],
            "authority",
        );
        let found = webhooks_of(&wanted.body.to_json());
        let names: Vec<&str> = found
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, ["a", "b", "new"]);
        assert_eq!(found[1]["clientConfig"]["url"], "now");
        assert!(found[0]["clientConfig"]["caBundle"].is_string());
    }
}
