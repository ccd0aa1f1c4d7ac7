//! `plan` of crates/engine/tests/fuzz.
#![no_main]

#[path = "../../crates/engine/tests/fuzz/mod.rs"]
#[allow(dead_code, reason = "each fuzzer runs one of the targets")]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::plan(input));
