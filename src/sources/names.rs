//! Type names are unique: in each crate, two types that are not private have different names.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{crates, paths::code, sources};

/// Names that more than one module may use, each with the reason.
const COMMON: [(&str, &str); 2] = [
    ("Args", "the arguments of a command, in each file of `cli`"),
    ("Error", "the errors of a module"),
];

/// The name of the struct, enum or trait that a line declares, unless it is private.
fn declared(line: &str) -> Option<&str> {
    let visible = line.strip_prefix("pub")?;
    let rest = match visible.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')')?.1,
        None => visible,
    };
    let (keyword, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    if !["struct", "enum", "trait"].contains(&keyword) {
        return None;
    }
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

/// The names that more than one file of a crate declares, with these files.
fn repeated(files: &[(PathBuf, String)]) -> BTreeMap<String, Vec<&Path>> {
    let mut places: BTreeMap<String, Vec<&Path>> = BTreeMap::new();
    for (path, text) in files {
        for name in code(text).lines().filter_map(declared) {
            places.entry(name.to_owned()).or_default().push(path);
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    places
}

#[test]
fn a_type_name_that_is_not_private_stands_for_one_thing_in_its_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = crates();
    folders.push(("bench".to_owned(), root.join("bench/src")));
    let (mut seen, mut problems) = (0, Vec::new());
    let mut needless: Vec<&str> = COMMON.iter().map(|(name, _)| *name).collect();
    for (krate, folder) in folders {
        let mut files = Vec::new();
        sources(&folder, &mut files);
        seen += files.len();
        for (name, paths) in repeated(&files) {
            if COMMON.iter().any(|(common, _)| *common == name) {
                needless.retain(|common| *common != name);
                continue;
            }
            let paths = paths.iter().map(|path| {
                let path = path.strip_prefix(root).unwrap_or(path);
                path.display().to_string()
            });
            let paths: Vec<String> = paths.collect();
            problems.push(format!("{krate}: `{name}`: {}", paths.join(", ")));
        }
    }
    assert!(seen > 500, "{seen}");
    assert!(
        problems.is_empty(),
        "give one of the types another name:\n{}",
        problems.join("\n")
    );
    assert!(needless.is_empty(), "used once at most: {needless:?}");
}

#[test]
fn declarations_are_found_with_their_visibility() {
    let lines = [
        ("pub struct One;", Some("One")),
        ("pub(crate) enum Two<'a> {", Some("Two")),
        ("pub(in crate::runtime) trait Three: Send {", Some("Three")),
        ("pub struct Four(u32);", Some("Four")),
        ("struct Private;", None),
        ("pub fn function() {", None),
        ("pub use other::Struct;", None),
    ];
    for (line, name) in lines {
        assert_eq!(declared(line), name, "{line}");
    }
    let file = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let files = [
        file("a.rs", "pub struct Same;\npub struct Own;"),
        file(
            "b.rs",
            "// pub struct Own;\npub(crate) enum Same {}\nstruct Own;",
        ),
    ];
    let found = repeated(&files);
    let paths = [Path::new("a.rs"), Path::new("b.rs")];
    assert_eq!(found, BTreeMap::from([("Same".to_owned(), paths.to_vec())]));
}
