//! The directories of the runtime: each uses only those above it in the map in `src/runtime/mod.rs`.

use std::path::Path;

use super::paths::{SourceFile, in_crate, module_path, paths};

/// What introduces the map.
const INTRODUCTION: &str = "Each directory uses only those above it";

/// The modules of the runtime in the order of its map.
fn order(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| !line.contains(INTRODUCTION))
        .skip_while(|line| !line.starts_with("//!  "))
        .take_while(|line| line.starts_with("//!  "))
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(str::to_owned)
        .collect()
}

#[test]
fn directories_of_the_runtime_use_only_those_above_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = std::fs::read_to_string(source.join("runtime/mod.rs")).unwrap();
    let order = order(&text);
    let mut problems = Vec::new();
    for line in text.lines() {
        let declared = line.trim_start_matches("pub ").strip_prefix("mod ");
        let declared = declared.map(|name| name.trim_end_matches(';'));
        if declared.is_some_and(|name| !order.iter().any(|known| known == name)) {
            problems.push(format!("the map does not name it: {line}"));
        }
    }
    let mut found = Vec::new();
    super::sources(&source.join("runtime"), &mut found);
    let mut uses = 0;
    for (file, text) in &found {
        let file = file.strip_prefix(&source).unwrap();
        let place = SourceFile {
            krate: "",
            path: module_path(file),
        };
        let index = |name: Option<&String>| order.iter().position(|known| Some(known) == name);
        let Some(own) = index(place.path.get(1)) else {
            continue;
        };
        for path in paths(text) {
            let Some(target) = in_crate(&path, &place) else {
                continue;
            };
            // The runtime alone is named by visibilities.
            if target.len() < 2 || target[0] != "runtime" {
                continue;
            }
            uses += 1;
            // What has no line is an item of the runtime itself, which re-exports items of its modules.
            if index(target.get(1)).is_none_or(|used| used > own) {
                problems.push(format!("{}: {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(uses > 200, "{uses}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
