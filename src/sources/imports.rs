//! The uses of modules by modules, read from the source files and compared with the table in ARCHITECTURE.md.
//!
//! A module is named by its crate and its first segment: `core::plan` is everything in `crates/core/src/plan`. The crates
//! `ground`, `guard`, `sources`, `registry` and `charts`, which re-export what their modules have, count as one module each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::paths::{SourceFile, in_crate, module_path, paths};

/// The crates: name in paths, name in the table, folder of sources.
const CRATES: [(&str, &str, &str); 8] = [
    ("orkestra_core", "core", "crates/core/src"),
    ("orkestra_ground", "ground", "crates/ground/src"),
    ("orkestra_guard", "guard", "crates/guard/src"),
    ("orkestra_sources", "sources", "crates/sources/src"),
    ("orkestra_registry", "registry", "crates/registry/src"),
    ("orkestra_charts", "charts", "crates/charts/src"),
    ("orkestra_cluster", "cluster", "crates/cluster/src"),
    ("orkestra", "", "src"),
];

/// Crates that count as one module, with its name in the table.
const WHOLE: [(&str, &str); 5] = [
    ("ground", "tasks"),
    ("guard", "guard"),
    ("sources", "fetcher"),
    ("registry", "client"),
    ("charts", "engine"),
];

/// Modules that hold no part of the program.
const NO_MODULES: [&str; 4] = ["lib", "main", "sources", "testing"];

/// Who uses whom.
pub(super) type ModuleUses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_use_those_that_architecture_md_allows_and_arrows_do_not_turn_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (units, _) = read_table(&text);
    let mut problems = Vec::new();
    let used = arrows(root, &units, &mut problems);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root.join("ARCHITECTURE.md"), with_uses(&text, &used)).unwrap();
    }
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, allowed) = read_table(&text);
    for (from, targets) in &used {
        for to in targets {
            if !allowed.get(from).is_some_and(|may| may.contains(to)) {
                problems.push(format!(
                    "`{from}` uses `{to}`, which its row does not allow"
                ));
            }
        }
    }
    for (from, targets) in &allowed {
        for to in targets {
            if !used.get(from).is_some_and(|used| used.contains(to)) {
                problems.push(format!(
                    "the row of `{from}` allows `{to}`, which it does not use"
                ));
            }
        }
    }
    if let Some(cycle) = cycle(&used) {
        problems.push(format!("a cycle: {}", cycle.join(" → ")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The table's rows: which row each module belongs to, and which rows each row may use.
fn read_table(text: &str) -> (BTreeMap<String, String>, ModuleUses) {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("| module |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 20, "the table is gone");
    let mut units = BTreeMap::new();
    for row in &rows {
        let names = names(row[0]);
        for name in &names {
            units.insert(name.clone(), names[0].clone());
        }
    }
    let allowed = rows.iter().map(|row| {
        let from = names(row[0])[0].clone();
        let targets = names(row[2]).into_iter();
        let targets = targets.map(|name| units.get(&name).cloned().unwrap_or(name));
        (from, targets.collect())
    });
    let allowed = allowed.collect();
    (units, allowed)
}

/// The text with the third cells of the table as the sources are.
fn with_uses(text: &str, arrows: &ModuleUses) -> String {
    let mut in_table = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        in_table = line.starts_with("| module |") || (in_table && line.starts_with('|'));
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        if !in_table || cells.len() != 3 || !cells[0].contains('`') {
            lines.push(line.to_owned());
            continue;
        }
        let uses = arrows
            .get(&names(cells[0])[0])
            .map(cell)
            .unwrap_or_default();
        lines.push(format!("|{}|{}| {uses} |", cells[0], cells[1]).replace("|  |", "| |"));
    }
    lines.join("\n") + "\n"
}

/// A cell that names modules, a crate after the other.
fn cell(targets: &BTreeSet<String>) -> String {
    let mut of_crates: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for target in targets {
        let (krate, module) = match target.split_once("::") {
            Some((krate, module)) => (krate, module),
            None => match WHOLE.iter().find(|(krate, _)| krate == target) {
                Some((krate, module)) => (*krate, *module),
                None => ("", &**target),
            },
        };
        let quoted = format!("`{module}`");
        of_crates.entry(krate).or_default().push(quoted);
    }
    let mut parts: Vec<String> = Vec::new();
    // The program's own modules come last: their names stand without a crate.
    let (own, others): (Vec<_>, Vec<_>) = of_crates
        .into_iter()
        .partition(|(krate, _)| krate.is_empty());
    for (krate, modules) in others.into_iter().chain(own) {
        parts.push(format!("{krate} {}", modules.join(", ")).trim().to_owned());
    }
    parts.join("; ")
}

/// The modules that a cell names: ``core `api`, `value` `` are `core::api` and `core::value`; a crate's name stays in force
/// until the next one.
fn names(cell: &str) -> Vec<String> {
    let mut krate = "";
    let mut found = Vec::new();
    for (number, part) in cell.split('`').enumerate() {
        if number % 2 == 1 {
            found.push(join(krate, part));
        } else {
            let word = part.trim_matches([',', ';', ' ']);
            if let Some((_, known, _)) = CRATES.iter().find(|(_, known, _)| *known == word)
                && !word.is_empty()
            {
                krate = known;
            } else if part.contains(';') {
                krate = "";
            }
        }
    }
    found
}

fn join(krate: &str, module: &str) -> String {
    if WHOLE.iter().any(|(whole, _)| *whole == krate) {
        krate.to_owned()
    } else if krate.is_empty() {
        module.to_owned()
    } else {
        format!("{krate}::{module}")
    }
}

/// Who uses whom, by rows of the table. A module without a row is a problem.
fn arrows(root: &Path, units: &BTreeMap<String, String>, problems: &mut Vec<String>) -> ModuleUses {
    let mut used = ModuleUses::new();
    for (_, krate, folder) in CRATES {
        let mut found = Vec::new();
        super::sources(&root.join(folder), &mut found);
        for (file, text) in found {
            let path = module_path(file.strip_prefix(root.join(folder)).unwrap());
            let module = path.first().cloned().unwrap_or_default();
            if module.is_empty() || NO_MODULES.contains(&&*module) {
                continue;
            }
            let name = join(krate, &module);
            let Some(from) = units.get(&name) else {
                problems.push(format!("`{name}` has no row"));
                continue;
            };
            let place = SourceFile { krate, path };
            for to in targets(&text, &place) {
                // A crate's own root re-exports some of its modules.
                if let Some(to) = units.get(&to).filter(|to| *to != from) {
                    used.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
    }
    problems.sort();
    problems.dedup();
    used
}

/// The modules that a source names, in `use` declarations and in paths.
fn targets(text: &str, place: &SourceFile) -> BTreeSet<String> {
    let paths = paths(text).into_iter();
    paths.filter_map(|path| resolve(&path, place)).collect()
}

/// The module of the table that a path leads into, if any.
fn resolve(path: &[String], place: &SourceFile) -> Option<String> {
    let first = path.first()?;
    if let Some((_, krate, _)) = CRATES.iter().find(|(name, ..)| name == first) {
        return Some(join(krate, path.get(1)?));
    }
    let module = in_crate(path, place)?;
    // A path that stays below its own module is no arrow.
    let is_below = first == "super" && place.path.first() == module.first();
    (!is_below).then(|| join(place.krate, &module[0]))
}

/// A way back to where it began, if there is one.
pub(super) fn cycle(arrows: &ModuleUses) -> Option<Vec<String>> {
    fn visit<'a>(
        at: &'a str,
        arrows: &'a ModuleUses,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|seen| *seen == at) {
            let around = way[start..].iter().chain([&at]);
            return Some(around.map(|name| (*name).to_owned()).collect());
        }
        if !done.insert(at) {
            return None;
        }
        way.push(at);
        let next = arrows.get(at).into_iter().flatten();
        let found = next.into_iter().find_map(|to| visit(to, arrows, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    arrows
        .keys()
        .find_map(|from| visit(from, arrows, &mut Vec::new(), &mut done))
}

#[test]
fn paths_are_found_in_declarations_and_in_code() {
    let place = SourceFile {
        krate: "",
        path: vec!["runtime".to_owned(), "pass".to_owned()],
    };
    let text = "use crate::{a::{B, C}, d};\nuse orkestra_core::plan::X;\nfn f() { super::super::e::g(); super::h::i(); crate::j::k }";
    let found = targets(text, &place);
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a", "core::plan", "d", "e", "j"]
    );
    let ring = [("a", "b"), ("b", "c"), ("c", "a")];
    let ring = ring.map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])));
    assert_eq!(cycle(&ring.into()).unwrap(), ["a", "b", "c", "a"]);
}
