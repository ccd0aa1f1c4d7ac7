//! Informers against a scripted API server, under paused time.

mod answers;
mod bytes;
mod outage;
mod problem;
mod rewind;
mod scoped;
mod unread;

use std::{sync::Arc, time::Duration};

use orkestra_engine::reconcile::record::{ChildRecord, CrRecord};
use orkestra_ground::Entropy;
use orkestra_object::{GroupKind, ObjectKey, value::Path};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::{
    testing::{Feed, Server, bookmark, child, list, node, object, settle, status},
    *,
};

/// The notifications of a subscriber: key, true if the object existed before, true if it exists now.
type Reported = Arc<Mutex<Vec<(String, bool, bool)>>>;

fn watched() -> Watched {
    let served = Served::namespaced("shop.example", "v1", "Website", "websites");
    Watched {
        served,
        scope: Scope {
            namespace: None,
            selector: Some("a=b".into()),
            fields: None,
        },
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: Some("shop".into()),
        name: name.into(),
    }
}

fn paths(texts: &[&str]) -> Vec<Path> {
    texts
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect()
}

fn notebook<R: Record>() -> (Reported, Option<Subscriber<R>>) {
    let reported = Reported::default();
    let notes = reported.clone();
    let subscriber: Subscriber<R> = Arc::new(move |change| {
        notes.lock().push((
            change.key.name.to_string(),
            change.before.is_some(),
            change.after.is_some(),
        ));
    });
    (reported, Some(subscriber))
}

fn take(reported: &Reported) -> Vec<(String, bool, bool)> {
    std::mem::take(&mut reported.lock())
}

fn reported_of(name: &str, before: bool, after: bool) -> Vec<(String, bool, bool)> {
    vec![(name.to_owned(), before, after)]
}

fn informers(server: &Server) -> Informers {
    Informers::new(server.cluster(), Entropy::seeded(7))
}

fn state<R: Record>(handle: &Handle<R>) -> WatchState {
    handle.state().borrow().clone()
}

fn names<R: Record>(handle: &Handle<R>) -> Vec<String> {
    let mut names: Vec<String> = handle
        .store()
        .keys()
        .iter()
        .map(|key| key.name.to_string())
        .collect();
    names.sort();
    names
}

fn version<R: Record>(handle: &Handle<R>, name: &str) -> String {
    handle
        .store()
        .get(&key(name))
        .unwrap()
        .identity()
        .resource_version
        .to_string()
}

/// A synced informer of websites, listed at version 20 with `a` at 10 and `b` at 11, its watch, and a subscriber's notifications.
async fn websites(server: &Server) -> (Informers, Handle<CrRecord>, Feed, Reported) {
    let spec = |size: u8| format!(r#","spec":{{"size":{size},"other":1}}"#);
    server.answer(
        200,
        list(
            20,
            "",
            &[object("a", 10, &spec(1)), object("b", 11, &spec(2))],
        ),
    );
    let feed = server.watch();
    let informers = informers(server);
    let (reported, subscriber) = notebook();
    let handle = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), subscriber);
    assert_eq!(state(&handle), WatchState::Starting);
    handle.synced().await;
    // Long enough for the watch to count as working.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(take(&reported).len(), 2);
    (informers, handle, feed, reported)
}

#[tokio::test(start_paused = true)]
async fn a_list_fills_the_store_and_events_keep_it() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    assert_eq!(names(&handle), ["a", "b"]);
    feed.send("ADDED", &object("c", 21, ""));
    settle().await;
    assert_eq!(take(&reported), reported_of("c", false, true));
    feed.send("MODIFIED", &object("a", 22, r#","spec":{"size":5}"#));
    settle().await;
    assert_eq!(take(&reported), reported_of("a", true, true));
    feed.send("DELETED", &object("b", 23, ""));
    settle().await;
    assert_eq!(take(&reported), reported_of("b", true, false));
    assert_eq!(names(&handle), ["a", "c"]);
    let requests = server.requests();
    assert_eq!(
        requests[0].uri,
        "/apis/shop.example/v1/websites?labelSelector=a%3Db&limit=500"
    );
    assert!(requests[1].uri.starts_with("/apis/shop.example/v1/websites?watch=true&allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=20&timeoutSeconds=29"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_nobody_reads_wakes_nobody_but_is_known() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send(
        "MODIFIED",
        &object("a", 30, r#","spec":{"size":1,"other":2}"#),
    );
    feed.send(
        "MODIFIED",
        &object("a", 30, r#","spec":{"size":1,"other":2}"#),
    );
    settle().await;
    assert_eq!(take(&reported), []);
    assert_eq!(version(&handle, "a"), "30");
}

#[tokio::test(start_paused = true)]
async fn pages_make_one_list() {
    let server = Server::new();
    server.answer(200, list(20, "more/1", &[object("a", 10, "")]));
    server.answer(200, list(20, "", &[object("b", 11, "")]));
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    assert_eq!(names(&handle), ["a", "b"]);
    assert!(
        server.requests()[1]
            .uri
            .ends_with("&limit=500&continue=more%2F1")
    );
}

#[tokio::test(start_paused = true)]
async fn children_are_found_by_their_owner_in_order() {
    let server = Server::new();
    server.answer(
        200,
        list(
            20,
            "",
            &[
                child("b", 11, "cr-1"),
                child("a", 10, "cr-1"),
                child("c", 12, "cr-2"),
            ],
        ),
    );
    let feed = server.watch();
    let informers = informers(&server);
    let handle: Handle<ChildRecord> = informers.shared::<ChildRecord>(watched(), &[], None);
    handle.synced().await;
    let owned = |uid: &str| {
        handle
            .store()
            .owned_by(&uid.into())
            .into_iter()
            .map(|(key, _)| key.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(owned("cr-1"), ["a", "b"]);
    feed.send("MODIFIED", &child("b", 21, "cr-2"));
    feed.send("DELETED", &child("a", 22, "cr-1"));
    settle().await;
    assert_eq!(
        (owned("cr-1"), owned("cr-2")),
        (vec![], vec!["b".to_owned(), "c".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_continues_from_its_last_bookmark() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send("BOOKMARK", &bookmark(77));
    let next = server.watch();
    drop(feed);
    settle().await;
    next.send("MODIFIED", &object("a", 78, r#","spec":{"size":5}"#));
    settle().await;
    assert_eq!(take(&reported), reported_of("a", true, true));
    assert_eq!(state(&handle), WatchState::Synced);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].uri.contains("resourceVersion=77&"));
}

#[tokio::test(start_paused = true)]
async fn a_wider_reader_has_a_list_of_its_own_and_disturbs_nobody() {
    let server = Server::new();
    let (informers, handle, _feed, reported) = websites(&server).await;
    let mut before = handle.state();
    before.mark_unchanged();
    let (more_reported, subscriber) = notebook();
    let more = informers.shared::<CrRecord>(watched(), &paths(&["spec.other"]), subscriber);
    assert_eq!(state(&more), WatchState::Starting);
    more.synced().await;
    let record = more.store().get(&key("a")).unwrap();
    for path in paths(&["spec.size", "spec.other"]) {
        assert!(record.view.at(&path).is_some(), "{path}");
    }
    assert_eq!(
        (server.times(false).len(), before.has_changed().unwrap()),
        (2, false)
    );
    // The records hold more than before; the first reader is notified too, since it shares them.
    assert_eq!((take(&reported).len(), take(&more_reported).len()), (2, 2));
    let same = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), None);
    assert_eq!(state(&same), WatchState::Synced);
    assert_eq!(informers.stats().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_ends_the_watch() {
    let server = Server::new();
    let (informers, handle, feed, _reported) = websites(&server).await;
    let other = informers.shared::<CrRecord>(watched(), &[], None);
    drop(handle);
    settle().await;
    assert!(!feed.is_deserted());
    let record = Arc::downgrade(&other.store().get(&key("a")).unwrap());
    drop(other);
    settle().await;
    assert!(feed.is_deserted());
    assert!(record.upgrade().is_none());
    assert!(informers.stats().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_ends_nothing() {
    let server = Server::new();
    let (informers, handle, feed, reported) = websites(&server).await;
    let _bad = informers.shared::<CrRecord>(
        watched(),
        &[],
        Some(Arc::new(|change| panic!("notified about {}", change.key))),
    );
    feed.send("ADDED", &object("c", 21, ""));
    feed.send("ADDED", &object("d", 22, ""));
    settle().await;
    assert_eq!((names(&handle).len(), take(&reported).len()), (4, 2));
    assert_eq!(informers.stats()[0].panics, 2);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_recorded_does_not_hide_its_neighbours() {
    let server = Server::new();
    server.answer(
        200,
        list(
            20,
            "",
            &[r#"{"metadata":{}}"#.to_owned(), object("a", 10, "")],
        ),
    );
    let feed = server.watch();
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    feed.send("ADDED", r#"{"metadata":{"name":"half"}}"#);
    feed.send("ADDED", &object("b", 21, ""));
    settle().await;
    assert_eq!(names(&handle), ["a", "b"]);
    assert_eq!(informers.stats()[0].unreadable, 2);
}
