//! Outages of a separate control plane: its servers are killed, suspended and restarted. Do not use these with the shared one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::control_plane::{ControlPlane, Servers, wait_until_ready};
use crate::guard::Signal;

impl ControlPlane {
    /// Kills the API server, as after the loss of its machine. etcd keeps the stored data.
    pub fn stop_api_server(&self) -> Result<()> {
        match self.servers.lock().api.take() {
            Some(mut api) => api.kill(),
            None => Ok(()),
        }
    }

    /// Starts the API server again, with the same address, certificates and data, and waits until it serves.
    ///
    /// During its start the API server does not serve all kinds yet, and the garbage collector may treat those kinds as deleted.
    /// It collects the objects that their instances owned only once it knows the kinds again:
    /// [`relearn_kinds`](Self::relearn_kinds).
    pub fn start_api_server(&self) -> Result<()> {
        let mut servers = self.servers.lock();
        if servers.api.is_some() {
            return Ok(());
        }
        let Servers { api, etcd, .. } = &mut *servers;
        let api = api.insert(self.site().api_server(self.ports)?);
        wait_until_ready(&self.admin(), &mut [etcd, api])
    }

    /// Restarts Kubernetes' own controllers, so that they list all objects again.
    ///
    /// After an outage of the API server some controllers wait for events that they missed. The Job controller may wait forever:
    /// it does not look again at a Job that took the name of another Job while the Pods of the first were being counted.
    pub fn restart_controllers(&self) -> Result<()> {
        let identity = self.manager_identity()?;
        {
            let mut servers = self.servers.lock();
            if let Some(mut old) = servers.manager.take() {
                old.kill()?;
            }
            let manager = self.site().controller_manager(identity.kubeconfig_path())?;
            servers.manager = Some(manager);
        }
        self.relearn_kinds()
    }

    /// Suspends or resumes etcd. While it is suspended the API server runs, but stores nothing.
    pub fn pause_etcd(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::Stop } else { Signal::Cont };
        self.servers.lock().etcd.signal(signal)
    }

    /// Copies the data that etcd has stored so far into the data folder, under the name `name`.
    pub fn back_up_etcd(&self, name: &str) -> Result<Backup> {
        let backup = Backup(self.folder().join(name));
        // A suspended etcd writes nothing, and the operating system has all of its earlier writes.
        self.pause_etcd(true)?;
        let copied = copy(&self.folder().join(DATA), &backup.0);
        self.pause_etcd(false)?;
        copied.map(|()| backup)
    }

    /// Restores etcd from a backup, as after the loss of its data: the servers are killed and started with the data of the
    /// backup. New resourceVersions follow those of the backup. The garbage collector is restarted too, as etcd's documentation
    /// requires for every client that caches what it has read: otherwise it would wait for the lost resourceVersions.
    pub fn restore_etcd(&self, backup: &Backup) -> Result<()> {
        self.stop_api_server()?;
        let data = self.folder().join(DATA);
        {
            let mut servers = self.servers.lock();
            servers.etcd.kill()?;
            fs::remove_dir_all(&data)?;
            copy(&backup.0, &data)?;
            servers.etcd = self.site().etcd(self.ports)?;
        }
        self.start_api_server()?;
        self.relearn_kinds()
    }
}

/// The folder of etcd's data.
const DATA: &str = "etcd";

/// A copy of etcd's data.
#[derive(Debug)]
pub struct Backup(PathBuf);

/// Copies a folder with all its contents.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    // etcd refuses a data folder that other users may read.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(())
}
