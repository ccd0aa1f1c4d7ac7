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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_name_begins_with_a_capital() {
        assert_eq!(camel_case("frog-pond"), "FrogPond");
    }
}
