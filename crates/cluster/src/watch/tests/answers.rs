//! Responses to the process's own writes, and watch events that arrive before or after them.

use super::*;

fn sized(name: &str, version: u64, size: u8) -> String {
    object(name, version, &format!(r#","spec":{{"size":{size}}}"#))
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_seen_at_once_and_its_echo_wakes_nobody() {
    let server = Server::new();
    let (informers, handle, feed, reported) = websites(&server).await;
    let (others_reported, subscriber) = notebook();
    let _other = informers.shared::<CrRecord>(watched(), &[], subscriber);
    let record = handle.store().answer(&node(&sized("a", 30, 7))).unwrap();
    assert_eq!(
        (
            record.id.resource_version.to_string(),
            version(&handle, "a")
        ),
        ("30".to_owned(), "30".to_owned())
    );
    // The subscriber that wrote is not notified; others are.
    assert_eq!(
        (take(&reported), take(&others_reported)),
        (vec![], reported_of("a", true, true))
    );
    feed.send("MODIFIED", &sized("a", 30, 7));
    settle().await;
    assert_eq!((take(&reported), take(&others_reported)), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_older_answer_changes_nothing() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send("MODIFIED", &sized("a", 40, 7));
    settle().await;
    take(&reported);
    let record = handle.store().answer(&node(&sized("a", 30, 3))).unwrap();
    assert_eq!(record.id.resource_version, *"40");
    assert_eq!(take(&reported), []);
}

#[tokio::test(start_paused = true)]
async fn several_answers_in_a_row_are_all_echoed_in_silence() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    for version in [30, 31, 32] {
        handle.store().answer(&node(&sized("a", version, 7)));
    }
    for version in [30, 31, 32] {
        feed.send("MODIFIED", &sized("a", version, 7));
    }
    settle().await;
    assert_eq!(take(&reported), []);
    assert_eq!(version(&handle, "a"), "32");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_somebody_else_that_our_answer_overtook_is_reported() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    // Another client writes version 30, this process writes 31 after it, and its response arrives before the event of 30.
    handle.store().answer(&node(&sized("a", 31, 7)));
    feed.send("MODIFIED", &sized("a", 30, 6));
    feed.send("MODIFIED", &sized("a", 31, 7));
    settle().await;
    assert_eq!(take(&reported), reported_of("a", true, true));
    assert_eq!(version(&handle, "a"), "31");
}

#[tokio::test(start_paused = true)]
async fn an_overtaken_change_is_reported_even_when_the_watch_never_shows_it() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    handle.store().answer(&node(&sized("a", 31, 7)));
    server.answer(200, list(50, "", &[sized("a", 31, 7), sized("b", 11, 2)]));
    feed.send("ERROR", &status(410, "Expired", "too old resource version"));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(take(&reported), reported_of("a", true, true));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_deletion_brings_nothing_back() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send("DELETED", &object("a", 31, ""));
    settle().await;
    take(&reported);
    assert!(handle.store().answer(&node(&sized("a", 30, 7))).is_none());
    assert_eq!(names(&handle), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn what_we_made_survives_a_list_that_is_older_and_not_one_that_is_newer() {
    for (list_version, survives) in [(25, true), (90, false)] {
        let server = Server::new();
        let (_informers, handle, feed, _reported) = websites(&server).await;
        handle.store().answer(&node(&sized("made", 30, 7)));
        assert!(names(&handle).contains(&"made".to_owned()));
        server.answer(200, list(list_version, "", &[sized("a", 10, 1)]));
        feed.send("ERROR", &status(410, "Expired", "too old resource version"));
        sleep(Duration::from_secs(2)).await;
        assert_eq!(
            names(&handle).contains(&"made".to_owned()),
            survives,
            "{list_version}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_does_not_take_the_successor_along() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    let successor = sized("a", 40, 1).replace("uid-a", "uid-new");
    handle.store().answer(&node(&successor));
    feed.send("DELETED", &object("a", 35, ""));
    settle().await;
    assert_eq!(handle.store().get(&key("a")).unwrap().id.uid, *"uid-new");
    handle.store().gone(&key("a"), &"uid-a".into());
    assert!(handle.store().get(&key("a")).is_some());
    handle.store().gone(&key("a"), &"uid-new".into());
    assert!(handle.store().get(&key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_another_namespace_is_not_ours_to_keep() {
    let server = Server::new();
    server.answer(200, list(20, "", &[]));
    let scope = Scope {
        namespace: Some("garden".to_owned()),
        selector: None,
        fields: None,
    };
    let handle = informers(&server).shared::<CrRecord>(Watched { scope, ..watched() }, &[], None);
    handle.synced().await;
    assert!(handle.store().answer(&node(&sized("a", 30, 7))).is_none());
    assert!(handle.store().is_empty());
    assert_eq!(
        server.requests()[0].uri,
        "/apis/shop.example/v1/namespaces/garden/websites?limit=500"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expected_change_is_reported_though_the_record_does_not_differ() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    let same = |version: u64| object("a", version, r#","spec":{"size":1,"other":2}"#);
    handle.store().expect(&key("a"), &"10".into());
    feed.send("MODIFIED", &same(30));
    settle().await;
    assert_eq!(take(&reported), reported_of("a", true, true));
    // Once: the next change is not expected.
    feed.send("MODIFIED", &same(31));
    settle().await;
    assert_eq!(take(&reported), []);
    // A state that came between the decision and the expectation is reported at once.
    handle.store().expect(&key("a"), &"30".into());
    assert_eq!(take(&reported), reported_of("a", true, true));
    // A state that is already known to the caller is not, nor is the caller's own write; nothing is expected of an unknown object.
    handle.store().expect(&key("a"), &"33".into());
    handle.store().expect(&key("unknown"), &"1".into());
    feed.send("MODIFIED", &same(32));
    feed.send("MODIFIED", &same(33));
    settle().await;
    assert_eq!(take(&reported), []);
    handle.store().answer(&node(&same(34)));
    feed.send("MODIFIED", &same(34));
    feed.send("MODIFIED", &same(35));
    settle().await;
    assert_eq!(take(&reported), []);
}
