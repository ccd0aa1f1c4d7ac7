//! The names that are available in one operator: notes and profiles.

use super::profiles::ProfileTables;
use orkestra_template::Functions;

/// The names available in one operator.
pub struct Symbols<'a> {
    /// The notes that templates may call beside the built-in functions.
    pub(crate) functions: Functions,
    /// The profiles that `profile` may name.
    pub(crate) profiles: ProfileTables<'a>,
}
