//! Functions that wait for a condition with a deadline, in place of fixed sleeps.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};

/// The time between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `check` until it returns a value, for at most `limit`.
///
/// `Ok(None)` and `Err` both mean "not yet". The error at the deadline starts with `what`, a description of the condition, and
/// contains the last error. The time is that of the real clock, even if tokio's clock is paused.
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

/// Creates a namespace for one test. Its name is `prefix`, a hyphen and five characters that make it unique.
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

/// Runs the future that `make` returns, on a thread with its own runtime, so that the caller may be inside or outside a runtime.
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
