//! Sources against servers on the loopback interface: well-behaved ones, Git's own, and hostile ones.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]
#![allow(clippy::format_collect, reason = "the texts of tests are short")]

mod charts;
mod files;
mod hostile;
mod keyless;
mod repositories;
mod server;
mod signatures;

use std::time::Duration;

use orkestra_guard::{Guard, Resolver};
use orkestra_sources::{Fetcher, Limits, Options};

/// A fetcher that may call loopback addresses, with a resolver that knows no names and short limits of time.
fn fetcher(change: impl FnOnce(&mut Options)) -> Fetcher {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut options = Options::new(Guard::at_desk(Vec::new()));
    options.resolver = Resolver::new(|_| Box::pin(async { Ok(Vec::new()) }));
    options.limits = Limits {
        patience: Duration::from_secs(5),
        ..Limits::default()
    };
    change(&mut options);
    Fetcher::new(options)
}

/// Limits under which a server that does not answer is given up soon.
fn short() -> Limits {
    Limits {
        patience: Duration::from_secs(5),
        slowest: 100 << 20,
        ..Limits::default()
    }
}
