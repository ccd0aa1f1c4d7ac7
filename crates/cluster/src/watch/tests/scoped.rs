//! One kind in several namespaces, each with its own informer.

use orkestra_object::ObjectNamespaces;

use super::*;

/// The namespaces `garden` and `shop`, in listing order.
fn places() -> ObjectNamespaces {
    ObjectNamespaces::Only(["shop".into(), "garden".into()].into())
}

fn websites(informers: &Informers) -> Scoped<CrRecord> {
    Scoped::start(&watched(), &places(), |part| {
        informers.shared::<CrRecord>(part, &[], None)
    })
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_listed_by_itself_and_read_as_one() {
    let server = Server::new();
    let in_garden = object("g", 9, "").replace("shop", "garden");
    server.answer(200, list(20, "", &[in_garden]));
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let informers = informers(&server);
    let watches = websites(&informers);
    watches.looked_at().await;
    let uris: Vec<String> = server
        .requests()
        .iter()
        .map(|one| one.uri.clone())
        .collect();
    let listed = |namespace: &str| {
        let path = format!("/namespaces/{namespace}/websites?");
        uris.iter().any(|uri| uri.contains(&path))
    };
    assert!(listed("garden") && listed("shop"), "{uris:#?}");
    let store = watches.store();
    assert_eq!(store.keys().len(), 2);
    assert!(store.get(&key("a")).is_some() && store.get(&key("g")).is_none());
    // A response is stored only in the store of its namespace.
    assert!(store.answer(&node(&object("b", 30, ""))).is_some());
    let elsewhere = object("c", 31, "").replace("shop", "street");
    assert!(store.answer(&node(&elsewhere)).is_none());
    assert_eq!(store.snapshot().len(), 3);
    assert!(watches.readable().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_without_permission_is_reported_and_hides_no_other() {
    let server = Server::new();
    server.answer(403, status(403, "Forbidden", "not in the garden"));
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let informers = informers(&server);
    let watches = websites(&informers);
    watches.looked_at().await;
    let states: Vec<bool> = watches
        .parts()
        .map(|(_, state)| *state.borrow() == WatchState::Synced)
        .collect();
    assert_eq!(states.iter().filter(|synced| **synced).count(), 1);
    assert!(matches!(
        watches.problem(),
        Some((_, WatchProblem::Forbidden { .. }))
    ));
    assert!(watches.readable().is_ok());
    watches
        .until_any(|state| *state == WatchState::Synced)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_is_listed_whole() {
    let server = Server::new();
    server.answer(200, list(20, "", &[]));
    let mut whole = watched();
    whole.served.namespaced = false;
    let informers = informers(&server);
    let watches = Scoped::start(&whole, &places(), |part| {
        informers.shared::<CrRecord>(part, &[], None)
    });
    watches.looked_at().await;
    assert_eq!(watches.namespaces().collect::<Vec<_>>(), [None]);
}
