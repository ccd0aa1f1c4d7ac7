//! Searches notes by words of their names and descriptions, by synonyms, and by the names of functions of Sprig and Helm.

use super::doc::{NoteDoc, notes};
use super::foreign;

/// Synonyms in searches for notes.
static SYNONYMS: &[&[&str]] = &[
    &[
        "password",
        "passwords",
        "random",
        "rand",
        "token",
        "generate",
        "generated",
    ],
    &["base64", "b64", "encode", "encoded", "decode", "encoding"],
    &["escape", "escaped", "encode"],
    &[
        "join",
        "combine",
        "concatenate",
        "concat",
        "glue",
        "together",
    ],
    &["split", "separate", "parts", "divide"],
    &["text", "string", "str"],
    &["list", "array", "slice", "item", "element"],
    &["map", "dict", "dictionary", "hashmap", "object"],
    &["hash", "checksum", "digest", "sha", "sha256", "fingerprint"],
    &["upper", "uppercase", "capital", "case"],
    &["lower", "lowercase", "case"],
    &["time", "date", "timestamp", "now", "clock"],
    &["duration", "interval", "period", "seconds"],
    &["age", "ago", "old", "since"],
    &["json", "yaml", "serialize", "marshal", "parse"],
    &["integer", "int", "number", "convert", "cast"],
    &["decimal", "float", "convert", "cast"],
    &["boolean", "bool", "convert", "cast"],
    &["default", "fallback", "missing", "otherwise", "coalesce"],
    &["ternary", "choose", "conditional", "condition", "if"],
    &["trim", "strip", "remove", "whitespace"],
    &["truncate", "shorten", "trunc", "limit", "abbreviate"],
    &["replace", "substitute", "indent", "newline"],
    &["has", "contains", "includes", "member", "membership"],
    &["address", "url", "uri", "host", "hostname", "domain"],
    &["semver", "version", "constraint"],
    &["quantity", "cpu", "memory", "resources"],
    &["cron", "schedule"],
    &["network", "ip", "cidr", "subnet"],
    &["uuid", "guid", "id"],
    &["length", "len", "size", "count", "number"],
    &["slug", "slugify", "sanitize", "dns"],
    &["add", "plus", "sum", "increment"],
    &["sub", "subtract", "minus", "difference", "decrement"],
    &["mul", "multiply", "product"],
    &["div", "divide", "quotient"],
    &["mod", "modulo", "remainder"],
    &["ready", "available", "healthy"],
    &["restart", "crash", "crashloop", "oom"],
    &["format", "printf", "sprintf", "interpolate"],
    &["valid", "validate", "check", "isvalid"],
];

/// Words that do not distinguish notes.
const IDLE: [&str; 18] = [
    "a", "an", "the", "to", "of", "in", "into", "from", "for", "with", "and", "as", "how", "is",
    "on", "by", "value", "two",
];

/// The scores of a match: the name itself, a function that the note replaces, a part of the name, its domain, its
/// description.
const NAME: u32 = 100;
const FUNCTION: u32 = 80;
const PART: u32 = 30;
const DOMAIN: u32 = 12;
const DOC: u32 = 10;
/// The divisor of the score for a synonym.
const SYNONYM: u32 = 2;

/// Finds the notes for `words`, best match first.
///
/// The search ignores case. A note matches if each word matches, as written or as a synonym. If no note matches all words,
/// those that match the most are returned.
pub fn search_notes(words: &str) -> Vec<NoteDoc> {
    let words = words.to_lowercase();
    let given: Vec<&str> = words
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .collect();
    let reporting = given.iter().copied().filter(|word| !IDLE.contains(word));
    let mut reporting: Vec<&str> = reporting.collect();
    if reporting.is_empty() {
        reporting = given;
    }
    let mut found: Vec<(usize, u32, NoteDoc)> = notes()
        .into_iter()
        .filter_map(|note| {
            let scores: Vec<u32> = reporting.iter().map(|word| score(&note, word)).collect();
            let fitting = scores.iter().filter(|score| **score > 0).count();
            (fitting > 0).then(|| (fitting, scores.iter().sum(), note))
        })
        .collect();
    let most = found
        .iter()
        .map(|(fitting, ..)| *fitting)
        .max()
        .unwrap_or_default();
    found.retain(|(fitting, ..)| *fitting == most);
    // The sort is stable: equal scores stay sorted by name.
    found.sort_by_key(|(_, score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, _, note)| note).collect()
}

/// Returns the replacements for the functions of Sprig and Helm among `words`, each with the name of the function.
pub fn notes_instead(words: &str) -> Vec<(&str, &'static str)> {
    let words = words.split(|c: char| c.is_whitespace() || c == ',');
    words
        .filter_map(|word| Some((word, foreign::instead(word)?)))
        .collect()
}

fn score(note: &NoteDoc, word: &str) -> u32 {
    let alike = SYNONYMS
        .iter()
        .filter(|group| group.contains(&word) || group.contains(&stem(word)));
    let others = alike
        .flat_map(|group| *group)
        .filter(|other| **other != word);
    let others = others
        .map(|other| direct(note, other) / SYNONYM)
        .max()
        .unwrap_or_default();
    let replaces = foreign::notes_for(word).any(|name| name == note.name);
    let replaces = if replaces { FUNCTION } else { 0 };
    direct(note, word).max(others).max(replaces)
}

/// Scores a word as written, or without the ending of a plural.
fn direct(note: &NoteDoc, word: &str) -> u32 {
    let (given, word) = (word, stem(word));
    let names = || {
        note.aliases
            .iter()
            .copied()
            .chain([note.name])
            .map(str::to_lowercase)
    };
    if names().any(|name| name == given) {
        return NAME;
    }
    if names().any(|name| name == word) {
        return FUNCTION;
    }
    // Short words are parts of too many names.
    if word.len() > 2 && names().any(|name| name.contains(word)) {
        return PART;
    }
    if note.domain == word {
        return DOMAIN;
    }
    let doc = note.doc.to_lowercase();
    let mut words = doc.split(|c: char| !c.is_ascii_alphanumeric());
    let is_it = |other: &str| other == word || (word.len() > 3 && other.starts_with(word));
    if words.any(is_it) { DOC } else { 0 }
}

fn stem(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 3 && !stem.ends_with('s') => stem,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches, each with a note that must be among the first results.
    const SEARCHES: &[(&str, &str)] = &[
        ("base64", "toBase64"),
        ("decode base64", "fromBase64"),
        ("random password", "randomAlphanumeric"),
        ("join strings", "join"),
        ("indent yaml", "toJson"),
        ("indent", "replace"),
        ("b64enc", "toBase64"),
        ("toYaml", "toJson"),
        ("nindent", "replace"),
        ("trunc", "truncateName"),
        ("hasKey", "mapGet"),
        ("first", "listGet"),
        ("randAlphaNum", "randomAlphanumeric"),
        ("uppercase", "toUpper"),
        ("fallback", "default"),
        ("FALLBACK", "default"),
        ("length of a list", "listLen"),
        ("parse json", "asMap"),
        ("shorten a text", "truncate"),
        ("checksum", "sha256sum"),
        ("compare versions", "semverCompare"),
        ("next run of a schedule", "nextCron"),
        ("age of a timestamp", "timeAgo"),
        ("sum of memory", "sumQuantity"),
        ("keys of a map", "mapKeys"),
        ("format a date", "timeFormat"),
        ("convert to int", "toInt"),
        ("restarts", "podMaxRestarts"),
    ];

    #[test]
    fn notes_are_found_by_what_they_are_for() {
        let mut missed = Vec::new();
        for (words, wanted) in SEARCHES {
            let found = search_notes(words);
            let first: Vec<&str> = found.iter().take(8).map(|note| note.name).collect();
            if !first.contains(wanted) {
                missed.push(format!("{words}: {wanted} is not among {first:?}"));
            }
        }
        assert!(missed.is_empty(), "{}", missed.join("\n"));
    }

    #[test]
    fn the_note_of_a_name_is_the_first() {
        for note in notes() {
            let found = search_notes(note.name);
            assert_eq!(found.first().map(|found| found.name), Some(note.name));
        }
    }

    #[test]
    fn what_nothing_is_for_finds_nothing() {
        assert!(search_notes("zebra").is_empty());
        assert!(search_notes("").is_empty() && search_notes("  ").is_empty());
    }

    #[test]
    fn functions_of_others_come_with_what_to_write() {
        let [(name, hint)] = *notes_instead("toYaml pretty") else {
            panic!("expected one result");
        };
        assert_eq!(name, "toYaml");
        assert!(hint.contains("`toJson`"));
    }
}
