//! `ork`: parses arguments and returns an exit code.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // One provider for every TLS connection; with two in the dependency tree a client would panic at its first connection. An
    // error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    orkestra::cli::main()
}
