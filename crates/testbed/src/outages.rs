//! What a control plane of one's own is for: its servers die, stand still and come back. Not for the shared one.

use anyhow::Result;

use crate::control_plane::{ControlPlane, Servers, lock, wait_until_ready};
use crate::guard::Signal;

impl ControlPlane {
    /// Kills the API server, as a lost machine would; etcd keeps what was stored.
    pub fn stop_api_server(&self) -> Result<()> {
        match lock(&self.servers).api.take() {
            Some(mut api) => api.kill(),
            None => Ok(()),
        }
    }

    /// Starts the API server again, with the same address, certificates and data, and waits until it serves.
    ///
    /// While it starts it does not serve all kinds yet, and the garbage collector may take those for gone. What their instances
    /// owned is collected only once it knows them again: [`relearn_kinds`](Self::relearn_kinds).
    pub fn start_api_server(&self) -> Result<()> {
        let mut servers = lock(&self.servers);
        if servers.api.is_some() {
            return Ok(());
        }
        let Servers { api, etcd, .. } = &mut *servers;
        let api = api.insert(self.site().api_server(self.ports)?);
        wait_until_ready(&self.admin(), &mut [etcd, api])
    }

    /// Has etcd stand still, or go on: meanwhile the API server is there, and nothing is stored.
    pub fn pause_etcd(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::Stop } else { Signal::Cont };
        lock(&self.servers).etcd.signal(signal)
    }
}
