//! The pure pass: from a Katalog's text to intents, writes and status patches.
//!
//! `pass/server.rs` simulates the API server, including `managedFields`. `pass/world.rs` runs whole passes against it.
//! `pass/operator.rs` compiles Katalogs and creates custom resources.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read is a fault of the test"
)]

mod judge;
mod kstatus;
mod pass {
    mod asking;
    mod autoscale;
    mod backups;
    mod calls;
    mod converge;
    mod copies;
    mod cross;
    mod determinism;
    mod emitted;
    mod end;
    mod enrich;
    mod failures;
    mod first;
    mod for_each;
    mod forecast;
    mod gated;
    mod gates;
    mod generated_secret;
    mod genuine;
    mod holds;
    mod hooks;
    mod intents;
    mod interleavings;
    mod introspection;
    mod leaves;
    mod looks;
    mod motifs;
    mod observe;
    mod on_delete;
    mod operator;
    mod owners;
    mod randomness;
    mod report;
    mod report_any;
    mod report_schema;
    mod rolling;
    mod rules;
    mod scale;
    mod server;
    mod strangers;
    mod targets;
    mod transitions;
    mod values;
    mod whole;
    mod why;
    mod world;
}
