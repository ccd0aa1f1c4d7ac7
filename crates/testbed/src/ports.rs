//! Ports for servers that must be told one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// Ports below the ranges from which Linux (32768) and macOS (49152) take the local port of an outgoing connection, so that a
/// server that is stopped for a moment finds its port free when it comes back; and above the fixed ports in the documents, whose
/// commands the tests run.
const FIRST: u64 = 20_000;
const COUNT: u64 = 10_000;

/// A loopback port that nobody listened on a moment ago.
///
/// Another process may take it before the server does: whoever starts one asks for another port when that happens.
pub fn free_port() -> Result<u16> {
    for attempt in 0..200_u32 {
        // A fresh `RandomState` is keyed at random: as good a source as is needed here.
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
