//! Sibling modules have no cyclic uses, at any level of any crate.
//!
//! A submodule counts as part of the sibling that contains it. A parent and its children may use each other: the file of a parent
//! introduces its children and re-exports their items. A path through a re-export leads to the module that declares the item.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::imports::{ModuleUses, cycle};
use super::paths::{SourceFile, code, in_crate, module_path, paths};

type ModulePath = Vec<String>;

/// The modules of a crate, by path; tests are left out.
struct Crate {
    sources: BTreeMap<ModulePath, ModuleSource>,
}

/// What a module declares and names.
struct ModuleSource {
    /// The names of its items.
    declared: BTreeSet<String>,
    /// The items of other modules that it imports, by their names here: its children may name them too.
    imports: BTreeMap<String, ModulePath>,
    /// The modules all of whose items it imports.
    globs: Vec<ModulePath>,
    /// The paths that it names.
    paths: Vec<ModulePath>,
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        super::sources(folder, &mut files);
        let files: BTreeMap<ModulePath, String> = files
            .into_iter()
            .map(|(file, text)| (module_path(file.strip_prefix(folder).unwrap()), text))
            .collect();
        let known: BTreeSet<ModulePath> = files.keys().cloned().collect();
        let sources = files.into_iter().map(|(path, text)| {
            let source = ModuleSource::read(&path, &text, &known);
            (path, source)
        });
        Self {
            sources: sources.collect(),
        }
    }

    /// The module that declares what a path leads to, or the deepest module on the path.
    fn owner(&self, path: &ModulePath) -> ModulePath {
        let mut path = path.clone();
        // An import may lead to another one.
        for _ in 0..8 {
            let known = (0..=path.len())
                .rev()
                .find(|end| self.sources.contains_key(&path[..*end]));
            let Some(end) = known else {
                return Vec::new();
            };
            let Some(name) = path.get(end) else {
                return path;
            };
            let Some(mut next) = self.imported(&path[..end], name) else {
                return path[..end].to_vec();
            };
            next.extend_from_slice(&path[end + 1..]);
            path = next;
        }
        path
    }

    /// The path of the item that a module imports by this name, unless it declares the item itself.
    fn imported(&self, module: &[String], name: &String) -> Option<ModulePath> {
        let source = self.sources.get(module)?;
        if source.declared.contains(name) {
            return None;
        }
        if let Some(target) = source.imports.get(name) {
            return Some(target.clone());
        }
        source.globs.iter().find_map(|glob| {
            let declares = self.sources.get(glob)?.declared.contains(name);
            let path: ModulePath = glob.iter().chain([name]).cloned().collect();
            if declares {
                Some(path)
            } else {
                self.imported(glob, name)
            }
        })
    }

    /// Who uses whom among the children of each parent.
    fn siblings(&self) -> BTreeMap<ModulePath, ModuleUses> {
        let mut uses: BTreeMap<ModulePath, ModuleUses> = BTreeMap::new();
        for (from, source) in &self.sources {
            for path in &source.paths {
                let to = self.owner(path);
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                let (Some(child), Some(target)) = (from.get(shared), to.get(shared)) else {
                    continue;
                };
                let parent = uses.entry(from[..shared].to_vec()).or_default();
                let targets = parent.entry(child.clone()).or_default();
                targets.insert(target.clone());
            }
        }
        uses
    }
}

impl ModuleSource {
    fn read(place: &ModulePath, text: &str, known: &BTreeSet<ModulePath>) -> Self {
        let file = SourceFile {
            krate: "",
            path: place.clone(),
        };
        // A path may begin with a child of the module, or with a name that `use` declares.
        let absolute = |path: &ModulePath| {
            let below: ModulePath = match path.first().map(String::as_str) {
                Some("self") => place.iter().chain(&path[1..]).cloned().collect(),
                _ => place.iter().chain(path).cloned().collect(),
            };
            in_crate(path, &file).or_else(|| {
                let child = below.get(..=place.len())?;
                known.contains(child).then(|| below.clone())
            })
        };
        let code = code(text);
        let mut source = Self {
            declared: declared(&code),
            imports: BTreeMap::new(),
            globs: Vec::new(),
            paths: paths(text).iter().filter_map(absolute).collect(),
        };
        for statement in code.split_inclusive(';') {
            let Some(import) = import(statement) else {
                continue;
            };
            if let Some(module) = import.strip_suffix("::*") {
                let module = module.split("::").map(str::to_owned).collect();
                source.globs.extend(absolute(&module));
                continue;
            }
            for path in paths(import) {
                let Some(target) = absolute(&path) else {
                    continue;
                };
                if let Some(name) = target.last().cloned() {
                    source.imports.insert(name, target);
                }
            }
        }
        source
    }
}

/// The names of the items that a source declares.
fn declared(code: &str) -> BTreeSet<String> {
    const ITEMS: [&str; 8] = [
        "struct", "enum", "fn", "const", "type", "trait", "static", "union",
    ];
    let words: Vec<&str> = code.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| ITEMS.contains(&pair[0]))
        .map(|pair| {
            let end = pair[1].find(|c: char| !c.is_alphanumeric() && c != '_');
            pair[1][..end.unwrap_or(pair[1].len())].to_owned()
        })
        .collect()
}

/// The path of a statement that ends with a `use` declaration.
fn import(statement: &str) -> Option<&str> {
    let (before, path) = statement.strip_suffix(';')?.rsplit_once("use ")?;
    let is_declaration = before.is_empty() || before.ends_with([' ', '\n']);
    is_declaration.then_some(path.trim())
}

#[test]
fn sibling_modules_do_not_use_each_other_in_a_ring() {
    let (mut arrows, mut problems) = (0, Vec::new());
    for (krate, folder) in super::crates() {
        for (parent, uses) in Crate::read(&folder).siblings() {
            arrows += uses.values().map(BTreeSet::len).sum::<usize>();
            if let Some(ring) = cycle(&uses) {
                let parent = std::iter::once(krate.clone())
                    .chain(parent)
                    .collect::<Vec<_>>()
                    .join("::");
                problems.push(format!("below {parent}: {}", ring.join(" → ")));
            }
        }
    }
    assert!(arrows > 1000, "{arrows}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_path_leads_to_the_module_that_declares_the_item() {
    let texts = [
        ("", "mod a; mod b;"),
        (
            "a",
            "pub use one::{One, sub}; pub(crate) use two::*; mod one; mod two; pub struct Own;",
        ),
        ("a::one", "pub struct One; use super::Two;"),
        (
            "a::two",
            "pub struct Two; use super::{One, Own}; use crate::b::Far;",
        ),
        ("b", "pub struct Far; fn f() { crate::a::One }"),
    ];
    let path = |text: &str| -> ModulePath {
        let parts = text.split("::").filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let known = texts.iter().map(|(module, _)| path(module)).collect();
    let sources = texts.iter().map(|(module, text)| {
        let module = path(module);
        let source = ModuleSource::read(&module, text, &known);
        (module, source)
    });
    let krate = Crate {
        sources: sources.collect(),
    };
    assert_eq!(krate.owner(&path("a::One")), path("a::one"));
    assert_eq!(krate.owner(&path("a::Two")), path("a::two"));
    assert_eq!(krate.owner(&path("a::Own")), path("a"));
    let siblings = krate.siblings();
    let ring = cycle(&siblings[&path("a")]).unwrap();
    assert_eq!(ring, ["one", "two", "one"]);
    let ring = cycle(&siblings[&path("")]).unwrap();
    assert_eq!(ring, ["a", "b", "a"]);
}
