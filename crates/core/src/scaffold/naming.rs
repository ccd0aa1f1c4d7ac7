//! Names of kinds.

/// Converts a name to CamelCase: `frog-pond` to `FrogPond`.
pub fn camel_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    name.split('-').map(capital).collect()
}

/// Returns the plural of an English word, by simple rules.
pub fn plural(word: &str) -> String {
    let vowel = |c: char| "aeiou".contains(c);
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(vowel) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            format!("{word}es")
        }
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_follow_the_rule() {
        for (one, many) in [
            ("pond", "ponds"),
            ("city", "cities"),
            ("key", "keys"),
            ("box", "boxes"),
            ("branch", "branches"),
        ] {
            assert_eq!(plural(one), many);
        }
        assert_eq!(camel_case("frog-pond"), "FrogPond");
    }
}
