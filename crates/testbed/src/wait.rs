//! Waiting for a cluster: conditions with deadlines, never a sleep that hopes.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks `check` until it hands back a value, for `limit` at most.
///
/// `Ok(None)` and `Err` both mean "not yet"; the last error is part of the failure, which starts with `what`: what was waited
/// for, in words. Time is the real clock, also where tokio's is paused.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut check: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        let last = match check().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if Instant::now() >= deadline {
            return Err(match last {
                Some(error) => error.context(format!("{what}: not within {limit:?}")),
                None => anyhow!("{what}: not within {limit:?}"),
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Creates a namespace for one test: its name is `prefix`, a hyphen and five characters that make it unique.
pub async fn namespace(client: &kube::Client, prefix: &str) -> Result<String> {
    let wanted = Namespace {
        metadata: ObjectMeta {
            generate_name: Some(format!("{prefix}-")),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let created = Api::all(client.clone())
        .create(&PostParams::default(), &wanted)
        .await?;
    created
        .metadata
        .name
        .ok_or_else(|| anyhow!("the API server named no namespace"))
}

/// Runs the future that `make` makes to its end on a thread and a runtime of its own, so that it works whether or not the caller is in a runtime.
pub(crate) fn block_on<T: Send, F: Future<Output = Result<T>>>(
    make: impl FnOnce() -> F + Send,
) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(make())
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
