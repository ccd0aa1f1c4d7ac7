//! Watches that fail, and their recovery.

use super::*;

fn secs(times: &[Duration]) -> Vec<u64> {
    times.iter().map(Duration::as_secs).collect()
}

fn problem<R: Record>(handle: &Handle<R>) -> Option<(WatchProblem, bool)> {
    match state(handle) {
        WatchState::Failing {
            problem,
            was_synced,
        } => Some((problem, was_synced)),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_too_old_lists_again_and_what_is_missing_vanishes() {
    for by_event in [false, true] {
        let server = Server::new();
        let (_informers, handle, feed, reported) = websites(&server).await;
        server.answer(
            200,
            list(
                50,
                "",
                &[
                    object("b", 11, r#","spec":{"size":2}"#),
                    object("c", 40, ""),
                ],
            ),
        );
        if by_event {
            feed.send("ERROR", &status(410, "Expired", "too old resource version"));
        } else {
            server.refuse_watch(410, status(410, "Gone", "too old resource version"));
            drop(feed);
        }
        sleep(Duration::from_secs(2)).await;
        assert_eq!(names(&handle), ["b", "c"], "{by_event}");
        let mut reported = take(&reported);
        reported.sort();
        assert_eq!(
            reported,
            [("a".to_owned(), true, false), ("c".to_owned(), false, true)]
        );
        assert_eq!(state(&handle), WatchState::Synced);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_old_begins_the_list_again() {
    let server = Server::new();
    server.answer(200, list(20, "more", &[object("a", 10, "")]));
    server.answer(410, status(410, "Expired", "the continue token is too old"));
    server.answer(200, list(30, "", &[object("b", 11, "")]));
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    handle.synced().await;
    assert_eq!(names(&handle), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_taken_up_where_it_broke() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    let next = server.watch();
    feed.send("MODIFIED", &object("a", 30, r#","spec":{"size":5}"#));
    settle().await;
    feed.break_off();
    settle().await;
    assert_eq!(state(&handle), WatchState::Synced);
    sleep(Duration::from_secs(1)).await;
    assert!(server.requests()[2].uri.contains("resourceVersion=30&"));
    next.send("MODIFIED", &object("a", 30, r#","spec":{"size":5}"#));
    settle().await;
    assert_eq!(take(&reported).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn errors_back_off_to_ten_seconds_with_jitter() {
    let server = Server::new();
    server.answer(503, status(503, "ServiceUnavailable", "etcd is away"));
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_secs(100)).await;
    let (WatchProblem::Unavailable { message, .. }, false) = problem(&handle).unwrap() else {
        panic!()
    };
    assert!(message.contains("etcd is away"), "{message}");
    let times = server.times(false);
    let waits: Vec<f64> = times
        .windows(2)
        .map(|pair| pair[1].as_secs_f64() - pair[0].as_secs_f64())
        .collect();
    assert!(
        waits[0] <= 0.21 && waits.iter().all(|wait| *wait <= 10.1),
        "{waits:?}"
    );
    assert!(waits.last().unwrap() >= &5.0, "{waits:?}");
    server.answer(200, list(20, "", &[]));
    handle.synced().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_tried_every_half_minute() {
    let server = Server::new();
    let refusal = "websites is forbidden: User ork cannot list resource websites";
    server.answer(403, status(403, "Forbidden", refusal));
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_secs(100)).await;
    assert_eq!(
        problem(&handle),
        Some((
            WatchProblem::Forbidden {
                message: refusal.to_owned()
            },
            false
        ))
    );
    let waits: Vec<u64> = secs(&server.times(false))
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    assert!(
        waits.len() == 3 && waits.iter().all(|wait| (30..=33).contains(wait)),
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_tried_at_once_when_poked() {
    let server = Server::new();
    server.answer(404, "404 page not found");
    let informers = informers(&server);
    let handle = informers.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_secs(200)).await;
    assert_eq!(problem(&handle), Some((WatchProblem::NotServed, false)));
    let tries = server.times(false);
    let waits: Vec<f64> = tries
        .windows(2)
        .map(|pair| pair[1].as_secs_f64() - pair[0].as_secs_f64())
        .collect();
    assert!(
        waits.iter().all(|wait| (1.0..=30.1).contains(wait)) && waits.last().unwrap() >= &15.0,
        "{waits:?}"
    );
    server.answer(200, list(20, "", &[object("a", 10, "")]));
    handle.poke();
    settle().await;
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_taken_away_keeps_its_records_and_is_listed_when_it_is_back() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    server.refuse_watch(404, "404 page not found");
    feed.send("BOOKMARK", &bookmark(21));
    drop(feed);
    settle().await;
    assert_eq!(problem(&handle), Some((WatchProblem::NotServed, true)));
    assert_eq!(names(&handle).len(), 2);
    server.answer(200, list(90, "", &[]));
    sleep(Duration::from_secs(40)).await;
    assert_eq!(
        (state(&handle), names(&handle).len()),
        (WatchState::Synced, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_died_silently_does_not_hang_the_watch() {
    let server = Server::new();
    let (_informers, handle, _feed, reported) = websites(&server).await;
    let next = server.watch();
    sleep(Duration::from_secs(312)).await;
    assert_eq!(server.times(true).len(), 2);
    next.send("ADDED", &object("c", 21, ""));
    settle().await;
    assert_eq!(take(&reported), reported_of("c", false, true));
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_no_hot_loop() {
    let server = Server::new();
    let (_informers, _handle, feed, _reported) = websites(&server).await;
    drop(feed);
    for _ in 0..1000 {
        drop(server.watch());
    }
    sleep(Duration::from_mins(1)).await;
    assert!(
        server.times(true).len() < 25,
        "{}",
        server.times(true).len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_accepted_and_refused_at_once_is_not_called_synced() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    for _ in 0..5 {
        server.watch().send(
            "ERROR",
            &status(500, "InternalError", "etcdserver: no leader"),
        );
    }
    sleep(Duration::from_secs(2)).await;
    drop(feed);
    sleep(Duration::from_millis(100)).await;
    let (WatchProblem::Unavailable { message, .. }, true) = problem(&handle).unwrap() else {
        panic!()
    };
    assert!(message.contains("no leader"), "{message}");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_stays_unavailable_for_a_minute_is_reported_as_such_until_it_is_back() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    for _ in 0..100 {
        server.refuse_watch(503, status(503, "ServiceUnavailable", "no endpoints"));
    }
    drop(feed);
    let is_lasting = || match problem(&handle) {
        Some((WatchProblem::Unavailable { is_lasting, .. }, true)) => is_lasting,
        _ => panic!("{:?}", state(&handle)),
    };
    sleep(Duration::from_secs(45)).await;
    assert!(!is_lasting());
    sleep(Duration::from_mins(1)).await;
    assert!(is_lasting());
    server.forget_watches();
    sleep(Duration::from_mins(1)).await;
    assert_eq!(state(&handle), WatchState::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_old_at_once_is_no_hot_loop() {
    let server = Server::new();
    let (_informers, _handle, feed, _reported) = websites(&server).await;
    for _ in 0..1000 {
        server.refuse_watch(410, status(410, "Gone", "too old resource version"));
    }
    drop(feed);
    sleep(Duration::from_mins(1)).await;
    assert!(
        server.times(false).len() < 25,
        "{}",
        server.times(false).len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_gets_it() {
    let server = Server::new();
    server.answer(429, r#"{"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#);
    let informers = informers(&server);
    let _handle = informers.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(secs(&server.times(false)), [0, 7, 14]);
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_from_a_backup_is_believed() {
    let server = Server::new();
    let (_informers, handle, feed, _reported) = websites(&server).await;
    feed.send("MODIFIED", &object("a", 500, r#","spec":{"size":9}"#));
    settle().await;
    server.answer(
        200,
        list(100, "", &[object("a", 60, r#","spec":{"size":3}"#)]),
    );
    feed.send("ERROR", &status(410, "Expired", "too old resource version"));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        (names(&handle), version(&handle, "a")),
        (vec!["a".to_owned()], "60".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn one_kind_in_trouble_leaves_the_others_alone() {
    let server = Server::new();
    let (_informers, handle, feed, reported) = websites(&server).await;
    let bad = Server::new();
    bad.answer(500, "no");
    let others = informers(&bad);
    let failing = others.shared::<CrRecord>(watched(), &[], None);
    sleep(Duration::from_secs(30)).await;
    feed.send("ADDED", &object("c", 21, ""));
    settle().await;
    assert_eq!(take(&reported).len(), 1);
    assert!(problem(&failing).is_some() && problem(&handle).is_none());
}
