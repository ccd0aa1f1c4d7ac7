//! Replacements for the syntax of other languages.

/// Words of other template languages and their replacements.
const WORDS: &[(&str, &str)] = &[
    ("elif", "write `else if`"),
    ("elseif", "write `else if`"),
    ("elsif", "write `else if`"),
    ("endfor", "write `end`"),
    ("endif", "write `end`"),
    ("endrange", "write `end`"),
    ("endwith", "write `end`"),
    ("for", "write `range $item := .list`"),
    ("foreach", "write `range $item := .list`"),
    ("set", "a variable is declared with `$name := value`"),
    ("let", "a variable is declared with `$name := value`"),
    ("unless", "write `if not A`"),
];

/// Returns the replacement for a word that is not a note.
pub(crate) fn word(word: &str) -> Option<&'static str> {
    let known = WORDS.iter().find(|(theirs, _)| *theirs == word);
    known.map(|(_, ours)| *ours)
}

/// Returns the replacement for a method that values have in Helm: `.Files.Get "x"`, `.Capabilities.APIVersions.Has "x"`.
pub(crate) fn method(source: &str) -> Option<&'static str> {
    let path: String = source
        .chars()
        .take_while(|c| c.is_alphanumeric() || "._".contains(*c))
        .collect();
    let is_of = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    if is_of(".Files") {
        return Some(
            "templates cannot read files: write the text under `data` of an entry in `configMaps`",
        );
    }
    is_of(".Capabilities").then_some(
        "templates cannot read the version of the cluster: put values that depend on it into the custom resource's `.spec`",
    )
}

/// Returns the replacement for the character at the start of `rest`.
pub(crate) fn character(rest: &str) -> Option<&'static str> {
    let mut chars = rest.chars();
    let (first, second) = (chars.next()?, chars.next());
    Some(match (first, second) {
        ('}', _) => "an action ends with `}}`",
        ('<', Some('/' | 'a'..='z' | 'A'..='Z')) => "end the action before it with `}}`",
        ('<', _) => "`lt A B` compares",
        ('>', _) => "`gt A B` compares",
        ('!', Some('=')) => "`ne A B` compares",
        ('=', _) => "`eq A B` compares; `=` assigns to a variable such as `$x`",
        ('&', _) => "write `and A B`",
        ('|', Some('|')) => "write `or A B`",
        ('!', _) => "write `not A`",
        ('?', _) => "write `ternary CONDITION A B`",
        ('+', _) => "write `add A B`",
        ('-', _) => "write `sub A B`",
        ('*', _) => "write `mul A B`",
        ('/', _) => "write `div A B`",
        ('%', _) => "write `mod A B`",
        (':', Some('=')) => "a variable begins with `$`: `$x := .spec.x`",
        ('[', _) => "an item is read with `index .list 0`, a key with `get .map \"key\"`",
        ('\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}', _) => {
            "enclose text in straight double quotes"
        }
        (',', _) => "separate arguments with spaces, not with commas",
        ('(', _) => "arguments follow the function, separated by spaces: `name A B`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes;

    #[test]
    fn the_notes_that_are_recommended_exist() {
        let symbols = "<>!&?+-*/%[".chars().map(|c| c.to_string());
        let texts = symbols.chain(["!=".to_owned(), "||".to_owned(), "=".to_owned()]);
        for text in texts {
            let hint = character(&text).unwrap();
            let name = hint.split('`').nth(1).unwrap().split(' ').next().unwrap();
            assert!(notes::find(name).is_some(), "{text}: {hint}");
        }
    }

    #[test]
    fn no_note_hides_a_word_of_another_language() {
        for (word, _) in WORDS {
            assert!(notes::find(word).is_none(), "{word}");
        }
    }
}
