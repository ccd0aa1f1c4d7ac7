//! Responses, and the limits of their bodies.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpInfo;
use tokio::time::{Instant, timeout_at};

use super::{Error, Leader, Target};

/// Limits on the duration of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time for a connection and the head of a response. A body has the same time in addition to the time for its size.
    pub patience: Duration,
    /// The minimum rate of a body, in bytes per second.
    pub slowest: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            slowest: 16 * 1024,
        }
    }
}

impl Limits {
    /// Returns the time for a body of at most that many bytes.
    pub fn within(&self, bytes: usize) -> Duration {
        self.patience + Duration::from_secs(bytes as u64 / self.slowest.max(1))
    }
}

/// A response, whose body is not read yet.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL that it came from, after redirects.
    pub from: Target,
    /// The address at which the server answered.
    pub address: Option<IpAddr>,
    body: Incoming,
}

impl Response {
    pub(crate) fn new(response: http::Response<Incoming>, from: Target) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            address: head
                .extensions
                .get()
                .map(|at: &HttpInfo| at.remote_addr().ip()),
            from,
            body,
        }
    }

    /// The server that answered, as one that leads elsewhere.
    pub fn leader(&self) -> Leader {
        Leader {
            server: self.from.clone(),
            address: self.address,
        }
    }

    /// Reads a body of at most `most` bytes and passes every chunk to `each`. An idle server and a slow one run into the limits.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::TimedOut`] and [`Error::Broken`].
    pub async fn stream(
        mut self,
        most: usize,
        limits: Limits,
        mut each: impl FnMut(&Bytes),
    ) -> Result<(), Error> {
        let within = limits.within(most);
        let end = Instant::now() + within;
        let mut read = 0_usize;
        loop {
            let idle = Instant::now() + limits.patience;
            let frame = match timeout_at(end.min(idle), self.body.frame()).await {
                Ok(Some(frame)) => frame.map_err(|_| Error::Broken(self.from.to_string()))?,
                Ok(None) => return Ok(()),
                Err(_) => {
                    return Err(Error::TimedOut {
                        to: self.from.to_string(),
                        within,
                    });
                }
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            read = read.saturating_add(data.len());
            if read > most {
                return Err(Error::TooLarge {
                    to: self.from.to_string(),
                    most,
                });
            }
            each(&data);
        }
    }

    /// Reads a whole body of at most `most` bytes.
    ///
    /// # Errors
    /// Those of [`Response::stream`].
    pub async fn read(self, most: usize, limits: Limits) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        self.stream(most, limits, |piece| whole.extend_from_slice(piece))
            .await?;
        Ok(whole)
    }
}
