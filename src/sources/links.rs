//! Links and paths in documents, messages and comments: each leads to a file, and to a section if it names one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::prose::files;

/// Every document for users and contributors.
pub(crate) fn documents(found: &mut Vec<PathBuf>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["docs", "charts", "examples"] {
        files(&root.join(folder), ".md", found);
    }
    let names = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    found.extend(names.map(|name| root.join(name)));
}

/// Returns the anchors of a page, one for each heading.
///
/// Source: the rule of GitHub's renderer: lower case, without punctuation, with hyphens for spaces.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let headings = page.lines().filter(|line| {
        let fence = line.starts_with("```");
        in_code ^= fence;
        !fence && !in_code && line.starts_with('#')
    });
    let anchor = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
        });
        kept.collect()
    };
    headings.map(anchor).collect()
}

/// Returns the targets of the relative links in a page.
fn targets(page: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in page.lines() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if fence || in_code {
            continue;
        }
        let links = line.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split(')').next());
        found.extend(links.filter(|link| !link.contains("://")));
    }
    found
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_section() {
    let mut pages = Vec::new();
    documents(&mut pages);
    let (mut broken, mut checked) = (Vec::new(), 0);
    for path in &pages {
        let page = std::fs::read_to_string(path).unwrap();
        for target in targets(&page) {
            checked += 1;
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.with_file_name(file),
            };
            let leads = file.exists()
                && (section.is_empty()
                    || anchors(&std::fs::read_to_string(&file).unwrap()).contains(section));
            if !leads {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(checked > 300, "{checked}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Returns the pages of `docs` that a text names by their paths from the root of the repository. In `LIST.yaml`, `LIST` stands for a
/// name.
fn pages_named(text: &str) -> Vec<&str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let starts = text.match_indices("docs/").filter(|(at, _)| {
        let before = text[..*at].trim_end_matches("../");
        !before.ends_with(is_path)
    });
    let paths = starts.map(|(at, _)| {
        let path = text[at..].split(|c| !is_path(c)).next().unwrap_or_default();
        path.trim_end_matches('.')
    });
    paths
        .filter(|path| {
            [".md", ".json", ".yaml"]
                .iter()
                .any(|end| path.ends_with(end))
        })
        .filter(|path| !path.ends_with("/LIST.yaml"))
        .collect()
}

#[test]
fn every_page_that_a_file_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = Vec::new();
    documents(&mut named);
    for folder in [
        "src", "crates", "tests", "bench", "hack", "config", "charts",
    ] {
        for end in [".rs", ".md", ".go", ".yaml", ".json", ".tpl", ".out"] {
            files(&root.join(folder), end, &mut named);
        }
    }
    named.extend(["Makefile", "install.sh", "hack/release-check"].map(|name| root.join(name)));
    // Its pages are those of another repository.
    named.retain(|path| !path.ends_with("crates/registry/src/signature/keyless/mod.rs"));
    let mut broken = BTreeSet::new();
    for path in named {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for page in pages_named(&text) {
            if !root.join(page).exists() {
                broken.insert(format!("{}: {page}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_index_lists_every_page_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let index = std::fs::read_to_string(root.join("README.md")).unwrap();
    let listed = targets(&index);
    let mut pages = Vec::new();
    files(&root, ".md", &mut pages);
    pages.retain(|path| *path != root.join("README.md"));
    for path in pages {
        let page = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let count = listed.iter().filter(|target| **target == page).count();
        assert_eq!(count, 1, "{page}");
    }
}
