//! Whatever a template, a document or a Katalog does, it ends soon and takes little memory.
//!
//! Peak memory is that of a process, so each bomb goes off in one of its own: this test program, run again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bomb that is not refused is what the tests look for"
)]

mod bombs;
mod passes;

use std::{env, fs, process::Command, time::Duration};

use bombs::BOMBS;

/// Names the bomb that a process of its own lets go off.
const BOMB: &str = "ORKESTRA_BOMB";

/// 100 ms are promised of an optimised build; tests are none, and what a processor does in that time differs.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 400 });

/// 64 MiB are promised.
const MOST_KIB: u64 = 64 << 10;

/// The most memory that this process ever had, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// The time that this process had a processor, to a hundredth of a second: others may keep the machine busy.
fn busy() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name before the other fields may hold spaces.
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

/// The part of the test above that runs in a process of its own; without a bomb it does nothing.
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
