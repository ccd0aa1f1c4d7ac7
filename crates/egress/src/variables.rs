//! Environment variables that documents may use.

use std::collections::BTreeMap;

/// The variables that a flag permits, with their values at the start of the process.
///
/// The values are never displayed, and no other variable is readable: the author of a document cannot read a variable by naming it.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, Option<String>>);

/// Why a variable has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is not permitted.
    Refused,
    /// It is permitted, and not set.
    Unset,
}

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

    /// Returns the value of a variable.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn get(&self, name: &str) -> Result<&str, Unavailable> {
        match self.0.get(name) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(Unavailable::Unset),
            None => Err(Unavailable::Refused),
        }
    }
}

/// The names.
impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
