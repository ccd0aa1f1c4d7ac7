//! A line that says what a command waits for, on a terminal alone.

use std::{future::Future, pin::pin, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// How long a command may take before it says so.
const DELAY: Duration = Duration::from_secs(1);
/// How often the line moves.
const TICK: Duration = Duration::from_millis(100);

/// Does `work`. If it takes longer than a second, a line says `what` is being done until it ends; only on a terminal.
pub(in crate::cli) async fn progress<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(DELAY) => {}
    }
    // It is hidden where stderr is no terminal.
    let line = ProgressBar::no_length().with_style(ProgressStyle::default_spinner());
    line.set_message(what);
    line.enable_steady_tick(TICK);
    let done = work.await;
    line.finish_and_clear();
    done
}
