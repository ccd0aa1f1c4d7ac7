//! One CRD's operator: informers with records, a keyed queue, workers, the executor.
//!
//! ```text
//!  watch ── Node ── record ──► store ── change ──► queue ──► worker: observe ─ step ─ execute ─ status
//!                                ▲                                       │
//!                                └───────────── answers to our writes ◄──┘
//! ```
//!
//! Each directory uses only those above it:
//!
//! ```text
//!  metrics    Prometheus metrics of the process
//!  events     Kubernetes Events
//!  external   external calls
//!  certificates, served   certificates of Secrets that request one; built-in kinds as the API server serves them
//!  queue      the work queue, and its workers
//!  status     what an operator reports about itself; its health
//!  context    what all operators of a process share: clients, watches, the registry of operators
//!  requests   requests that are counted for an operator, with their missing permissions
//!  sources    data beyond a custom resource and its children, by kind of source
//!  shared     what the tasks of one operator share: its bound plan, memory, indexes, counters
//!  pass       one pass over a custom resource: observe, decide, execute, report
//!  deletion   a pass over a custom resource that is being deleted, or was
//!  operator   the tasks of one operator: the driver, workers, publisher, autoscaler, dependencies
//! ```

pub mod certificates;
pub mod context;
mod deletion;
pub mod events;
pub mod external;
pub mod metrics;
mod operator;
mod pass;
pub mod queue;
mod requests;
pub mod served;
mod shared;
mod sources;
mod status;

pub use operator::{RunningOperator, Unfinished};
pub use status::{OperatorProblem, OperatorStatus, Phase, Role, health, rollout};
