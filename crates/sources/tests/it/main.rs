//! Sources from servers on the loopback interface: correct servers, Git's own server, and hostile servers.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of test functions"
)]
#![allow(clippy::format_collect, reason = "the texts of tests are short")]

mod charts;
mod files;
mod hostile;
mod hostile_git;
mod keyless;
mod repositories;
mod repository;
mod repository_names;
mod server;
mod signatures;

use std::time::Duration;

use orkestra_egress::{Guard, Resolver};
use orkestra_sources::{Fetcher, Limits, Options};

/// Returns a fetcher that may connect to loopback addresses, with a resolver without names and with short time limits.
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

/// Returns limits under which a request to a server that does not answer ends soon.
fn short() -> Limits {
    Limits {
        patience: Duration::from_secs(5),
        slowest: 100 << 20,
        ..Limits::default()
    }
}
