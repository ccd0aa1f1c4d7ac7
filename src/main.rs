//! `ork`: arguments in, exit code out.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // One provider for every TLS connection; with two in the tree a client would panic at its first one.
    // An error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    orkestra::cli::main()
}
