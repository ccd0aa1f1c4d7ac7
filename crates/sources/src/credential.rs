//! Credentials of sources.

use std::{collections::BTreeMap, fmt};

use ::http::HeaderValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_registry::{Credential as Login, Keychain};
use sha2::{Digest as _, Sha256};

use super::Error;

/// A credential for one source. Its secrets are never displayed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// User and password.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Bearer(String),
    /// A token of GitHub, which takes it as a password.
    GitHub(String),
    /// The contents of a Secret of type `kubernetes.io/dockerconfigjson`.
    Docker(String),
}

/// How the text of an environment variable is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `user:password`.
    Basic,
    /// A token.
    Bearer,
    /// A token of GitHub.
    GitHub,
}

impl Credential {
    /// Reads a Secret, by its type and data.
    ///
    /// Accepted are `kubernetes.io/dockerconfigjson`, `kubernetes.io/basic-auth`, and others that contain `username` and `password`,
    /// or `token` (or `bearerToken`).
    ///
    /// # Errors
    /// [`Error::Credential`]; `name` is the Secret in the message.
    pub fn of_secret(
        name: &str,
        type_: &str,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Credential(format!("Secret {name}"), why.to_owned());
        let text = |key: &str| -> Result<Option<String>, Error> {
            let Some(bytes) = data.get(key) else {
                return Ok(None);
            };
            let text = std::str::from_utf8(bytes);
            let text = text.map_err(|_| wrong(&format!("have a {key} that is not UTF-8")))?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        };
        if type_ == "kubernetes.io/ssh-auth" || data.contains_key("ssh-privatekey") {
            return Err(wrong(
                "are an SSH key: SSH is not supported; use an HTTPS URL with a token",
            ));
        }
        if let Some(config) = text(".dockerconfigjson")? {
            Keychain::of_secret(&config).map_err(|_| wrong("are not a docker configuration"))?;
            return Ok(Self::Docker(config));
        }
        for key in ["token", "bearerToken"] {
            if let Some(token) = text(key)? {
                return Ok(Self::Bearer(token));
            }
        }
        match (text("username")?, text("password")?) {
            (user, Some(password)) => Ok(Self::Basic {
                user: user.unwrap_or_default(),
                password,
            }),
            _ => Err(wrong(
                "have no key that is supported: `.dockerconfigjson`, `username` and `password`, or `token`",
            )),
        }
    }

    /// Reads the text of an environment variable.
    ///
    /// # Errors
    /// [`Error::Credential`] if it is `user:password` without a colon; `name` is the variable in the message.
    pub fn of_text(scheme: Scheme, name: &str, text: &str) -> Result<Self, Error> {
        let text = text.trim();
        match scheme {
            Scheme::Bearer => Ok(Self::Bearer(text.to_owned())),
            Scheme::GitHub => Ok(Self::GitHub(text.to_owned())),
            Scheme::Basic => {
                let (user, password) = text.split_once(':').ok_or_else(|| {
                    let why = "are not `user:password`, as `type: basic` requires";
                    Error::Credential(format!("variable {name}"), why.to_owned())
                })?;
                Ok(Self::Basic {
                    user: user.to_owned(),
                    password: password.to_owned(),
                })
            }
        }
    }

    /// The credentials of a registry.
    pub(crate) fn keychain(&self) -> Result<Keychain, Error> {
        let basic = |user: &str, password: &str| {
            Keychain::given(Login::Basic {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        };
        Ok(match self {
            Self::Docker(config) => Keychain::of_secret(config)?,
            Self::Basic { user, password } => basic(user, password),
            Self::Bearer(token) => Keychain::given(Login::Bearer(token.clone())),
            Self::GitHub(token) => basic("x-access-token", token),
        })
    }

    /// The `Authorization` header for a host.
    pub(crate) async fn header(&self, host: &str) -> Result<Option<HeaderValue>, Error> {
        let basic = |user: &str, password: &str| {
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        };
        let text = match self {
            Self::Basic { user, password } => basic(user, password),
            Self::GitHub(token) => basic("x-access-token", token),
            Self::Bearer(token) => format!("Bearer {token}"),
            Self::Docker(config) => match Keychain::of_secret(config)?.find(host).await? {
                Some(Login::Basic { user, password }) => basic(&user, &password),
                Some(Login::Bearer(token) | Login::Identity(token)) => format!("Bearer {token}"),
                None => return Ok(None),
            },
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let why = "have a line break or another character that headers cannot contain";
            Error::Credential(host.to_owned(), why.to_owned())
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Distinguishes credentials without containing them.
    pub(crate) fn mark(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let parts: [&str; 3] = match self {
            Self::Basic { user, password } => ["basic", user, password],
            Self::Bearer(token) => ["bearer", token, ""],
            Self::GitHub(token) => ["github", token, ""],
            Self::Docker(config) => ["docker", config, ""],
        };
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

/// Omits the secrets.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic",
            Self::Bearer(_) => "Bearer",
            Self::GitHub(_) => "GitHub",
            Self::Docker(_) => "Docker",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(type_: &str, data: &[(&str, &str)]) -> Result<Credential, String> {
        let data = data.iter();
        let data = data.map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Credential::of_secret("pull", type_, &data.collect()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn secrets_are_read_by_what_they_contain() {
        let basic = secret(
            "kubernetes.io/basic-auth",
            &[("username", "u"), ("password", "planted\n")],
        )
        .unwrap();
        let header = basic.header("h").await.unwrap().unwrap();
        assert_eq!(header, format!("Basic {}", STANDARD.encode("u:planted")));
        assert!(!format!("{basic:?} {header:?}").contains("planted"));
        let bearer = secret("Opaque", &[("token", "t")]).unwrap();
        assert_eq!(bearer.header("h").await.unwrap().unwrap(), "Bearer t");
        let docker = r#"{"auths": {"reg.example": {"auth": "dTpw"}}}"#;
        let docker = secret(
            "kubernetes.io/dockerconfigjson",
            &[(".dockerconfigjson", docker)],
        );
        let docker = docker.unwrap();
        assert_eq!(
            docker.header("reg.example").await.unwrap().unwrap(),
            "Basic dTpw"
        );
        assert_eq!(docker.header("other.example").await.unwrap(), None);
        assert_ne!(docker.mark(), basic.mark());
    }

    #[test]
    fn ssh_keys_and_empty_secrets_are_refused_with_a_reason() {
        let ssh = secret("kubernetes.io/ssh-auth", &[("ssh-privatekey", "x")]).unwrap_err();
        assert!(ssh.contains("SSH is not supported"), "{ssh}");
        let other = secret("Opaque", &[("x", "planted")]).unwrap_err();
        assert!(other.contains("`.dockerconfigjson`") && !other.contains("planted"));
        let text = Credential::of_text(Scheme::Basic, "LOGIN", "planted").unwrap_err();
        assert!(!text.to_string().contains("planted"));
    }
}
