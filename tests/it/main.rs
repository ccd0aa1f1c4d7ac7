//! Everything that needs more than one module, and all that needs a cluster: one binary, a module a behaviour.
//!
//! The control plane is genuine (`orkestra-testbed`); tests share one and keep apart by namespaces and identities of their own.

mod autoscale;
mod certificates;
mod chance;
mod claims;
mod cli;
mod conditions;
mod control_plane;
mod copies;
mod crashes;
mod crd_life;
mod cross;
mod deletion;
mod depends;
mod drift;
mod ending;
mod enrich;
mod examples;
mod external;
mod files;
mod foreach;
mod kinds;
mod markers;
mod matrix;
mod motifs;
mod names;
mod operators;
mod panics;
mod prune;
mod quiet;
mod restarts;
mod revisions;
mod rights;
mod rights_minimal;
mod rights_running;
mod rules;
mod scenario;
mod secrets;
mod seed;
mod selectors;
mod statuses;
mod unknown_fields;
mod values;
mod waters;
mod website;
