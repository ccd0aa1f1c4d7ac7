//! Informers after a rewind: the API server's etcd was restored from a backup, so versions and objects are older.

use super::*;
use crate::{reach::Reach, requests::Cluster};

fn spec(size: u8) -> String {
    format!(r#","spec":{{"size":{size}}}"#)
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_an_older_state_is_listed_again_and_counts() {
    let server = Server::new();
    let (informers, handle, feed, reported) = websites(&server).await;
    feed.send("MODIFIED", &object("a", 900, &spec(5)));
    feed.send("ADDED", &object("c", 901, ""));
    settle().await;
    take(&reported);
    server.state(500);
    server.answer(
        200,
        list(
            500,
            "",
            &[object("a", 10, &spec(1)), object("b", 480, &spec(9))],
        ),
    );
    let next = server.watch();
    feed.break_off();
    sleep(Duration::from_secs(3)).await;
    let versions = (version(&handle, "a"), version(&handle, "b"));
    assert_eq!(
        (names(&handle), versions),
        (vec!["a".into(), "b".into()], ("10".into(), "480".into()))
    );
    assert_eq!(take(&reported).len(), 3);
    assert_eq!(informers.stats()[0].rewinds, 1);
    // The watch continues from the version of the list.
    assert!(
        server
            .requests()
            .pop()
            .unwrap()
            .uri
            .contains("resourceVersion=500&")
    );
    next.send("MODIFIED", &object("a", 501, &spec(3)));
    settle().await;
    assert_eq!(take(&reported), reported_of("a", true, true));
    // A response to a write after the rewind is newer than the known state, so the store accepts it.
    let answer = handle.store().answer(&node(&object("c", 502, ""))).unwrap();
    assert_eq!(answer.id.resource_version, *"502");
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_a_state_that_went_on_is_only_watched() {
    let server = Server::new();
    let (informers, handle, feed, _reported) = websites(&server).await;
    server.state(20);
    feed.break_off();
    sleep(Duration::from_secs(3)).await;
    let seen = (
        server.comparisons(),
        server.times(false).len(),
        informers.stats()[0].rewinds,
    );
    assert_eq!((seen, state(&handle)), ((1, 1, 0), WatchState::Synced));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_it_should_asks_for_no_comparison() {
    let server = Server::new();
    let (_informers, _handle, feed, _reported) = websites(&server).await;
    drop(feed);
    sleep(Duration::from_secs(3)).await;
    assert_eq!((server.comparisons(), server.times(true).len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_event_or_a_bookmark_that_is_older_than_what_was_seen_leads_to_a_list() {
    for event in ["MODIFIED", "BOOKMARK"] {
        let server = Server::new();
        let (informers, handle, feed, _reported) = websites(&server).await;
        server.answer(200, list(15, "", &[object("a", 12, &spec(1))]));
        match event {
            "BOOKMARK" => feed.send(event, &bookmark(15)),
            _ => feed.send(event, &object("a", 15, "")),
        }
        sleep(Duration::from_secs(2)).await;
        assert_eq!(
            (names(&handle), informers.stats()[0].rewinds),
            (vec!["a".into()], 1)
        );
        assert_eq!(version(&handle, "a"), "12");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_the_server_has_not_reached_leads_to_a_list() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    let message = "Timeout: Too large resource version: 20, current: 15";
    server.refuse_watch(504, status(504, "Timeout", message));
    server.answer(200, list(15, "", &[object("c", 12, "")]));
    drop(feed);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(names(&handle), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_doubt_compares_states_once_in_a_while() {
    let server = Server::new();
    let (informers, handle, _feed, _reported) = websites(&server).await;
    handle.store().doubt();
    handle.store().doubt();
    sleep(Duration::from_secs(15)).await;
    assert_eq!((server.comparisons(), informers.stats()[0].rewinds), (1, 0));
    server.state(5);
    server.answer(200, list(5, "", &[object("d", 4, "")]));
    handle.store().doubt();
    handle.store().doubt();
    sleep(Duration::from_secs(15)).await;
    assert_eq!(
        (server.comparisons(), names(&handle)),
        (2, vec!["d".to_owned()])
    );
}

/// The resourceVersion of the restored server has passed the lost versions; the list then replaces newer records.
#[tokio::test(start_paused = true)]
async fn a_list_is_complete_up_to_its_version() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    feed.send("MODIFIED", &object("a", 30, &spec(5)));
    settle().await;
    server.answer(200, list(40, "", &[object("a", 25, &spec(6))]));
    feed.send("ERROR", &status(410, "Expired", "too old resource version"));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        (version(&handle, "a"), names(&handle)),
        ("25".to_owned(), vec!["a".to_owned()])
    );
}

/// The restored server has passed the known resourceVersion, but a Lease of the process still shows the rewind.
#[tokio::test(start_paused = true)]
async fn a_rewind_that_another_object_shows_has_everything_listed_again() {
    let (server, reach) = (Server::new(), Reach::unquestioned());
    let cluster = Cluster::reaching(server.client(), reach.clone());
    let informers = Informers::new(cluster, Entropy::seeded(7));
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    let _feed = server.watch();
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    server.answer(200, list(40, "", &[object("c", 35, "")]));
    settle().await;
    assert_eq!(names(&handle), ["a"]);
    reach.note_rewind();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        (names(&handle), informers.stats()[0].rewinds),
        (vec!["c".to_owned()], 1)
    );
    // The objects are listed only once more; the watch continues from that list.
    assert_eq!(server.times(false).len(), 2);
}
