//! Unreadable objects: they are reported and counted, and readable objects are unaffected.

use orkestra_object::{Identity, value::Cause};

use super::{
    super::unread::{MOST_OF_NAMESPACE, MOST_REPORTS, Unread},
    *,
};
use crate::requests::{ClusterError, PageOf, Served};

fn deep(levels: usize) -> String {
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    format!(r#","spec":{{"size":{open}{close}}}"#)
}

fn unread(handle: &Handle<CrRecord>, name: &str) -> Option<Cause> {
    let record = handle.store().get(&key(name)).unwrap();
    record.unread.as_ref().map(|fault| fault.cause)
}

/// Collects reports.
#[derive(Clone, Default)]
struct Reported(Arc<Mutex<(usize, Vec<ObjectKey>)>>);

impl Reported {
    /// The number of unreadable objects, and the number of reports.
    fn counts(&self) -> (usize, usize) {
        let collected = self.0.lock();
        (collected.0, collected.1.len())
    }

    /// The number of reports about objects of `namespace`; the empty name stands for cluster-scoped objects.
    fn of(&self, namespace: &str) -> usize {
        let collected = self.0.lock();
        let keys = collected.1.iter();
        keys.filter(|key| key.namespace.as_deref().unwrap_or_default() == namespace)
            .count()
    }
}

impl Report for Reported {
    fn unreadable(&self, served: &Served, object: &Identity, why: &str) {
        assert_eq!(
            (&*served.kind, why.is_empty()),
            ("Website", false),
            "{object:?}"
        );
        self.0.lock().1.push(object.key.clone());
    }

    fn count(&self, before: usize, after: usize) {
        let mut counts = self.0.lock();
        counts.0 = counts.0 + after - before;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_is_followed_by_those_that_can() {
    let server = Server::new();
    let (_informers, handle, feed, changes) = websites(&server).await;
    feed.send("MODIFIED", &object("a", 30, &deep(9_999)));
    feed.send("MODIFIED", &object("b", 31, r#","spec":{"size":7}"#));
    settle().await;
    assert_eq!(
        take(&changes),
        [("a".to_owned(), true, true), ("b".to_owned(), true, true)]
    );
    assert_eq!(
        (unread(&handle, "a"), unread(&handle, "b")),
        (Some(Cause::TooDeep), None)
    );
    assert_eq!(version(&handle, "a"), "30");
    // The object is decoded again when it changes.
    feed.send("MODIFIED", &object("a", 32, r#","spec":{"size":7}"#));
    settle().await;
    assert_eq!(
        (unread(&handle, "a"), take(&changes)),
        (None, reported_of("a", true, true))
    );
    feed.send("MODIFIED", &object("a", 33, &deep(200)));
    feed.send("DELETED", &object("a", 34, &deep(200)));
    settle().await;
    assert_eq!(
        (names(&handle), server.times(false).len()),
        (vec!["b".to_owned()], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_with_objects_that_cannot_be_read_is_complete() {
    let server = Server::new();
    let number = r#","spec":{"size":1e400}"#;
    let items = [
        object("a", 10, &deep(300)),
        object("b", 11, ""),
        object("c", 12, number),
    ];
    server.answer(200, list(20, "", &items));
    let reported = Reported::default();
    let reports = Reports::new(reported.clone());
    let informers = informers(&server).reporting(reports);
    let handle = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), None);
    handle.synced().await;
    assert_eq!(names(&handle), ["a", "b", "c"]);
    let unread = ["a", "b", "c"].map(|name| unread(&handle, name));
    assert_eq!(unread, [Some(Cause::TooDeep), None, Some(Cause::Number)]);
    assert_eq!(reported.counts(), (2, 2));
    drop(handle);
    drop(informers);
    settle().await;
    assert_eq!(reported.counts(), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_hides_no_other_and_takes_none_for_gone() {
    let server = Server::new();
    let (informers, handle, feed, _changes) = websites(&server).await;
    let nameless = r#"{"metadata":{"name":"\ud800","uid":"u","resourceVersion":"30"}}"#.to_owned();
    feed.send("ADDED", &nameless);
    feed.send("ADDED", &object("c", 31, ""));
    settle().await;
    assert_eq!(names(&handle), ["a", "b", "c"]);
    server.answer(200, list(50, "", &[nameless, object("d", 40, "")]));
    feed.send("ERROR", &status(410, "Expired", "too old resource version"));
    sleep(Duration::from_secs(2)).await;
    // The nameless object may be any of those that are missing from the list, so none is removed.
    assert_eq!(names(&handle), ["a", "b", "c", "d"]);
    assert_eq!(informers.stats()[0].unreadable, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_leads_to_a_list_and_not_to_the_same_line_for_ever() {
    let server = Server::new();
    let (_informers, handle, feed, _changes) = websites(&server).await;
    server.answer(200, list(50, "", &[object("c", 40, "")]));
    feed.send_raw("garbage\n");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        (names(&handle), state(&handle)),
        (vec!["c".to_owned()], WatchState::Synced)
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_is_reported_once_a_state_and_not_all_the_time() {
    let server = Server::new();
    let reported = Reported::default();
    let reports = Reports::new(reported.clone());
    server.answer(200, list(20, "", &[object("a", 10, &deep(300))]));
    let feed = server.watch();
    let informers = informers(&server).reporting(reports);
    let handle = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), None);
    handle.synced().await;
    for version in 21..121 {
        feed.send("MODIFIED", &object("a", version, &deep(300)));
    }
    settle().await;
    assert_eq!(reported.counts(), (1, 1));
    sleep(Duration::from_mins(1)).await;
    feed.send("MODIFIED", &object("a", 130, &deep(300)));
    settle().await;
    assert_eq!(reported.counts(), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_is_about_its_object_alone() {
    let server = Server::new();
    let text = object("a", 30, &deep(300));
    server.answer(200, text.clone());
    let (cluster, kind) = (server.cluster(), watched().served);
    let error = cluster.get(&kind, &key("a")).await.unwrap_err();
    assert!(
        matches!(&error, ClusterError::Unreadable(why) if why.contains("spec")),
        "{error}"
    );
    let answer = cluster.in_part().get(&kind, &key("a")).await.unwrap();
    assert!(answer.get("spec").is_some());
    // The record of a response that was read in part states why the rest is unreadable.
    let (_informers, handle, _feed, _changes) = websites(&Server::new()).await;
    let record = handle.store().answer(&answer).unwrap();
    assert_eq!(record.unread.as_ref().unwrap().cause, Cause::TooDeep);
    server.answer(200, list(50, "", &[text, object("b", 31, "")]));
    let page = cluster
        .list_page(&kind, &Scope::default(), 0, PageOf::default().next)
        .await
        .unwrap();
    assert_eq!(page.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn objects_beyond_the_most_reports_of_a_minute_are_reported_later_without_an_event() {
    let server = Server::new();
    let reported = Reported::default();
    let names: Vec<String> = (0..25).map(|number| format!("w{number}")).collect();
    let objects: Vec<String> = names
        .iter()
        .map(|one| object(one, 10, &deep(300)))
        .collect();
    server.answer(200, list(20, "", &objects));
    let feed = server.watch();
    let informers = informers(&server).reporting(Reports::new(reported.clone()));
    let handle = informers.shared::<CrRecord>(watched(), &paths(&["spec.size"]), None);
    handle.synced().await;
    assert_eq!(reported.counts(), (25, MOST_OF_NAMESPACE));
    // One object becomes readable, and one is deleted.
    feed.send("MODIFIED", &object("w24", 30, ""));
    feed.send("DELETED", &object("w23", 31, &deep(300)));
    for expected in [20, 23, 23] {
        sleep(Duration::from_secs(61)).await;
        assert_eq!(reported.counts(), (23, expected));
    }
}

/// Adds an unreadable object.
fn add(unread: &Unread, namespace: &str, name: &str) {
    let key = ObjectKey {
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: name.into(),
    };
    let id = Identity {
        key,
        uid: "u".into(),
        resource_version: "1".into(),
    };
    unread.add(&id, "too deep");
}

#[tokio::test(start_paused = true)]
async fn namespaces_share_the_reports_and_a_cluster_scoped_kind_has_all_of_them() {
    let reported = Reported::default();
    let unread = || Unread::new(watched().served, Reports::new(reported.clone()));
    let (shared, whole) = (unread(), unread());
    for number in 0..100 {
        for namespace in ["a", "b", "c", "d"] {
            add(&shared, namespace, &number.to_string());
        }
    }
    assert_eq!(reported.counts().1, MOST_REPORTS);
    // A namespace without reports so far is reported before the others are reported again.
    add(&shared, "z", "one");
    add(&shared, "z", "one");
    tokio::time::advance(Duration::from_mins(1)).await;
    let next = shared.report_waiting();
    assert_eq!(
        next,
        Some(tokio::time::Instant::now() + Duration::from_mins(1))
    );
    assert_eq!(reported.counts().1, 2 * MOST_REPORTS);
    assert_eq!(reported.of("z"), 1);
    assert_eq!((reported.of("a"), reported.of("d")), (16, 14));
    for number in 0..100 {
        add(&whole, "", &number.to_string());
    }
    assert_eq!(reported.of(""), MOST_REPORTS);
}
