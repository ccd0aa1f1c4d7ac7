//! Authentication: challenges of registries, credentials, tokens.

mod challenge;
mod docker;
mod helper;
mod token;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;

pub(crate) use challenge::Challenge;
pub use docker::{CredentialStore, Keychain};
pub(crate) use token::{Tokens, read_token, token_call};

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A user and a password.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A refresh token for the registry's token server; docker's configuration calls it an identity token.
    Identity(String),
    /// A token for the registry itself.
    Bearer(String),
}

/// Omits the secrets.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { user, .. } => write!(f, "Basic({user})"),
            Self::Identity(_) => f.write_str("Identity"),
            Self::Bearer(_) => f.write_str("Bearer"),
        }
    }
}

/// Returns `Basic …`, with user and password. Source: RFC 7617, section 2.
pub(crate) fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    sensitive(&format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    ))
}

/// Returns `Bearer …`. Source: RFC 6750, section 2.1.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}"))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
