//! Response bodies on their way to the client: the proxy stalls them, breaks them off or ends them.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Behaviour, Broken, Cut};

/// A response body on its way to the client.
pub(crate) type Body = UnsyncBoxBody<Bytes, Broken>;

/// Returns a body that is complete.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    let never = |never: Infallible| match never {};
    Full::new(bytes.into()).map_err(never).boxed_unsync()
}

/// The faults that apply to one answer.
pub(crate) struct Course {
    /// The answer is that of a watch.
    pub(crate) is_watch: bool,
    /// The answer breaks off after this number of bytes.
    pub(crate) bytes: Option<usize>,
    /// The answer ends after this time.
    pub(crate) time: Option<Duration>,
}

struct Relay {
    from: kube::client::Body,
    behaviours: watch::Receiver<Behaviour>,
    /// The number of cuts so far. A further cut applies to this answer.
    cuts: u64,
    is_watch: bool,
    bytes: usize,
    until: Option<Instant>,
    is_over: bool,
}

/// Returns the upstream body with the faults of `course` applied.
pub(crate) fn relay(
    from: kube::client::Body,
    course: &Course,
    behaviours: watch::Receiver<Behaviour>,
) -> Body {
    let cuts = behaviours.borrow().cuts;
    let relay = Relay {
        from,
        cuts,
        behaviours,
        is_watch: course.is_watch,
        bytes: course.bytes.unwrap_or(usize::MAX),
        until: course.time.map(|time| Instant::now() + time),
        is_over: false,
    };
    StreamBody::new(frames(relay)).boxed_unsync()
}

fn frames(relay: Relay) -> impl Stream<Item = Result<Frame<Bytes>, Broken>> + Send {
    stream::unfold(relay, async |mut relay| {
        if relay.is_over {
            return None;
        }
        let frame = relay.next().await?;
        Some((frame, relay))
    })
}

impl Relay {
    /// Returns the next frame, or `None` at the end.
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, Broken>> {
        let mut behaviour = *self.behaviours.borrow_and_update();
        loop {
            // Also if the last frame was complete: an orderly end would be a valid answer.
            if self.bytes == 0 {
                // hyper sends its buffered data when it has to wait, and drops that data when it receives an error.
                tokio::task::yield_now().await;
                return Some(Err(self.end()));
            }
            if self.is_watch && behaviour.cuts > self.cuts {
                return match behaviour.how {
                    Cut::Ended => None,
                    Cut::Broken => Some(Err(self.end())),
                };
            }
            let stands = behaviour.partitioned || (self.is_watch && behaviour.stalled);
            let until = self.until;
            tokio::select! {
                // A behaviour that was set before a frame arrived applies to that frame.
                biased;
                changed = self.behaviours.changed() => match changed {
                    Ok(()) => behaviour = *self.behaviours.borrow_and_update(),
                    // The proxy has been dropped.
                    Err(_) => return Some(Err(self.end())),
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    return None;
                }
                frame = self.from.frame(), if !stands => return match frame? {
                    Ok(frame) => Some(Ok(self.pass(frame))),
                    Err(_) => Some(Err(self.end())),
                },
            }
        }
    }

    /// Returns the part of a frame that is forwarded. A break-off forwards the beginning: half an event, half an object.
    fn pass(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        // Kubernetes sends no trailers.
        let mut data = frame.into_data().unwrap_or_default();
        data.truncate(self.bytes);
        self.bytes -= data.len();
        Frame::data(data)
    }

    fn end(&mut self) -> Broken {
        self.is_over = true;
        Broken
    }
}
