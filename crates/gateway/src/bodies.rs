//! The memory for the bodies of requests: reserved as bytes arrive, and limited for each peer.
//!
//! A length that a request announces reserves nothing, so a peer that sends nothing holds nothing. One peer gets half of the memory
//! at most: others always find some.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;

/// The memory that is left, and what each peer holds, in bytes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct BodyMemory(Arc<Mutex<MemoryState>>);

#[derive(Debug)]
struct MemoryState {
    free: usize,
    /// The most that one peer may hold.
    share: usize,
    /// What each peer holds, if anything.
    held: BTreeMap<IpAddr, usize>,
}

/// A body that has arrived; its memory is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    _memory: HeldMemory,
}

/// Memory that a body takes.
#[derive(Debug)]
struct HeldMemory {
    memory: BodyMemory,
    peer: IpAddr,
    bytes: usize,
}

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It has more bytes than one body may have.
    TooLarge,
    /// There is no memory for it now.
    Full,
    /// It ended early.
    Broken,
}

impl BodyMemory {
    /// `bytes` for all bodies together.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(MemoryState {
            free: bytes,
            share: bytes / 2,
            held: BTreeMap::new(),
        })))
    }

    /// Reads a body of a peer with at most `most` bytes.
    pub(crate) async fn read(
        &self,
        peer: IpAddr,
        mut body: axum::body::Body,
        most: usize,
    ) -> Result<HeldBody, Unread> {
        // The announced length is used only to refuse a large body early.
        let announced = body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > most) {
            return Err(Unread::TooLarge);
        }
        let mut memory = HeldMemory {
            memory: self.clone(),
            peer,
            bytes: 0,
        };
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                return Err(Unread::TooLarge);
            }
            memory.add(data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody {
            bytes: bytes.freeze(),
            _memory: memory,
        })
    }

    /// Returns the memory that is left, in bytes.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.lock().free
    }
}

impl HeldMemory {
    /// Reserves memory for more bytes.
    fn add(&mut self, bytes: usize) -> Result<(), Unread> {
        let mut state = self.memory.0.lock();
        let held = state.held.get(&self.peer).copied().unwrap_or_default() + bytes;
        if bytes > state.free || held > state.share {
            return Err(Unread::Full);
        }
        state.free -= bytes;
        state.held.insert(self.peer, held);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let mut state = self.memory.0.lock();
        state.free += self.bytes;
        if let Some(held) = state.held.get_mut(&self.peer) {
            *held -= self.bytes;
            if *held == 0 {
                state.held.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt as _, StreamExt as _, stream};

    use super::*;

    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn body(bytes: usize) -> axum::body::Body {
        vec![b' '; bytes].into()
    }

    #[tokio::test]
    async fn memory_is_reserved_as_bytes_arrive_and_one_peer_gets_half_of_it() {
        let memory = BodyMemory::new(100);
        // A body that does not arrive holds only what has.
        let silent = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"12345"))])
            .chain(stream::pending());
        let mut waiting = Box::pin(memory.read(peer(1), axum::body::Body::from_stream(silent), 60));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(memory.free(), 95);
        let held = memory.read(peer(1), body(45), 60).await.unwrap();
        assert_eq!(held.bytes.len(), 45);
        let more = memory.read(peer(1), body(1), 60).await;
        assert_eq!(more.unwrap_err(), Unread::Full);
        // Another peer has its own share.
        let other = memory.read(peer(2), body(50), 60).await.unwrap();
        assert_eq!(memory.free(), 0);
        let third = memory.read(peer(3), body(1), 60).await;
        assert_eq!(third.unwrap_err(), Unread::Full);
        drop((waiting, held, other));
        assert_eq!(memory.free(), 100);
        assert!(memory.0.lock().held.is_empty());
        let large = memory.read(peer(1), body(61), 60).await;
        assert_eq!(large.unwrap_err(), Unread::TooLarge);
        assert_eq!(memory.free(), 100);
    }
}
