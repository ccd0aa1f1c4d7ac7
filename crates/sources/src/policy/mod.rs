//! The required signatures: those of the source itself, or those of the runtime's policy.

use jiff::Timestamp;
use orkestra_registry::{
    Client, Digest, Repository,
    signature::{Format, Identity, PublicKey, Signer, TrustedRoot, verify_by},
};
use serde::Deserialize;

use crate::{
    Error, Verified,
    place::{ambiguous, is_end, normal},
};

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
                .is_some_and(|rest| start.is_empty() || is_end(rest))
        });
        matching
            .max_by_key(|(start, _)| start.len())
            .map(|(_, trust)| trust)
    }

    /// Returns the requirement for an URL.
    ///
    /// # Errors
    /// There are rules, and servers read the URL in other ways than they compare it.
    pub(crate) fn of_url(&self, url: &str) -> Result<Option<&SignatureRequirement>, Error> {
        let (scheme, place) = url.split_once("://").unwrap_or(("", url));
        let place = crate::http::without_query(place);
        if !self.rules.is_empty()
            && let Some(why) = ambiguous(place)
        {
            let why = format!(
                "{why}, and the policy of sources compares addresses: write the address that it stands for"
            );
            return Err(Error::Invalid(
                crate::http::without_query(url).to_owned(),
                why,
            ));
        }
        // Rules name places without the port of their scheme.
        let default = scheme.eq_ignore_ascii_case("http").then_some(":80");
        let end = place.find('/').unwrap_or(place.len());
        let (host, path) = place.split_at(end);
        let host = default
            .and_then(|port| host.strip_suffix(port))
            .unwrap_or(host);
        Ok(self.of(&format!("{host}{path}")))
    }
}

#[cfg(test)]
mod tests;
