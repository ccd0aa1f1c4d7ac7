//! The walk of an object through the code, in ARCHITECTURE.md: the files and functions that it names exist.

use std::path::Path;

#[test]
fn functions_of_the_walk_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| step |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let (mut steps, mut missing) = (0, Vec::new());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let file = cells[1].trim().trim_matches('`');
        let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        for function in cells[2].split('`').skip(1).step_by(2) {
            steps += 1;
            let is_there = ["(", "<"]
                .iter()
                .any(|end| source.contains(&format!("fn {function}{end}")));
            if !is_there {
                missing.push(format!("{file}: {function}"));
            }
        }
    }
    assert!(steps > 15, "the table is gone");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
