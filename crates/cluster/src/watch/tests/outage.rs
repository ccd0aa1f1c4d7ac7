//! Informers while the API server is unreachable, and after it is reachable again.

use prometheus::IntGauge;

use super::*;
use crate::{reach::Reach, requests::Cluster};

/// Informers whose requests report reachability.
fn reaching(server: &Server) -> (Informers, Reach) {
    let gauge = IntGauge::new("up", "up").unwrap();
    let reach = Reach::new(server.client(), Entropy::seeded(7), gauge);
    let cluster = Cluster::reaching(server.client(), reach.clone());
    (Informers::new(cluster, Entropy::seeded(7)), reach)
}

fn unavailable() -> String {
    status(503, "ServiceUnavailable", "nobody is there")
}

fn count(server: &Server, part: &str) -> usize {
    let requests = server.requests();
    requests
        .iter()
        .filter(|seen| seen.uri.contains(part))
        .count()
}

fn lists(server: &Server) -> usize {
    let requests = server.requests();
    let is_list = |uri: &str| uri.contains("websites") && !uri.contains("watch=true");
    requests.iter().filter(|seen| is_list(&seen.uri)).count()
}

#[tokio::test(start_paused = true)]
async fn a_watch_continues_from_where_it_was_and_lists_nothing() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    feed.send("MODIFIED", &object("a", 31, ""));
    settle().await;
    server.answer(503, unavailable());
    feed.break_off();
    sleep(Duration::from_secs(20)).await;
    assert!(reach.view().borrow().away.is_some());
    assert!(matches!(
        state(&handle),
        WatchState::Failing {
            was_synced: true,
            ..
        }
    ));
    // The informer retries three times; after that, only probes are sent.
    assert_eq!((count(&server, "watch=true"), server.comparisons()), (1, 3));
    assert!(count(&server, "/readyz") >= 8);

    server.answer(200, "ok");
    reach.up().await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(state(&handle), WatchState::Synced);
    assert_eq!(names(&handle), ["a"]);
    assert_eq!(lists(&server), 1);
    let last = server.requests().pop().unwrap();
    assert!(last.uri.contains("watch=true") && last.uri.contains("resourceVersion=31&"));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_became_too_old_is_listed_once() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    server.refuse_watch(410, status(410, "Expired", "too old resource version"));
    server.answer(503, unavailable());
    server.answer(200, "ok");
    server.answer(200, list(90, "", &[object("b", 80, "")]));
    feed.break_off();
    sleep(Duration::from_secs(20)).await;
    assert!(reach.is_up());
    assert_eq!((lists(&server), names(&handle)), (2, vec!["b".to_owned()]));
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_open_is_opened_again_after_an_outage() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    // The connection of the watch is dead without an error; other requests show that the server is unreachable.
    server.answer(503, unavailable());
    let cluster = Cluster::reaching(server.client(), reach.clone());
    let one = watched().served;
    for _ in 0..3 {
        assert!(cluster.get(&one, &key("a")).await.is_err());
    }
    sleep(Duration::from_secs(9)).await;
    assert!(!reach.is_up() && !feed.is_deserted());
    server.answer(200, "ok");
    reach.up().await;
    sleep(Duration::from_secs(1)).await;
    assert!(feed.is_deserted());
    assert_eq!((count(&server, "watch=true"), lists(&server)), (2, 1 + 3));
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_alone_is_refused_waits_longer_and_longer() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    // All other requests are answered, including probes.
    server.answer(200, list(20, "", &[]));
    for _ in 0..100 {
        server.refuse_watch(503, unavailable());
    }
    let _handle = informers.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(reach.returns(), 0);
    let times = server.times(true);
    let last = times
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .next_back()
        .unwrap();
    assert!(last >= Duration::from_secs(5), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn of_forty_watches_none_asks_while_the_server_is_away_and_all_return_within_half_a_second() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    server.answer(503, unavailable());
    let kinds = (0..40).map(|number| {
        let mut watched = watched();
        watched.scope.namespace = Some(format!("shop-{number}"));
        informers.shared::<CrRecord>(watched, &[], None)
    });
    let handles: Vec<_> = kinds.collect();
    sleep(Duration::from_secs(2)).await;
    assert!(reach.view().borrow().away.is_some());
    let before = lists(&server);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(lists(&server), before, "lists during the outage");

    server.answer(200, list(20, "", &[]));
    reach.up().await;
    sleep(Duration::from_millis(450)).await;
    assert_eq!(lists(&server), before + 40);
    assert!(
        handles
            .iter()
            .all(|handle| state(handle) == WatchState::Synced)
    );
}

#[tokio::test(start_paused = true)]
async fn a_relist_keeps_the_records_that_did_not_change() {
    let server = Server::new();
    let informers = informers(&server);
    let objects = |changed: usize| -> Vec<String> {
        let each = |number: usize| {
            let version = if number < changed { 5_000 } else { 10 };
            object(&format!("o{number:04}"), version, r#","spec":{"size":2}"#)
        };
        (0..1_000).map(each).collect()
    };
    server.answer(200, list(20, "", &objects(0)));
    server.answer(200, list(9_000, "", &objects(7)));
    let feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), None);
    handle.synced().await;
    let sorted = || {
        let mut records = handle.store().snapshot();
        records.sort_by(|a, b| a.id.key.cmp(&b.id.key));
        records
    };
    let before = sorted();
    feed.send("ERROR", &status(410, "Expired", "too old resource version"));
    sleep(Duration::from_secs(2)).await;
    let after = sorted();
    assert_eq!(
        (before.len(), after.len(), lists(&server)),
        (1_000, 1_000, 2)
    );
    // Unchanged objects keep their record.
    let other = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| !Arc::ptr_eq(before, after));
    assert_eq!(other.count(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_alone_is_not_answered_is_reported_as_lasting_in_spite_of_doubts() {
    let server = Server::new();
    let (informers, reach) = reaching(&server);
    server.answer(200, list(20, "", &[]));
    let feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    // An aggregated API without endpoints: its lists and watches fail, probes succeed.
    server.answer_at("websites", 503, unavailable());
    for _ in 0..100 {
        server.refuse_watch(503, unavailable());
    }
    feed.break_off();
    let is_lasting = || match state(&handle) {
        WatchState::Failing {
            problem: WatchProblem::Unavailable { is_lasting, .. },
            ..
        } => is_lasting,
        other => panic!("{other:?}"),
    };
    sleep(Duration::from_secs(45)).await;
    assert!(!is_lasting() && count(&server, "/readyz") > 0);
    sleep(Duration::from_secs(30)).await;
    assert!(is_lasting() && reach.returns() == 0);
}
