//! Waiting for watched values.

use std::future::{Future, pending};

use futures::future::select_all;
use tokio::sync::watch;

/// Returns at a change that was not seen yet. If the sender is dropped, it never returns.
pub async fn change<T>(value: &mut watch::Receiver<T>) {
    if value.changed().await.is_err() {
        pending::<()>().await;
    }
}

/// Returns when the first future completes; never if there are none.
pub async fn first<F: Future<Output = ()>>(all: impl IntoIterator<Item = F>) {
    let all: Vec<_> = all.into_iter().map(Box::pin).collect();
    if all.is_empty() {
        pending::<()>().await;
    }
    select_all(all).await;
}
