//! A genuine Kubernetes control plane for tests and for local use: etcd, `kube-apiserver` and `kube-controller-manager`, and
//! optionally `kube-scheduler` and kwok with one fake node. All listen on loopback and are built from pinned Go modules.
//!
//! ```text
//! hack/control-plane/build ─► assets ─┐
//! reaper (guard) ◄── registers ── control_plane ─► servers: etcd, API server, controllers, scheduler, kwok
//!                                     │
//!        pki ─► identity (kubeconfig, kube::Client) · kubectl · audit (the requests and their users) · proxy (faults)
//! ```
//!
//! A test uses the shared control plane and a namespace of its own:
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! let cluster = testbed::ControlPlane::shared();
//! let client = cluster.admin().client()?; // inside the runtime that uses it
//! let namespace = testbed::namespace(&client, "website").await?;
//! let clerk = cluster.identity("clerk", &[])?; // has no permissions until a test binds a role to it
//! let mark = cluster.mark()?;
//! cluster.kubectl(&clerk, &["get", "pods", "-n", &namespace], None)?;
//! assert_eq!(cluster.audit_since(mark)?.iter().filter(|event| event.user == "clerk" && event.code == 403).count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! No process or folder outlives the process that started it, even if that one is killed: see [`guard`](Guarded).

mod assets;
mod audit;
mod control_plane;
mod guard;
mod identity;
mod kubectl;
mod outages;
mod pki;
mod ports;
mod proxy;
mod servers;
mod wait;

pub use assets::Assets;
pub use audit::{AuditEvent, Mark};
pub use control_plane::{ControlPlane, KeptCollector, Options};
pub use guard::{Guarded, Signal, spawn_guarded};
pub use identity::{Identity, SYSTEM_MASTERS, issue};
pub use outages::Backup;
pub use ports::free_port;
pub use proxy::{Cut, Faults, Proxy};
pub use wait::{eventually, namespace};
