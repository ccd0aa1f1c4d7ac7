//! Docker's `config.json` and its credential helpers.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Credential, helper};
use crate::Error;

/// The key of Docker Hub, regardless of its registry's host.
const HUB: &str = "https://index.docker.io/v1/";
/// The maximum length of a configuration, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A source of credentials.
#[derive(Clone, Debug, Default)]
pub struct Keychain {
    /// The caller's credential, for every registry.
    given: Option<Credential>,
    /// Docker's configuration.
    config: Option<Value>,
    /// Its file; `None` if it is not from a file.
    file: Option<PathBuf>,
}

/// The place where a credential was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialStore {
    /// A file, as base64, which is not encrypted.
    File(PathBuf),
    /// This credential helper.
    Helper(String),
}

impl Keychain {
    /// Contains no credentials.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Uses this credential for every registry.
    pub fn given(credential: Credential) -> Self {
        Self {
            given: Some(credential),
            ..Self::default()
        }
    }

    /// Reads docker's configuration, as in a Secret of type `kubernetes.io/dockerconfigjson`. The credential helpers in it
    /// are run, so the text must be the user's own: see [`Keychain::of_secret`].
    fn of_config(text: &str, what: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::Configuration {
            file: what.display().to_string(),
            why,
        };
        if text.len() > MOST_BYTES {
            return Err(wrong("it is too large".to_owned()));
        }
        let config: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if !config.is_object() {
            return Err(wrong("it is not a JSON object".to_owned()));
        }
        Ok(Self {
            given: None,
            config: Some(config),
            file: None,
        })
    }

    /// Reads a Secret of type `kubernetes.io/dockerconfigjson`. The credential helpers in it are not run.
    ///
    /// # Errors
    /// [`Error::Configuration`] if the text is not such a configuration.
    pub fn of_secret(text: &str) -> Result<Self, Error> {
        let mut keychain = Self::of_config(text, Path::new(".dockerconfigjson"))?;
        if let Some(Value::Object(config)) = &mut keychain.config {
            config.remove("credHelpers");
            config.remove("credsStore");
        }
        Ok(keychain)
    }

    /// Reads the user's configuration: `config.json` in `$DOCKER_CONFIG`, else in `~/.docker`.
    ///
    /// # Errors
    /// [`Error::Configuration`] if the file exists and cannot be read.
    pub fn of_user() -> Result<Self, Error> {
        let folder = env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty());
        let folder = folder
            .map(PathBuf::from)
            .or_else(|| Some(env::home_dir()?.join(".docker")));
        folder.map_or_else(
            || Ok(Self::default()),
            |folder| Self::of_file(folder.join("config.json")),
        )
    }

    /// Reads a file, which need not exist.
    ///
    /// # Errors
    /// [`Error::Configuration`] if it exists and cannot be read.
    pub fn of_file(file: PathBuf) -> Result<Self, Error> {
        let mut keychain = match fs::read_to_string(&file) {
            Ok(text) => Self::of_config(&text, &file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(unreadable(&file, &error)),
        };
        keychain.file = Some(file);
        Ok(keychain)
    }

    /// Returns the credential for a registry, if there is one.
    ///
    /// # Errors
    /// [`Error::Configuration`] if a credential helper fails.
    pub async fn find(&self, host: &str) -> Result<Option<Credential>, Error> {
        if self.given.is_some() {
            return Ok(self.given.clone());
        }
        let key = key(host);
        if let Some(helper) = self.helper(host)
            && let Some(credential) = helper::ask(&helper, key).await?
        {
            return Ok(Some(credential));
        }
        let auths = self
            .config
            .as_ref()
            .and_then(|config| config.get("auths")?.as_object());
        let entry = auths.and_then(|auths| {
            let spelled = [
                key.to_owned(),
                format!("https://{key}"),
                format!("https://{key}/v1/"),
                format!("http://{key}"),
            ];
            spelled.iter().find_map(|key| auths.get(key))
        });
        Ok(entry.and_then(read_entry))
    }

    /// Returns the helper for a registry: its own, else the default helper.
    fn helper(&self, host: &str) -> Option<String> {
        let config = self.config.as_ref()?;
        let own = config
            .get("credHelpers")
            .and_then(|helpers| helpers.get(key(host)));
        let name = own.or_else(|| config.get("credsStore"))?.as_str()?;
        Some(name.to_owned()).filter(|name| !name.is_empty())
    }

    /// Stores a credential as docker does: with the helper for the registry if there is one, else in the file.
    ///
    /// # Errors
    /// [`Error::Configuration`] if neither can be written.
    pub async fn store(
        &mut self,
        host: &str,
        user: &str,
        password: &str,
    ) -> Result<CredentialStore, Error> {
        if let Some(helper) = self.helper(host) {
            let entry = json!({"ServerURL": key(host), "Username": user, "Secret": password});
            helper::run(&helper, "store", &entry.to_string()).await?;
            return Ok(CredentialStore::Helper(helper));
        }
        let auth = STANDARD.encode(format!("{user}:{password}"));
        let file = self.write(|auths| {
            auths.insert(key(host).to_owned(), json!({"auth": auth}));
        })?;
        Ok(CredentialStore::File(file))
    }

    /// Removes the credential for a registry; returns false if there was none.
    ///
    /// # Errors
    /// [`Error::Configuration`] if the file or the helper fails.
    pub async fn erase(&mut self, host: &str) -> Result<bool, Error> {
        let found = self.find(host).await?.is_some();
        if let Some(helper) = self.helper(host) {
            helper::run(&helper, "erase", key(host)).await?;
        }
        let is_in_file = self
            .config
            .as_ref()
            .is_some_and(|config| config["auths"].get(key(host)).is_some());
        if is_in_file {
            self.write(|auths| {
                auths.remove(key(host));
            })?;
        }
        Ok(found)
    }

    /// Changes the entries of the file and keeps all other content. The file is replaced in one step, and readable only by
    /// its owner.
    fn write(&mut self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<PathBuf, Error> {
        let no_home = || Error::Configuration {
            file: "config.json".to_owned(),
            why: "there is no home folder for it: set DOCKER_CONFIG to a folder".to_owned(),
        };
        let file = self.file.clone().ok_or_else(no_home)?;
        // Keeps changes that another process wrote in the meantime.
        let fresh = Self::of_file(file.clone())?;
        let mut config = fresh.config.unwrap_or_else(|| json!({}));
        let auths = &mut config["auths"];
        if !auths.is_object() {
            *auths = json!({});
        }
        if let Value::Object(auths) = auths {
            change(auths);
        }
        let failed = |error: &io::Error| unreadable(&file, error);
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        // A temporary file is readable only by its owner, and keeps its mode.
        let mut written =
            tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        let text = serde_json::to_string_pretty(&config).unwrap_or_default() + "\n";
        written
            .write_all(text.as_bytes())
            .map_err(|error| failed(&error))?;
        written
            .persist(&file)
            .map_err(|error| failed(&error.error))?;
        self.config = Some(config);
        Ok(file)
    }
}

/// Returns the key of a registry in docker's configuration.
fn key(host: &str) -> &str {
    match host {
        "docker.io" | "index.docker.io" | "registry-1.docker.io" => HUB,
        host => host,
    }
}

fn read_entry(entry: &Value) -> Option<Credential> {
    let text = |key: &str| entry.get(key)?.as_str().filter(|text| !text.is_empty());
    if let Some(token) = text("identitytoken") {
        return Some(Credential::Identity(token.to_owned()));
    }
    if let Some(token) = text("registrytoken") {
        return Some(Credential::Bearer(token.to_owned()));
    }
    if let (Some(user), Some(password)) = (text("username"), text("password")) {
        return Some(Credential::Basic {
            user: user.to_owned(),
            password: password.to_owned(),
        });
    }
    let both = STANDARD.decode(text("auth")?.trim()).ok()?;
    let both = String::from_utf8(both).ok()?;
    let (user, password) = both.split_once(':')?;
    Some(Credential::Basic {
        user: user.to_owned(),
        password: password.trim_end_matches('\0').to_owned(),
    })
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    Error::Configuration {
        file: file.display().to_string(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(user: &str, password: &str) -> Credential {
        Credential::Basic {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    #[tokio::test]
    async fn entries_are_read_in_every_form_that_docker_writes() {
        let text = json!({"auths": {
            "a.example": {"auth": STANDARD.encode("u:p:with:colons")},
            "https://b.example": {"username": "v", "password": "q"},
            "c.example": {"auth": "", "identitytoken": "t"},
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("hub:x")},
            "d.example": {"auth": "%%%"},
        }});
        let keychain = Keychain::of_secret(&text.to_string()).unwrap();
        for (host, expected) in [
            ("a.example", Some(user("u", "p:with:colons"))),
            ("b.example", Some(user("v", "q"))),
            ("c.example", Some(Credential::Identity("t".to_owned()))),
            ("docker.io", Some(user("hub", "x"))),
            ("d.example", None),
            ("e.example", None),
        ] {
            assert_eq!(keychain.find(host).await.unwrap(), expected, "{host}");
        }
        assert!(Keychain::of_secret("[]").is_err());
    }

    #[tokio::test]
    async fn a_login_keeps_what_else_is_in_the_file_and_nobody_else_reads_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("docker/config.json");
        let mut keychain = Keychain::of_file(file.clone()).unwrap();
        assert_eq!(
            keychain.store("a.example", "u", "p").await.unwrap(),
            CredentialStore::File(file.clone())
        );
        fs::write(
            &file,
            r#"{"auths":{"b.example":{"auth":"eDp5"}},"HttpHeaders":{"x":"y"}}"#,
        )
        .unwrap();
        keychain.store("a.example", "u", "p").await.unwrap();
        let config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(config["HttpHeaders"]["x"], "y");
        assert_eq!(config["auths"]["b.example"]["auth"], "eDp5");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        let mut keychain = Keychain::of_file(file).unwrap();
        assert_eq!(
            keychain.find("a.example").await.unwrap(),
            Some(user("u", "p"))
        );
        assert!(keychain.erase("a.example").await.unwrap());
        assert!(!keychain.erase("a.example").await.unwrap());
        assert_eq!(
            keychain.find("b.example").await.unwrap(),
            Some(user("x", "y"))
        );
    }

    #[tokio::test]
    async fn a_helper_that_is_not_there_or_has_a_path_for_a_name_is_an_error() {
        for helper in ["no-such-helper", "../../bin/sh", "a b"] {
            let config = json!({"credHelpers": {"a.example": helper}}).to_string();
            let keychain = Keychain::of_config(&config, Path::new("config.json")).unwrap();
            let error = keychain.find("a.example").await.unwrap_err();
            assert!(error.to_string().contains("credential helper"), "{error}");
            let secret = Keychain::of_secret(&config).unwrap();
            assert_eq!(
                secret.find("a.example").await.unwrap(),
                None,
                "a Secret ran a helper"
            );
        }
    }
}
