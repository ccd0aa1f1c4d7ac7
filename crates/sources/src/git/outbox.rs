//! A transport in memory, between gitoxide's protocol and our HTTP.
//!
//! ```text
//!  gix-protocol ── request ──► Outbox ──► bytes ──► HttpClient (guard, limits) ──► bytes ──► lines ──► gix-protocol
//! ```
//!
//! Over HTTP, a message of version 2 of the protocol is one request with one answer, so the protocol needs no connection: a request
//! is collected completely, and its answer is read when it has arrived. `gix-transport`'s own transports wait for the answer while
//! they write; the asynchronous one has futures that cannot be sent to another thread.

use std::{any::Any, borrow::Cow, io};

use gix_transport::{
    Protocol, Service,
    bstr::BStr,
    client::{
        Error, MessageKind, TransportWithoutIO, WriteMode,
        blocking_io::{HandleProgress, RequestWriter, SetServiceResponse, Transport},
    },
    packetline::{
        PacketLineRef,
        blocking_io::{StreamingPeekableIter, WithSidebands},
    },
};

/// The lines of an answer.
pub(crate) type Lines<'a> = StreamingPeekableIter<&'a [u8]>;

/// Reads an answer line by line. A line with an error of the server ends it.
pub(crate) fn lines(answer: &[u8]) -> Lines<'_> {
    let mut lines = StreamingPeekableIter::new(answer, &[PacketLineRef::Flush], false);
    lines.fail_on_err_lines(true);
    lines
}

/// Collects a request.
pub(crate) struct Outbox {
    request: Vec<u8>,
    /// What is read after a request: nothing, since its answer comes later.
    nothing: StreamingPeekableIter<io::Empty>,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            request: Vec::new(),
            nothing: StreamingPeekableIter::new(io::empty(), &[PacketLineRef::Flush], false),
        }
    }

    /// Returns the request.
    pub(crate) fn into_request(self) -> Vec<u8> {
        self.request
    }
}

impl TransportWithoutIO for Outbox {
    fn to_url(&self) -> Cow<'_, BStr> {
        Cow::Borrowed(BStr::new(""))
    }

    fn supported_protocol_versions(&self) -> &[Protocol] {
        &[Protocol::V2]
    }

    fn connection_persists_across_multiple_requests(&self) -> bool {
        false
    }

    fn configure(&mut self, _: &dyn Any) -> gix_error::Result {
        Ok(())
    }
}

impl Transport for Outbox {
    fn handshake<'a>(
        &mut self,
        _: Service,
        _: &'a [(&'a str, Option<&'a str>)],
    ) -> Result<SetServiceResponse<'_>, Error> {
        // `Remote::discover` does it, with redirects.
        Err(Error::MissingHandshake)
    }

    fn request(
        &mut self,
        write_mode: WriteMode,
        on_into_read: MessageKind,
        trace: bool,
    ) -> Result<RequestWriter<'_>, Error> {
        let nothing: WithSidebands<'_, _, HandleProgress<'_>> =
            self.nothing.as_read_without_sidebands();
        Ok(RequestWriter::new_from_bufread(
            &mut self.request,
            Box::new(nothing),
            write_mode,
            on_into_read,
            trace,
        ))
    }
}
