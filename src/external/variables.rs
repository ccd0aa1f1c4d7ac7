//! Environment variables that tokens may use.

use std::collections::BTreeMap;

use orkestra_core::plan::Piece;

use super::CallError;

/// The variables that `--external-env` permits, with their values at the start of the process.
///
/// The values are never displayed, and no other variable is readable: the author of a custom resource cannot read a variable by
/// naming it.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, Option<String>>);

impl Variables {
    /// Permits these names; each value is looked up once.
    pub fn new(
        names: impl IntoIterator<Item = String>,
        look_up: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let values = names.into_iter().map(|name| {
            let value = look_up(&name);
            (name, value)
        });
        Self(values.collect())
    }

    /// Returns the token that the pieces form; `None` if it is empty.
    ///
    /// # Errors
    /// [`CallError::Variable`] and [`CallError::Unset`].
    pub(super) fn expand(&self, pieces: &[Piece]) -> Result<Option<String>, CallError> {
        let mut token = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => token.push_str(text),
                Piece::Variable(name) => match self.0.get(&**name) {
                    Some(Some(value)) => token.push_str(value),
                    Some(None) => return Err(CallError::Unset(name.to_string())),
                    None => return Err(CallError::Variable(name.to_string())),
                },
            }
        }
        Ok((!token.is_empty()).then_some(token))
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_only_variables_that_are_permitted() {
        let look_up = |name: &str| (name == "SET").then(|| "planted".to_owned());
        let variables = Variables::new(["SET".to_owned(), "UNSET".to_owned()], look_up);
        let variable = |name: &str| Piece::Variable(name.into());
        let expand = |pieces: &[Piece]| variables.expand(pieces).map_err(|e| e.to_string());
        assert_eq!(expand(&[]), Ok(None));
        let whole = [Piece::Text("a-".into()), variable("SET")];
        assert_eq!(expand(&whole), Ok(Some("a-planted".to_owned())));
        assert!(
            expand(&[variable("PATH")])
                .unwrap_err()
                .contains("--external-env PATH")
        );
        assert!(
            expand(&[variable("UNSET")])
                .unwrap_err()
                .contains("not set")
        );
        assert!(!format!("{variables:?}").contains("planted"));
    }
}
