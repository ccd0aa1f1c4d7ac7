//! Calls a hook, as the runtime does.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orkestra_engine::reconcile::calls::{CallAnswer, CallRequest, CallTarget, HttpTarget};
use orkestra_operator::external::{Allow, Client, Guard, Resolver, Variables};
use orkestra_wasm::Module;

use super::{Error, HookTarget};

/// Calls a hook and measures the calls.
pub(crate) struct Caller {
    instead: Instead,
    /// The longest call so far.
    pub(crate) longest: Duration,
    /// The largest answer so far, in bytes.
    pub(crate) largest: usize,
    /// The number of calls.
    pub(crate) calls: usize,
}

/// What is called.
enum Instead {
    /// What the Katalog declares.
    Declared,
    /// A server.
    Url(Box<str>, Option<Box<str>>),
    /// A module.
    Module(Arc<Module>),
}

impl Caller {
    /// # Errors
    /// The module cannot be used.
    pub(crate) fn new(instead: Option<&HookTarget>) -> Result<Self, Error> {
        let instead = match instead {
            None => Instead::Declared,
            Some(HookTarget::Url(url, finalize)) => {
                Instead::Url(url.as_str().into(), finalize.as_deref().map(Into::into))
            }
            Some(HookTarget::Module(path)) => {
                let path = || path.clone();
                let bytes = std::fs::read(path()).map_err(|source| Error::Read {
                    path: path(),
                    source,
                })?;
                let module = Module::load(bytes.into());
                Instead::Module(module.map_err(|source| Error::Module {
                    path: path(),
                    source,
                })?)
            }
        };
        Ok(Self {
            instead,
            longest: Duration::ZERO,
            largest: 0,
            calls: 0,
        })
    }

    /// Returns the request, to what is tested.
    pub(crate) fn aimed(&self, request: &CallRequest, is_finalizing: bool) -> CallRequest {
        let mut request = request.clone();
        match &self.instead {
            Instead::Declared => {}
            Instead::Module(module) => {
                request.target = CallTarget::Module(Some(Arc::clone(module)));
            }
            Instead::Url(url, finalize) => {
                let url = finalize.as_ref().filter(|_| is_finalizing).unwrap_or(url);
                let declared = match request.target {
                    CallTarget::Http(declared) => Some(declared),
                    CallTarget::Module(_) => None,
                };
                request.target = CallTarget::Http(match declared {
                    Some(declared) => HttpTarget {
                        url: url.clone(),
                        ..declared
                    },
                    None => HttpTarget {
                        method: "POST",
                        url: url.clone(),
                        headers: Box::default(),
                        token: Box::default(),
                        expected_status: None,
                    },
                });
            }
        }
        request
    }

    /// Makes a call, which has one attempt.
    ///
    /// # Errors
    /// The URL is not valid.
    pub(crate) async fn call(&mut self, request: &CallRequest) -> Result<CallAnswer, Error> {
        let client = client(request)?;
        let began = Instant::now();
        let mut once = request.clone();
        once.retry = orkestra_plan::Retry::NONE;
        let answer = client.call(&once).await;
        self.longest = self.longest.max(began.elapsed());
        self.largest = self.largest.max(answer.body.len());
        self.calls += 1;
        Ok(answer)
    }
}

/// Returns a client that may call that server and no other.
fn client(request: &CallRequest) -> Result<Client, Error> {
    let mut permitted = Vec::new();
    if let CallTarget::Http(http) = &request.target {
        let wrong = || Error::Url(http.url.to_string());
        let target = orkestra_egress::Target::parse(&http.url).map_err(|_| wrong())?;
        let entry: Allow = target.to_string().parse().map_err(|_| wrong())?;
        permitted.push(entry);
    }
    let guard = Guard::new(permitted);
    Ok(Client::new(guard, Variables::default(), Resolver::system()))
}
