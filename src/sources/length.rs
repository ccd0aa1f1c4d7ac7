//! The length of files and functions: a file over 400 lines gives the reason in its header, and a function over 60 lines in a
//! comment above it.

use std::path::{Path, PathBuf};

/// The most lines of a file without a reason.
const MOST: usize = 400;

/// The start of the line of the header that says the reason.
const REASON: &str = "//! One file: ";

/// The most lines of a function without a reason.
const MOST_OF_FUNCTION: usize = 60;

/// The start of the comment above a function that says the reason.
const REASON_OF_FUNCTION: &str = "// Over 60 lines: ";

/// A function of a source.
struct Function {
    name: String,
    lines: usize,
    has_reason: bool,
}

/// Every source of the workspace, tests included, with its text.
pub(crate) fn all_sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["src", "crates", "bench", "tests"] {
        add_sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 900, "{}", found.len());
    found
}

/// Adds every source of a folder and of the folders below it.
fn add_sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn long_files_say_why_they_are_long() {
    let found = all_sources();
    let long = found.iter().filter(|(_, text)| text.lines().count() > MOST);
    let silent: Vec<String> = long
        .filter(|(_, text)| !text.lines().any(|line| line.starts_with(REASON)))
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(
        silent.is_empty(),
        "split them, or give the reason in the header (`{REASON}…`):\n{}",
        silent.join("\n")
    );
}

#[test]
fn long_functions_say_why_they_are_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut silent, mut needless, mut seen) = (Vec::new(), Vec::new(), 0);
    for (path, text) in all_sources() {
        let path = path.strip_prefix(root).unwrap();
        let reasons = text.matches(REASON_OF_FUNCTION).count();
        let functions = functions(&text);
        seen += functions.len();
        let given = functions.iter().filter(|function| function.has_reason);
        if given.count() != reasons && !path.ends_with("sources/length.rs") {
            needless.push(format!("{}: a reason above no function", path.display()));
        }
        for Function {
            name,
            lines,
            has_reason,
        } in functions
        {
            let described = format!("{}: `{name}` has {lines} lines", path.display());
            match (lines > MOST_OF_FUNCTION, has_reason) {
                (true, false) => silent.push(described),
                (false, true) => needless.push(described),
                _ => {}
            }
        }
    }
    assert!(seen > 3000, "{seen}");
    assert!(
        silent.is_empty(),
        "split them, or give the reason above them (`{REASON_OF_FUNCTION}…`):\n{}",
        silent.join("\n")
    );
    assert!(
        needless.is_empty(),
        "remove the reason:\n{}",
        needless.join("\n")
    );
}

/// The functions of a source, as rustfmt lays them out: one ends at the brace in the column of its first line.
fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let function = |(start, line): (usize, &&str)| {
        let name = function_name(line)?;
        let indent = &line[..line.len() - line.trim_start().len()];
        let body = &lines[start..];
        let opens = body.iter().position(|line| {
            let end = line.trim_end();
            end.ends_with('{') || end.ends_with('}') || end.ends_with(';')
        })?;
        // A declaration, or a function on one line.
        if !body[opens].trim_end().ends_with('{') {
            return None;
        }
        let ends = body.iter().position(|line| {
            let at_column = line.strip_prefix(indent);
            at_column.is_some_and(|rest| rest.starts_with('}'))
        })?;
        let above = lines[..start].iter().rev().map(|line| line.trim());
        let mut above = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
        Some(Function {
            name: name.to_owned(),
            lines: ends + 1,
            has_reason: above.any(|line| line.starts_with(REASON_OF_FUNCTION)),
        })
    };
    lines.iter().enumerate().filter_map(function).collect()
}

/// The name of the function that begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(visible) = rest.strip_prefix("pub") {
        rest = match visible.strip_prefix('(') {
            Some(restricted) => restricted.split_once(')')?.1,
            None => visible,
        };
        rest = rest.strip_prefix(' ')?;
    }
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

#[test]
fn functions_are_found_with_their_lengths_and_reasons() {
    let long = "    let x = 1;\n".repeat(60);
    let text = format!(
        "/// A doc.\n// Over 60 lines: a table.\n#[must_use]\npub(crate) const fn a<T>(\n    x: T,\n) -> T {{\n{long}}}\n\n\
         trait B {{\n    fn declared(&self);\n\n    async fn b(&self) {{\n        {{}}\n    }}\n}}\n"
    );
    let found = functions(&text);
    let found = found.iter().map(|f| (&*f.name, f.lines, f.has_reason));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [("a", 64, true), ("b", 3, false)]
    );
}
