//! What a gateway removes when it stops.

use std::sync::Arc;

use orkestra_cluster::requests::Served;
use tokio::sync::Notify;

use super::{
    Keeper, definitions, desired,
    problems::{lacking, text},
};
use crate::Gateway;

/// Removes what Katalogs want removed when the gateway stops.
pub(crate) async fn end(gateway: &Gateway) {
    let authorities = gateway.authorities.borrow().clone();
    let catalogue = gateway.catalogue.load_full();
    let options = &gateway.options;
    let cleans = catalogue.katalogs.iter().any(|(_, plan)| {
        let security = &plan.security;
        options.ephemeral
            || security.cleanup
            || security.deletion.is_some_and(|deletion| deletion.cleanup)
            || (security.namespaces.as_ref()).is_some_and(|namespaces| namespaces.cleanup)
    });
    if !cleans || !*gateway.listed.borrow() || !catalogue.complete {
        return;
    }
    let touched = Arc::new(Notify::new());
    let cluster = gateway.cluster.clone();
    let mut keeper = if options.serves() {
        // An API server that does not answer removes nothing either.
        let optional = desired::optional_version(&cluster)
            .await
            .unwrap_or_default();
        Keeper::start(gateway, cluster, optional, &touched).await
    } else {
        let mut keeper = Keeper::new(gateway, cluster, &touched);
        let all = desired::desired(options, &catalogue, &authorities, None);
        keeper.follow_policies(&catalogue, &all).await;
        keeper
    };
    let mut kept = Vec::new();
    if !options.ephemeral {
        kept = desired::remaining(options, &catalogue, &authorities, keeper.optional);
    }
    if options.serves() {
        // A conversion is needed as long as objects are stored.
        kept.extend(definitions::declared(options, &catalogue, &authorities));
        match keeper.leaving(&kept, &authorities).await {
            Ok(leaving) => kept.extend(leaving),
            Err(error) => {
                tracing::warn!(error, "the webhook configurations remain");
                return;
            }
        }
    }
    let mut problems = Vec::new();
    keeper.look_up_owner().await;
    for desired in kept.iter().filter(|one| one.served != Served::crds()) {
        let refused = keeper.apply(desired).await.err();
        problems.extend(refused.map(|why| lacking(desired, why)));
    }
    keeper.remove_others(&kept, &mut problems).await;
    if !problems.is_empty() {
        tracing::warn!(
            problems = text(&problems),
            "some webhook configurations remain"
        );
    }
}
