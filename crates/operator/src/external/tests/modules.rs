//! Calls of WebAssembly modules: what a broken one costs, and what its neighbours notice.

use std::{sync::Arc, time::Duration};

use orkestra_engine::reconcile::calls::{CallAnswer, CallRequest, CallTarget};
use orkestra_wasm::Module;
use tokio::time::Instant;

use super::{failure_of, get};
use crate::external::Client;

fn calling(module: &[u8]) -> CallRequest {
    CallRequest {
        target: CallTarget::Module(Some(Module::load(module.into()).unwrap())),
        body: "{}".into(),
        timeout: Duration::from_secs(30),
        ..get("")
    }
}

async fn called(request: &CallRequest) -> CallAnswer {
    Client::closed().call(request).await
}

#[tokio::test]
async fn a_module_answers_and_needs_no_permitted_host() {
    let module = orkestra_testkit::hook_module(r#"{"data": 1}"#);
    let answer = called(&calling(&module)).await;
    assert_eq!(
        (answer.status, &*answer.body, &answer.error),
        (Some(200), r#"{"data": 1}"#, &None)
    );
    let unknown = CallRequest {
        target: CallTarget::Module(None),
        ..calling(&module)
    };
    let answer = called(&unknown).await;
    assert!(
        failure_of(&answer).contains("name its `file`"),
        "{answer:?}"
    );
    assert!(answer.error.unwrap().permanent);
}

const ENDLESS: &str = r#"(func (export "_start") (loop $l (br $l)))"#;

#[tokio::test]
async fn a_failure_of_a_module_is_permanent_and_kept_and_a_timeout_is_neither() {
    let broken =
        orkestra_testkit::hook_program(r#"(func (export "_start") (call $exit (i32.const 3)))"#);
    let answer = called(&calling(&broken)).await;
    let error = answer.error.unwrap();
    assert_eq!(&*error.message, "it exited with status 3");
    assert!(error.permanent && error.retry_after.is_some());

    let endless = CallRequest {
        timeout: Duration::from_millis(200),
        ..calling(&orkestra_testkit::hook_program(ENDLESS))
    };
    let began = Instant::now();
    let error = called(&endless).await.error.unwrap();
    assert_eq!(&*error.message, "its module did not end within 0.2 s");
    assert!(!error.permanent && error.retry_after.is_none());
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn endless_modules_leave_turns_to_others() {
    let client = Client::closed();
    let endless = Arc::new(calling(&orkestra_testkit::hook_program(ENDLESS)));
    let mut hogs = tokio::task::JoinSet::new();
    for number in 0..20 {
        let of_hog = client
            .of_operator("hogs")
            .in_namespace(Some(&format!("n{}", number % 3)));
        let endless = Arc::clone(&endless);
        hogs.spawn(async move { of_hog.call(&endless).await });
    }
    tokio::task::yield_now().await;
    let quick = calling(&orkestra_testkit::hook_module("{}"));
    for number in 0..5 {
        let neighbour = client.of_operator("quick").in_namespace(Some("shop"));
        let answer = neighbour.call(&quick).await;
        assert_eq!(answer.error, None, "call {number}");
    }
    // They were still running while the neighbour was answered, and end when nobody waits for them.
    assert!(hogs.try_join_next().is_none(), "an endless module ended");
    hogs.shutdown().await;
    assert_eq!(client.of_operator("late").call(&quick).await.error, None);
}
