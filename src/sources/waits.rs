//! How live tests wait: for an event, or for a count over a measured time. A test that sleeps and then looks depends on the speed of
//! the machine.

use std::path::Path;

use super::length::all_sources;

/// The files of `tests` that may sleep, each with the reason.
const SLEEPERS: [(&str, &str); 2] = [
    (
        "tests/it/scenario/rest.rs",
        "a time without a change is looked for again until there is one",
    ),
    (
        "tests/it/scenario/measure.rs",
        "`pause` is the pace of a load or the length of a fault, of which nothing is concluded",
    ),
];

/// The calls that wait for a time.
const SLEEPS: [&str; 3] = ["sleep(", "sleep_until(", "park_timeout("];

#[test]
fn live_tests_wait_for_events_and_never_for_a_time() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut strays, mut sleepers) = (Vec::new(), Vec::new());
    for (path, text) in all_sources() {
        let path = path.strip_prefix(root).unwrap();
        if !path.starts_with("tests") {
            continue;
        }
        let lines = text.lines().enumerate();
        let mut sleeps = lines.filter(|(_, line)| SLEEPS.iter().any(|call| line.contains(call)));
        match SLEEPERS.iter().find(|(file, _)| path == Path::new(file)) {
            Some((file, _)) => sleepers.extend(sleeps.next().map(|_| *file)),
            None => strays.extend(
                sleeps.map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.trim())),
            ),
        }
    }
    assert!(
        strays.is_empty(),
        "wait for an event, or use a function of `tests/it/scenario`; CONTRIBUTING.md says which:\n{}",
        strays.join("\n")
    );
    let mut listed = SLEEPERS.map(|(file, _)| file).to_vec();
    listed.sort_unstable();
    sleepers.sort_unstable();
    assert_eq!(sleepers, listed, "a listed file sleeps no more");
}
