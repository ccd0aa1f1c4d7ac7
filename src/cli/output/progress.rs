//! A progress line that says what a command waits for; only on a terminal.

use std::{future::Future, pin::pin, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// The delay before the progress line appears.
const DELAY: Duration = Duration::from_secs(1);
/// The interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`. If it takes longer than a second, a line shows `what` until it ends; only on a terminal.
pub(crate) async fn progress<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(DELAY) => {}
    }
    // The line is hidden if stderr is not a terminal.
    let line = ProgressBar::no_length().with_style(ProgressStyle::default_spinner());
    line.set_message(what);
    line.enable_steady_tick(TICK);
    let done = work.await;
    line.finish_and_clear();
    done
}
