//! Limits: every template, document and Katalog ends soon and uses little memory.
//!
//! Peak memory is measured for a process. So each bomb runs in a separate process, which is this test program.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the tests fail by panicking"
)]

mod bombs;
mod passes;

use std::{env, fs, process::Command, time::Duration};

use bombs::BOMBS;

/// The environment variable that names the bomb for the separate process.
const BOMB: &str = "ORKESTRA_BOMB";

/// The guarantee is 100 ms for an optimised build. Tests are not optimised, and processors differ in speed.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 400 });

/// The guarantee is 64 MiB.
const MOST_KIB: u64 = 64 << 10;

/// Returns the peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// Returns the CPU time of this process in steps of a hundredth of a second. Other processes do not affect it.
fn busy() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name before the other fields may contain spaces.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |at| -> u64 { fields.split_whitespace().nth(at).unwrap().parse().unwrap() };
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

#[test]
#[cfg(target_os = "linux")]
fn every_bomb_ends_in_an_error_soon_and_in_little_memory() {
    let program = env::current_exe().unwrap();
    let mut wrong = Vec::new();
    for bomb in BOMBS {
        let ran = Command::new(&program)
            .args(["--exact", "the_bomb_that_is_named_goes_off", "--nocapture"])
            .env(BOMB, bomb.name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        let figures = said.lines().find_map(|line| line.strip_prefix("figures: "));
        match figures {
            Some(figures) if ran.status.success() => println!("{figures} {}", bomb.name),
            _ => wrong.push(format!(
                "{}: {}\n{said}\n{}",
                bomb.name,
                ran.status,
                String::from_utf8_lossy(&ran.stderr)
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The part of the test above that runs in a separate process. Without the environment variable it does nothing.
#[test]
fn the_bomb_that_is_named_goes_off() {
    let Ok(name) = env::var(BOMB) else {
        return;
    };
    let bomb = BOMBS.iter().find(|bomb| bomb.name == name).unwrap();
    let input = bomb.input();
    let (before, start) = (peak_kib(), busy());
    let said = bomb.explode(&input);
    let (took, grown) = (busy().saturating_sub(start), peak_kib() - before);
    let said: String = said.chars().take(100).collect();
    println!("\nfigures: {took:>6.0?} {grown:>6} KiB  {said:?}");
    assert!(took < PATIENCE, "{took:?}");
    assert!(grown < MOST_KIB, "{grown} KiB");
}
