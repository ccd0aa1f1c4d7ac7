//! Environment variables in tokens.

use orkestra_egress::{Unavailable, Variables};
use orkestra_plan::Piece;

use super::CallError;

/// Returns the token that the pieces form, with the variables that `--external-env` permits; `None` if it is empty.
///
/// # Errors
/// [`CallError::Variable`] and [`CallError::Unset`].
pub(crate) fn expand(variables: &Variables, pieces: &[Piece]) -> Result<Option<String>, CallError> {
    let mut token = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => token.push_str(text),
            Piece::Variable(name) => match variables.get(name) {
                Ok(value) => token.push_str(value),
                Err(Unavailable::Unset) => return Err(CallError::Unset(name.to_string())),
                Err(Unavailable::Refused) => return Err(CallError::Variable(name.to_string())),
            },
        }
    }
    Ok((!token.is_empty()).then_some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_only_variables_that_are_permitted() {
        let look_up = |name: &str| (name == "SET").then(|| "planted".to_owned());
        let variables = Variables::new(["SET".to_owned(), "UNSET".to_owned()], look_up);
        let variable = |name: &str| Piece::Variable(name.into());
        let expand =
            |pieces: &[Piece]| super::expand(&variables, pieces).map_err(|e| e.to_string());
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
