//! What a control plane of one's own is for: its servers die, stand still and come back. Not for the shared one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::control_plane::{ControlPlane, Servers, wait_until_ready};
use crate::guard::Signal;

impl ControlPlane {
    /// Kills the API server, as a lost machine would; etcd keeps what was stored.
    pub fn stop_api_server(&self) -> Result<()> {
        match self.servers.lock().api.take() {
            Some(mut api) => api.kill(),
            None => Ok(()),
        }
    }

    /// Starts the API server again, with the same address, certificates and data, and waits until it serves.
    ///
    /// While it starts it does not serve all kinds yet, and the garbage collector may take those for gone. What their instances
    /// owned is collected only once it knows them again: [`relearn_kinds`](Self::relearn_kinds).
    pub fn start_api_server(&self) -> Result<()> {
        let mut servers = self.servers.lock();
        if servers.api.is_some() {
            return Ok(());
        }
        let Servers { api, etcd, .. } = &mut *servers;
        let api = api.insert(self.site().api_server(self.ports)?);
        wait_until_ready(&self.admin(), &mut [etcd, api])
    }

    /// Starts Kubernetes' own controllers, after ending those that run, so that they list everything anew.
    ///
    /// After outages of the API server some of them wait for what they missed. The Job controller may wait forever: it does not
    /// look again at a Job that took the name of another one while the Pods of the first were being counted.
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

    /// Has etcd stand still, or go on: meanwhile the API server is there, and nothing is stored.
    pub fn pause_etcd(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::Stop } else { Signal::Cont };
        self.servers.lock().etcd.signal(signal)
    }

    /// Copies what etcd has stored by now into the data folder, under that name.
    pub fn back_up_etcd(&self, name: &str) -> Result<Backup> {
        let backup = Backup(self.folder().join(name));
        // It writes nothing while it stands still, and the system has what it wrote before.
        self.pause_etcd(true)?;
        let copied = copy(&self.folder().join(DATA), &backup.0);
        self.pause_etcd(false)?;
        copied.map(|()| backup)
    }

    /// Puts etcd back to a backup, as after the loss of its data: its servers are killed and start over what it holds.
    /// resourceVersions begin anew from the backup's. The garbage collector is started anew too, as etcd's documentation asks of
    /// every client that keeps what it has seen: it would wait for the resourceVersions that are lost.
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

/// What etcd had stored at a time.
#[derive(Debug)]
pub struct Backup(PathBuf);

/// Copies a folder with all that is in it.
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
    // etcd refuses a folder that others may read.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(())
}
