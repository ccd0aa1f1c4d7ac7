//! Writes of objects, without webhooks that do not answer.

use orkestra_object::{
    decode::Version,
    value::{Node, hash},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{Desired, Keeper, MANAGER, Probes, Written, key};
use orkestra_operator::context::enforcement::NotEnforced;

impl Keeper<'_> {
    /// Writes an object, without webhooks that do not answer: a Katalog with a wrong address must not keep those of the others away.
    pub(crate) async fn write(
        &mut self,
        desired: &Desired,
        probes: &Probes,
        problems: &mut Vec<NotEnforced>,
    ) -> Result<(), String> {
        let silent = probes.silent(&desired.body);
        if silent.places.is_empty() {
            return self.apply(desired).await;
        }
        problems.extend(silent.problems.iter().map(|(webhook, why)| NotEnforced {
            of: desired.of.get(webhook).cloned().unwrap_or_default(),
            object: match &**webhook {
                "" => desired.title(),
                webhook => format!("{}, webhook {webhook}", desired.title()),
            },
            why: why.clone(),
        }));
        let (served, name) = (&desired.served, &desired.name);
        let live = self.cluster.find(served, name).await;
        let live = live.map_err(|error| format!("cannot read it: {error}"))?;
        let live = live.as_ref().map_or(Value::Null, Node::to_json);
        let Some(body) = silent.without(&desired.body.to_json(), &live) else {
            return Ok(());
        };
        let reduced = Desired {
            body: Node::from(&body),
            ..desired.clone()
        };
        if self.is_current(&reduced) {
            return Ok(());
        }
        self.apply(&reduced).await
    }

    /// Applies an object, and remembers it.
    pub(crate) async fn apply(&mut self, desired: &Desired) -> Result<(), String> {
        let (served, key) = (&desired.served, key(&desired.name));
        let body = self.owned(desired);
        let applied = self.cluster.apply(served, &key, MANAGER, true, &body);
        let applied = applied
            .await
            .map_err(|error| format!("cannot apply it: {error}"))?;
        let version = applied.meta_text("resourceVersion");
        let version = Version::from(version.unwrap_or_default());
        let name = (served.kind.as_ref().into(), desired.name.clone());
        let written = Written {
            body: hash(&desired.body).into(),
            version,
            at: Instant::now(),
            seen: false,
        };
        self.written.insert(name, written);
        tracing::debug!(kind = &*served.kind, name = desired.name, "applied");
        Ok(())
    }
}
