//! Conversions that no Katalog declares any more, and that stored objects need.

use std::collections::BTreeMap;

use orkestra_cluster::requests::Served;

use super::{Desired, Keeper, Kept};

impl Keeper<'_> {
    /// Returns the definitions that no Katalog declares any more, and that must keep their conversion.
    pub(crate) async fn leaving(
        &mut self,
        desired: &[Desired],
        authorities: &str,
    ) -> Result<Vec<Desired>, String> {
        let crds = Served::crds();
        let mut watches = self.watches.iter();
        let Some(watch) = watches.find(|one| *one.served() == crds && one.readable().is_ok())
        else {
            return Ok(Vec::new());
        };
        let is_desired = |name: &str| {
            let mut desired = desired.iter();
            desired.any(|one| one.served == crds && one.name == name)
        };
        let (mut leaving, mut looked) = (Vec::new(), BTreeMap::new());
        for live in watch.store().snapshot() {
            let (name, version) = (&*live.id.key.name, &live.id.resource_version);
            if is_desired(name) {
                continue;
            }
            let before = self.looked.get(name);
            let kept = match before {
                // Nothing has changed since it was looked up.
                Some((at, kept)) if at == version => kept.clone(),
                _ => Kept::look_up(&self.cluster, name).await.map_err(|error| {
                    format!("cannot read CustomResourceDefinition {name}: {error}")
                })?,
            };
            if let Some(kept) = &kept {
                let reported = before.and_then(|(_, before)| before.as_ref());
                if reported.is_none_or(|reported| reported.why != kept.why) {
                    kept.report(self.gateway);
                }
                leaving.push(kept.desired(self.gateway, authorities));
            }
            looked.insert(name.to_owned(), (version.clone(), kept));
        }
        self.looked = looked;
        Ok(leaving)
    }
}
