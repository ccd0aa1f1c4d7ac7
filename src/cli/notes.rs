//! `ork notes`

// Writing to a String cannot fail: those results are dropped.
use std::fmt::Write as _;

use clap::Subcommand;
use orkestra_language::diagnostics::nearest;
use orkestra_template::{NoteDoc, notes, notes_instead, search_notes};

use super::{
    Failure,
    output::{self, HEADING, NAME},
};

/// List the functions for templates
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<NotesCommand>,
    /// Limit to functions of this domain, such as string or time
    #[arg(long, global = true, value_name = "DOMAIN")]
    domain: Option<String>,
}

#[derive(Debug, Subcommand)]
enum NotesCommand {
    /// Search for functions, best match first
    ///
    /// WORDS match names and descriptions, their synonyms, such as "join strings" or "random password", and functions of
    /// Sprig and Helm, such as toYaml.
    Search {
        /// Words to search for; case-insensitive
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Print the documentation of one function, with an example
    Show {
        /// Name or alias of the function
        name: String,
    },
}

pub(crate) fn execute(args: Args) -> Result<(), Failure> {
    let mut found = notes();
    if let Some(domain) = &args.domain {
        check_domain(domain, &found)?;
        found.retain(|note| note.domain == domain);
    }
    let text = match args.what {
        None => table(&found),
        Some(NotesCommand::Search { words }) => search(&words.join(" "), args.domain.as_deref())?,
        Some(NotesCommand::Show { name }) => show(find(&name, &found)?),
    };
    Ok(output::print_text(&text)?)
}

fn check_domain(domain: &str, notes: &[NoteDoc]) -> anyhow::Result<()> {
    let mut domains: Vec<&str> = notes.iter().map(|note| note.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    anyhow::ensure!(
        domains.contains(&domain),
        "unknown domain `{domain}`; expected one of {}",
        domains.join(", ")
    );
    Ok(())
}

/// Renders the functions that match `words`, and the replacements for functions of Sprig and Helm among them.
fn search(words: &str, domain: Option<&str>) -> anyhow::Result<String> {
    let mut found = search_notes(words);
    found.retain(|note| domain.is_none_or(|domain| note.domain == domain));
    let instead = notes_instead(words);
    anyhow::ensure!(
        !(found.is_empty() && instead.is_empty()),
        "no function matches `{words}`; `ork notes` lists all functions"
    );
    let mut text = String::new();
    for (name, hint) in &instead {
        let _ = writeln!(text, "{NAME}{name}{NAME:#} of Sprig or Helm: {hint}");
    }
    if !instead.is_empty() && !found.is_empty() {
        text.push('\n');
    }
    Ok(text + &table(&found))
}

fn find<'a>(name: &str, notes: &'a [NoteDoc]) -> anyhow::Result<&'a NoteDoc> {
    let is_it = |note: &&NoteDoc| note.name == name || note.aliases.contains(&name);
    notes.iter().find(is_it).ok_or_else(|| {
        let names = notes
            .iter()
            .flat_map(|note| note.aliases.iter().copied().chain([note.name]));
        match nearest(name, names) {
            Some(near) => anyhow::anyhow!("unknown function `{name}`; did you mean `{near}`?"),
            None => {
                anyhow::anyhow!(
                    "unknown function `{name}`; to find one, run `ork notes search WORDS`"
                )
            }
        }
    })
}

/// Renders one line per function: name, domain, description.
fn table(notes: &[NoteDoc]) -> String {
    let width = |of: fn(&NoteDoc) -> usize| notes.iter().map(of).max().unwrap_or_default();
    let (name, domain) = (
        width(|note| note.name.len()),
        width(|note| note.domain.len()),
    );
    let mut text = String::new();
    for note in notes {
        let _ = writeln!(
            text,
            "{NAME}{:name$}{NAME:#}  {:domain$}  {}",
            note.name, note.domain, note.doc
        );
    }
    text
}

fn show(note: &NoteDoc) -> String {
    let mut text = format!("{NAME}{}{NAME:#}\n\n{}\n", note.signature, note.doc);
    if !note.aliases.is_empty() {
        let _ = writeln!(text, "\nAliases: {}.", note.aliases.join(", "));
    }
    if note.random {
        text.push_str(
            "\nRandom: permitted only in fields whose value is generated once and kept.\n",
        );
    }
    if note.clock {
        text.push_str("\nReads the current time.\n");
    }
    let (template, result) = note.example;
    let _ = writeln!(
        text,
        "\n{HEADING}Example:{HEADING:#}\n  {template}\n  {result}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_by_its_name_and_by_its_other_names() {
        let all = notes();
        for note in &all {
            for name in note.aliases.iter().copied().chain([note.name]) {
                assert_eq!(find(name, &all).unwrap().name, note.name);
            }
            let text = show(note);
            assert!(text.contains(note.example.0) && text.contains(&note.signature));
        }
        let error = find("replaec", &all).unwrap_err().to_string();
        assert!(error.contains("did you mean `replace`?"), "{error}");
        let error = find("qqqqqqqqqq", &all).unwrap_err().to_string();
        assert!(error.contains("ork notes search"), "{error}");
    }

    #[test]
    fn notes_are_searched_in_any_case_and_listed_in_columns() {
        let text = search("FALLBACK", None).unwrap();
        let found = search_notes("fallback");
        assert!(found.iter().any(|note| note.name == "default"));
        let columns: Vec<_> = found
            .iter()
            .zip(text.lines())
            .map(|(note, line)| line.find(note.doc).unwrap())
            .collect();
        assert!(columns.iter().all(|column| *column == columns[0]), "{text}");
    }

    #[test]
    fn a_function_of_others_is_found_with_what_to_write() {
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        let text = plain(search("b64enc", None).unwrap());
        assert!(
            text.starts_with("b64enc of Sprig or Helm: write `toBase64`"),
            "{text}"
        );
        assert!(
            text.lines().any(|line| line.starts_with("toBase64 ")),
            "{text}"
        );
        let text = search("genCA", None).unwrap();
        assert!(text.contains("`tls` of an entry in `secrets`"), "{text}");
        let error = search("zebra", None).unwrap_err().to_string();
        assert!(error.contains("no function matches `zebra`"), "{error}");
        let text = plain(search("join", Some("string")).unwrap());
        assert!(text.starts_with("join "), "{text}");
    }

    #[test]
    fn an_unknown_domain_is_reported_with_those_there_are() {
        assert!(check_domain("string", &notes()).is_ok());
        let error = check_domain("strng", &notes()).unwrap_err().to_string();
        assert!(
            error.contains("expected one of") && error.contains("string"),
            "{error}"
        );
    }
}
