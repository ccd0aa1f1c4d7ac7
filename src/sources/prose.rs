//! The wording of documents and messages: words that the glossary replaces are not used.

use std::path::{Path, PathBuf};

/// Words that a reader who knows Kubernetes stops at, and what to write instead.
const WORDS: [(&str, &str); 28] = [
    ("a right is", "a permission is"),
    ("anew", "again"),
    ("anybody", "any client, or any user"),
    ("are told", "are reported"),
    ("asks nothing", "has no test"),
    ("beside what", "in addition to the fields that"),
    ("drive out", "preempt"),
    ("everybody", "all clients, or all users"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("in vain", "unnecessarily"),
    ("is no name", "is not a valid name"),
    ("is there twice", "is a duplicate"),
    ("is told", "is reported"),
    ("lead astray", "mislead"),
    ("let go", "release"),
    ("mend", "fix"),
    ("nobody", "no client, or the client that acts"),
    ("lives in a namespace", "is namespaced"),
    ("made once", "created once, or generated once"),
    ("put back", "restored"),
    ("rights", "permissions"),
    ("somebody", "a client, or a user"),
    ("tells", "reports, or determines"),
    ("the like", "such as, with examples"),
    ("told", "reported"),
    ("was told", "was reported"),
    ("whoever", "the client that, or anyone who"),
];

/// Words that names do not contain, and what to use instead: each once stood for several things.
const NAMES: [(&str, &str); 9] = [
    ("chance", "random"),
    ("crew", "workers"),
    ("lexicon", "names"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("misfit", "mismatch"),
    ("mood", "behaviour"),
    ("told", "reported"),
    ("tells", "reports, or shows"),
];

/// Files below `folder` whose names end in `end`.
pub(crate) fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "tests", ".git", "dist"].contains(&&*name) {
                files(&path, end, found);
            }
        } else if name.ends_with(end) && name != "tests.rs" && name != "prose.rs" {
            found.push(path);
        }
    }
}

/// Returns a line without the text in backticks: names and code are no prose.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The prose of a Markdown document, by line; nothing for lines of code.
fn of_markdown(text: &str) -> Vec<String> {
    let mut in_code = false;
    let prose = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if fence || in_code {
            String::new()
        } else {
            without_code(line)
        }
    };
    text.lines().map(prose).collect()
}

/// The prose of a source, by line: documentation, and text literals of several words.
fn of_source(text: &str) -> Vec<String> {
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let prose = |line: &str| {
        let line = line.trim_start();
        if line.starts_with("///") || line.starts_with("//!") {
            without_code(line)
        } else if line.starts_with("//") {
            String::new()
        } else {
            let literals = line.split('"').skip(1).step_by(2);
            let sentences = literals.filter(|literal| literal.contains(' '));
            sentences.map(without_code).collect::<Vec<_>>().join("\n")
        }
    };
    own.lines().map(prose).collect()
}

/// The words of the names in a line of code, without texts and comments.
fn words_of_names(line: &str) -> Vec<String> {
    let code: String = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let code = code.split("//").next().unwrap_or_default();
    let names = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut words = Vec::new();
    for name in names.flat_map(|name| name.split('_')) {
        let mut word = String::new();
        for c in name.chars() {
            if c.is_ascii_uppercase() && word.chars().any(|c| c.is_ascii_lowercase()) {
                words.push(std::mem::take(&mut word).to_ascii_lowercase());
            }
            word.push(c);
        }
        words.push(word.to_ascii_lowercase());
    }
    words
}

/// Returns where `text` has `words` as whole words.
fn has(text: &str, words: &str) -> bool {
    let text = &text.to_lowercase();
    let is_letter = |end: Option<char>| end.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back())
            && !is_letter(text[at + words.len()..].chars().next())
    })
}

/// Returns a message for each word of a line that the glossary replaces; `number` counts lines from 0.
fn replaced(path: &Path, number: usize, line: &str) -> Vec<String> {
    let path = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
    let found = WORDS.iter().filter(|(words, _)| has(line, words));
    found
        .map(|(words, instead)| {
            let at = format!("{}:{}", path.display(), number + 1);
            format!("{at}: `{words}`: write {instead}")
        })
        .collect()
}

#[test]
fn documents_and_messages_use_the_words_of_the_glossary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut documents, mut sources) = (Vec::new(), Vec::new());
    super::links::documents(&mut documents);
    files(
        &root.join("crates/language/src/diagnostics"),
        ".md",
        &mut documents,
    );
    for folder in ["src", "crates"] {
        files(&root.join(folder), ".rs", &mut sources);
    }
    sources.retain(|path| !path.starts_with(root.join("crates/testbed")));
    assert!(documents.len() > 60, "{}", documents.len());
    assert!(sources.len() > 500, "{}", sources.len());

    let mut found = Vec::new();
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let prose = (documents
        .iter()
        .map(|path| (path, of_markdown(&read(path)))))
    .chain(sources.iter().map(|path| (path, of_source(&read(path)))));
    for (path, lines) in prose {
        for (number, line) in lines.iter().enumerate() {
            found.extend(replaced(path, number, line));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_use_the_words_of_the_glossary() {
    let mut found = Vec::new();
    let sources = super::length::all_sources().into_iter();
    for (path, text) in sources.filter(|(path, _)| !path.ends_with("src/sources/prose.rs")) {
        let lines = text.lines().map(str::trim_start).enumerate();
        for (number, line) in lines.filter(|(_, line)| line.starts_with("//")) {
            found.extend(replaced(&path, number, &without_code(line)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn names_use_the_words_of_the_glossary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let sources = super::length::all_sources().into_iter();
    for (path, text) in sources.filter(|(path, _)| !path.ends_with("src/sources/prose.rs")) {
        for (number, line) in text.lines().enumerate() {
            let words = words_of_names(line);
            for (word, instead) in NAMES {
                if words.iter().any(|one| one == word) {
                    let path = path.strip_prefix(root).unwrap().display();
                    found.push(format!("{path}:{}: `{word}`: use {instead}", number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn names_are_split_into_words() {
    let words = words_of_names("fn until_told(of: BaseMood) -> \"is told\" // told");
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|one| !one.is_empty())
        .collect();
    assert_eq!(words, ["fn", "until", "told", "of", "base", "mood"]);
}

#[test]
fn code_is_no_prose() {
    let text = "He `told` us.\n```\ntold\n```\ntold";
    let found: Vec<bool> = of_markdown(text)
        .iter()
        .map(|line| has(line, "told"))
        .collect();
    assert_eq!(found, [false, false, false, false, true]);
    let text = "let told = 1;\n/// Is told.\nf(\"was told so\", \"told\"); // told";
    let found: Vec<bool> = of_source(text)
        .iter()
        .map(|line| has(line, "told"))
        .collect();
    assert_eq!(found, [false, true, true]);
}

/// `onReconcile` is how documents and examples keep children as declared; other forms are for older documents.
#[test]
fn children_are_kept_as_declared_in_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut shown = Vec::new();
    super::links::documents(&mut shown);
    for folder in [
        "examples",
        "crates/author/src/init",
        "docs/reference/samples",
    ] {
        files(&root.join(folder), ".yaml", &mut shown);
    }
    let elsewhere = ["docs/reference/older-documents.md", "CHANGELOG.md"];
    shown.retain(|path| !elsewhere.iter().any(|name| *path == root.join(name)));
    assert!(shown.len() > 150, "{}", shown.len());
    let has = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.contains("reconcile: true")
    };
    let found: Vec<_> = shown.iter().filter(|path| has(path)).collect();
    assert!(
        found.is_empty(),
        "declare them under `onReconcile`: {found:#?}"
    );
}
