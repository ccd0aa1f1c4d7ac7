//! Free ports for servers that need a port number as an argument.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// The first port of the range. The range is below those from which Linux (32768) and macOS (49152) take the local port of an
/// outgoing connection, so that a server that is stopped for a moment can bind its port again. It is above the fixed ports in the
/// documents, whose commands the tests run.
const FIRST: u64 = 20_000;
const COUNT: u64 = 10_000;

/// Returns a loopback port that was free at the time of the call.
///
/// Another process may take the port before the server does. The caller must then ask for another port.
pub fn free_port() -> Result<u16> {
    for attempt in 0..200_u32 {
        // Each new `RandomState` has a random key, which is a sufficient source of random numbers here.
        let offset = RandomState::new().hash_one(attempt) % COUNT;
        let port = u16::try_from(FIRST + offset)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free loopback port found in {FIRST}..{}", FIRST + COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_and_out_of_the_way_of_outgoing_connections() {
        let port = free_port().expect("a free port");
        assert!((20_000..30_000).contains(&port));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    }
}
