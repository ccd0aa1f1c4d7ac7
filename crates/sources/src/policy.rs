//! The required signatures: those of the source itself, or those of the runtime's policy.

use jiff::Timestamp;
use orkestra_registry::{
    Client, Digest, Repository,
    signature::{Format, Identity, PublicKey, Signer, TrustedRoot, verify_by},
};
use serde::Deserialize;

use crate::{Error, Verified};

/// The longest policy, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A requirement for signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct SignatureRequirement {
    signers: Vec<Signer>,
    /// Whether a missing signature is only reported.
    warns: bool,
}

impl SignatureRequirement {
    /// Requires a signature by one of these keys, in PEM.
    ///
    /// # Errors
    /// [`BadPolicy`] if there is no key, or one cannot be used.
    pub fn keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<Self, BadPolicy> {
        Self::of(keys, None)
    }

    /// Requires a signature by one of these keys, in PEM, or by a certificate of the identity.
    ///
    /// # Errors
    /// [`BadPolicy`] if there is neither, or one cannot be used.
    pub fn of<'a>(
        keys: impl IntoIterator<Item = &'a str>,
        identity: Option<Identity>,
    ) -> Result<Self, BadPolicy> {
        let mut signers = Vec::new();
        for (number, key) in keys.into_iter().enumerate() {
            let key = PublicKey::from_pem(key);
            let key = key.map_err(|why| BadPolicy(format!("key {}: {why}", number + 1)))?;
            signers.push(Signer::Key(key));
        }
        signers.extend(identity.map(Signer::Identity));
        if signers.is_empty() {
            return Err(BadPolicy(
                "no key is given: without keys no signature is valid".to_owned(),
            ));
        }
        Ok(Self {
            signers,
            warns: false,
        })
    }

    /// Reports a missing signature, and accepts the artifact.
    #[must_use]
    pub fn warning(self) -> Self {
        Self {
            warns: true,
            ..self
        }
    }

    /// Distinguishes requirements.
    pub(crate) fn mark(&self) -> String {
        let signers: Vec<String> = self.signers.iter().map(Signer::mark).collect();
        format!(
            "{}{}",
            signers.join(","),
            if self.warns { "?" } else { "!" }
        )
    }

    /// Checks that an artifact is signed; certificates have to be valid `now` unless a log says when they were used.
    pub(crate) async fn check(
        &self,
        client: &Client,
        repository: &Repository,
        digest: &Digest,
        now: Timestamp,
    ) -> Result<Verified, Error> {
        let found = match client.signatures(repository, digest).await {
            Ok(found) => found,
            // A registry that does not answer does not make a signature optional.
            Err(error) if !self.warns => return Err(error.into()),
            Err(error) => return Ok(Verified::Warned(error.to_string())),
        };
        match verify_by(digest, &found.candidates, &self.signers, &Format::ALL, now) {
            Ok(verified) => Ok(Verified::By(if let Some(subject) = verified.subject {
                format!("identity {subject}")
            } else {
                let key = self.signers.get(verified.signer).map(Signer::mark);
                format!("key {}", key.unwrap_or_default())
            })),
            Err(refused) if self.warns => Ok(Verified::Warned(refused.to_string())),
            Err(refused) => Err(Error::Unverified {
                what: format!("oci://{repository}@{digest}"),
                why: refused.to_string(),
            }),
        }
    }

    /// Judges a source that cannot carry signatures.
    pub(crate) fn unsigned(&self, what: &str) -> Result<Verified, Error> {
        let why = "a signature is required, and only artifacts of OCI registries have one";
        if self.warns {
            return Ok(Verified::Warned(why.to_owned()));
        }
        Err(Error::Unverified {
            what: what.to_owned(),
            why: why.to_owned(),
        })
    }
}

/// The fingerprints of the keys.
impl std::fmt::Debug for SignatureRequirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trust({})", self.mark())
    }
}

/// The policy of a runtime: rules for hosts and folders. The longest match decides.
///
/// ```
/// use orkestra_sources::Policy;
///
/// let policy = Policy::parse("
/// rules:
/// - match: ghcr.io/acme
///   mode: enforce
///   keys:
///   - |
///     -----BEGIN PUBLIC KEY-----
///     MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEb6+XM/e0rQjWvHYh3sMyXyvhFLhp
///     nYO8MfVwU7v1JUqOWPBwOvGMnmpQwDP2HP3zTMQSj24k1cVcnAXKYqEV1w==
///     -----END PUBLIC KEY-----
/// ");
/// assert!(policy.is_ok(), "{policy:?}");
/// assert!(Policy::parse("rules: [{match: ghcr.io, keys: []}]").is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<(String, SignatureRequirement)>,
}

/// A policy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPolicy(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    rules: Vec<PolicyRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRule {
    #[serde(rename = "match")]
    matches: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    mode: EnforcementMode,
    keyless: Option<KeylessRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KeylessRule {
    issuer: String,
    subject: String,
    trusted_root: String,
}

impl KeylessRule {
    fn identity(&self) -> Result<Identity, String> {
        let root = TrustedRoot::parse(&self.trusted_root);
        let identity = root.and_then(|root| Identity::new(&self.issuer, &self.subject, root));
        identity.map_err(|why| format!("`keyless`: {why}"))
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EnforcementMode {
    #[default]
    Enforce,
    Warn,
}

impl Policy {
    /// Parses a policy: `rules`, each with `match` (a host, or a host and a folder, without a scheme), `keys` (PEM) or
    /// `keyless` (`issuer`, `subject` and the content of `trustedRoot`), and `mode` (`enforce`, the default, or `warn`).
    ///
    /// # Errors
    /// [`BadPolicy`], with the rule.
    pub fn parse(text: &str) -> Result<Self, BadPolicy> {
        if text.len() > MOST_BYTES {
            return Err(BadPolicy(format!(
                "the policy has more than {MOST_BYTES} bytes"
            )));
        }
        let file: PolicyFile =
            serde_saphyr::from_str(text).map_err(|error| BadPolicy(error.to_string()))?;
        let mut rules = Vec::new();
        for rule in file.rules {
            let named = |why: String| BadPolicy(format!("the rule for `{}`: {why}", rule.matches));
            let keyless = rule.keyless.as_ref().map(KeylessRule::identity).transpose();
            let keys = rule.keys.iter().map(String::as_str);
            let trust = SignatureRequirement::of(keys, keyless.map_err(named)?)
                .map_err(|why| named(why.0))?;
            let is_place = !rule.matches.is_empty()
                && !rule.matches.contains("://")
                && !rule.matches.starts_with('/');
            if !is_place {
                let why = "expected a host such as `ghcr.io`, a host and a folder, or `*`";
                return Err(named(why.to_owned()));
            }
            let trust = match rule.mode {
                EnforcementMode::Enforce => trust,
                EnforcementMode::Warn => trust.warning(),
            };
            let matches = rule.matches.trim_end_matches(['/', '*']);
            rules.push((normal(matches), trust));
        }
        Ok(Self { rules })
    }

    /// Returns the requirement for a place: host, port and path, without a scheme.
    pub(crate) fn of(&self, place: &str) -> Option<&SignatureRequirement> {
        let place = normal(place);
        let matching = self.rules.iter().filter(|(start, _)| {
            place
                .strip_prefix(start.as_str())
                .is_some_and(|rest| start.is_empty() || rest.is_empty() || rest.starts_with('/'))
        });
        matching
            .max_by_key(|(start, _)| start.len())
            .map(|(_, trust)| trust)
    }

    /// Returns the requirement for an URL.
    pub(crate) fn of_url(&self, url: &str) -> Option<&SignatureRequirement> {
        let place = url.split_once("://").map_or(url, |(_, rest)| rest);
        self.of(crate::http::without_query(place))
    }
}

/// Returns a place in the one spelling that rules are compared in: lower case, without the dot that ends a name, without the port
/// of HTTPS, and with one name for Docker Hub.
fn normal(place: &str) -> String {
    let place = place.to_lowercase();
    let (host, path) = match place.find('/') {
        Some(at) => place.split_at(at),
        None => (&*place, ""),
    };
    let host = host.strip_suffix(":443").unwrap_or(host);
    let host = match host.split_once(':') {
        Some((name, port)) if !host.starts_with('[') => {
            format!("{}:{port}", name.trim_end_matches('.'))
        }
        _ => host.trim_end_matches('.').to_owned(),
    };
    let host = match &*host {
        "registry-1.docker.io" | "index.docker.io" => "docker.io",
        host => host,
    };
    format!("{host}{path}")
}

#[cfg(test)]
mod tests {
    use orkestra_registry::signature::PrivateKey;

    use super::*;

    fn policy(rules: &[(&str, &str)]) -> Policy {
        let key = PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap();
        let pem = key.public().unwrap().pem().replace('\n', "\n    ");
        let rules = rules.iter().map(|(place, mode)| {
            format!("- match: \"{place}\"\n  mode: {mode}\n  keys:\n  - |\n    {pem}\n")
        });
        Policy::parse(&format!("rules:\n{}", rules.collect::<String>())).unwrap()
    }

    #[test]
    fn the_longest_match_decides_and_ends_at_a_part_of_the_path() {
        let policy = policy(&[("ghcr.io", "warn"), ("ghcr.io/acme/", "enforce")]);
        let warns = |place: &str| policy.of(place).map(|trust| trust.warns);
        assert_eq!(warns("ghcr.io/acme/ponds"), Some(false));
        assert_eq!(warns("GHCR.io/acme"), Some(false));
        assert_eq!(warns("ghcr.io/acmeevil/ponds"), Some(true));
        assert_eq!(warns("ghcr.io.evil.example/acme"), None);
        assert_eq!(warns("ghcr.io:443/acme/ponds"), Some(false));
        assert_eq!(warns("ghcr.io./acme/ponds"), Some(false));
        assert_eq!(warns("ghcr.io:444/acme/ponds"), None);
        let of_url = policy.of_url("https://ghcr.io/acme/x.yaml?token=1");
        assert!(of_url.is_some_and(|trust| trust.unsigned("x").is_err()));
    }

    #[test]
    fn a_star_is_for_every_place_without_a_rule_of_its_own() {
        let policy = policy(&[("*", "enforce"), ("docker.io", "warn")]);
        let warns = |place: &str| policy.of(place).map(|trust| trust.warns);
        assert_eq!(warns("ghcr.io/acme/ponds"), Some(false));
        assert_eq!(warns("registry-1.docker.io/acme"), Some(true));
    }

    #[test]
    fn rules_without_keys_and_with_roots_that_cannot_be_used_are_refused() {
        for (text, why) in [
            ("rules: [{match: ghcr.io, keys: []}]", "no key is given"),
            ("rules: [{match: ghcr.io, keys: [x]}]", "key 1"),
            ("rules: [{match: ghcr.io, keyless: {}}]", "issuer"),
            (
                "rules: [{match: ghcr.io, keyless: {issuer: i, subject: s, trustedRoot: root.json}}]",
                "neither JSON nor certificates",
            ),
            (
                "rules: [{match: ghcr.io, keyless: {issuer: i, subject: s, trustedRoot: '{}'}}]",
                "mediaType",
            ),
            ("rules: [{match: ghcr.io, keyz: []}]", "keyz"),
            ("rules: [{match: ghcr.io, mode: maybe}]", "maybe"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
