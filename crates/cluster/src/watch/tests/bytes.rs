//! Decoding of watch events, and the memory that records take.

use orkestra_object::value::Cause;

use super::{super::store::Records, *};

#[tokio::test(start_paused = true)]
async fn an_event_is_read_however_it_is_parted() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let one = event(
        "MODIFIED",
        &object("a", 30, r#","spec":{"size":5,"text":"\n\"}{"}"#),
    );
    for part in one.as_bytes().chunks(7) {
        feed.send_raw(std::str::from_utf8(part).unwrap());
        settle().await;
    }
    assert_eq!(take(&reported), reported_of("a", true, true));
    let both =
        event("ADDED", &object("c", 31, "")) + "\n" + &event("DELETED", &object("b", 32, ""));
    let (front, back) = both.split_at(both.len() - 3);
    feed.send_raw(front);
    settle().await;
    assert_eq!(take(&reported), reported_of("c", false, true));
    feed.send_raw(back);
    settle().await;
    assert_eq!(take(&reported), reported_of("b", true, false));
    assert_eq!(names(&handle), ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn the_order_of_an_event_s_fields_means_nothing() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    let object = object("c", 31, r#","spec":{"size":5}"#);
    feed.send_raw(&format!("{{\"object\":{object},\"type\":\"ADDED\"}}\n"));
    settle().await;
    assert_eq!(take(&reported), reported_of("c", false, true));
    server.answer(200, list(50, "", &[]));
    let gone = status(410, "Expired", "too old resource version");
    feed.send_raw(&format!("{{\"object\":{gone},\"type\":\"ERROR\"}}\n"));
    sleep(Duration::from_secs(2)).await;
    assert!(names(&handle).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_type_is_passed_over() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send("RENAMED", &object("a", 30, ""));
    feed.send("ADDED", &object("c", 31, ""));
    settle().await;
    assert_eq!(take(&reported), reported_of("c", false, true));
    assert_eq!(version(&handle, "a"), "10");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_in_an_event_is_taken_up_in_front_of_it() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    feed.send("MODIFIED", &object("a", 30, r#","spec":{"size":5}"#));
    let next = server.watch();
    feed.send_raw(r#"{"type":"MODIFIED","object":{"metadata":{"name":"b","#);
    settle().await;
    drop(feed);
    sleep(Duration::from_secs(1)).await;
    assert!(server.requests()[2].uri.contains("resourceVersion=30&"));
    assert_eq!(
        (take(&reported).len(), state(&handle)),
        (1, WatchState::Synced)
    );
    next.send("MODIFIED", &object("b", 31, r#","spec":{"size":6}"#));
    settle().await;
    assert_eq!(take(&reported), reported_of("b", true, true));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_is_one_unreadable_object_and_not_memory() {
    let server = Server::new();
    let (informers, handle, feed, reported) = websites(&server).await;
    let part = "x".repeat(1 << 20);
    let start = object("c", 30, r#","spec":{"size":""#);
    feed.send_raw(&format!(
        "{{\"type\":\"ADDED\",\"object\":{}",
        start.trim_end_matches('}')
    ));
    for _ in 0..20 {
        feed.send_raw(&part);
    }
    settle().await;
    feed.send_raw("\"}}}\n");
    feed.send("ADDED", &object("d", 31, ""));
    settle().await;
    assert!(!feed.is_deserted());
    assert_eq!(take(&reported).len(), 2);
    let record = handle.store().get(&key("c")).unwrap();
    assert_eq!(record.unread.as_ref().unwrap().cause, Cause::TooLarge);
    assert!(handle.store().get(&key("d")).unwrap().unread.is_none());
    assert_eq!(informers.stats()[0].unreadable, 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_its_version_last_or_first() {
    let server = Server::new();
    let items = [object("a", 10, ""), object("b", 11, "")].join(",");
    server.answer(
        200,
        format!(r#"{{"items":[{items}],"metadata":{{"resourceVersion":"20"}}}}"#),
    );
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    assert_eq!(names(&handle), ["a", "b"]);
    assert!(server.requests()[1].uri.contains("resourceVersion=20&"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_is_read_again() {
    let server = Server::new();
    let whole = list(20, "", &[object("a", 10, ""), object("b", 11, "")]);
    server.answer(200, &whole[..whole.len() - 30]);
    server.answer(200, whole);
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    assert_eq!((names(&handle).len(), server.times(false).len()), (2, 2));
}

fn child_record(name: &str, version: u64, size: u64) -> ChildRecord {
    let spec = Spec::new(GroupKind::parse("ConfigMap"), &paths(&["spec"]));
    let text = object(
        name,
        version,
        &format!(r#","spec":{{"size":{size},"text":"{}"}}"#, "x".repeat(500)),
    );
    <ChildRecord as Record>::read(&node(&text), &spec).unwrap()
}

#[test]
fn a_relist_replaces_records_one_by_one_and_never_holds_two_of_each() {
    let mut records: Records<ChildRecord> = Records::new();
    records.list_begin("1000".into());
    for n in 0..1000 {
        records.list_put(child_record(&format!("child-{n:04}"), n, 1));
    }
    records.list_end();
    let before = records.bytes();
    let one = before / records.len();
    records.list_begin("3000".into());
    let mut most = 0;
    // Each object has changed, a hundred are deleted, and a hundred are new.
    for n in 100..1100 {
        records.list_put(child_record(&format!("child-{n:04}"), 1000 + n, 2));
        most = most.max(records.bytes());
    }
    records.list_end();
    assert_eq!(records.bytes(), before);
    assert!(most <= before + 100 * one, "{most} of {before}");
}

#[test]
fn what_is_counted_as_held_goes_with_the_records() {
    let mut records: Records<ChildRecord> = Records::new();
    records.put(child_record("a", 1, 1));
    let small = records.bytes();
    records.put(child_record("b", 2, 1));
    assert_eq!(records.bytes(), 2 * small);
    let record = child_record("b", 3, 1);
    let id = record.id.clone();
    records.put(record);
    assert_eq!(records.bytes(), 2 * small);
    records.delete(&id);
    assert_eq!(records.bytes(), small);
}

#[tokio::test(start_paused = true)]
async fn what_two_share_is_held_for_the_one_that_came_first() {
    let server = Server::new();
    let (informers, handle, _feed, _reported) = websites(&server).await;
    let other = informers.shared::<CrRecord>(watched(), &[], None);
    assert_eq!(
        (handle.store().held().records, other.store().held()),
        (2, MemoryUse::default())
    );
    drop(handle);
    assert_eq!(other.store().held().records, 2);
    assert!(other.store().held().bytes > 0);
}
