//! The certificates of the webhooks, as replicas share them in a Secret: pure.
//!
//! ```text
//!  issued ── two thirds of life ──► next one prepared, both authorities trusted ── configurations have both ──► next one serves
//! ```
//!
//! Each certificate has an authority of its own, whose key is not kept.

mod usable;

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use orkestra_object::value::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::usable::roots;

/// A certificate with its key and authority, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

/// The content of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServingKeys {
    /// The certificate that serves.
    pub(crate) serving: Pair,
    /// The one that serves next, once its authority is trusted everywhere.
    pub(crate) next: Option<Pair>,
    /// The authorities of earlier certificates that may still serve in another replica.
    pub(crate) earlier: Vec<(String, Timestamp)>,
}

/// What the rotation of the certificate needs next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// Nothing until that time.
    Wait(Timestamp),
    /// A certificate is to be prepared.
    Prepare,
    /// The next certificate is to serve.
    Promote,
    /// The certificate is not valid any more: another one is to serve at once.
    Replace,
}

/// The parts of the Secret that Kubernetes and people read.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
/// The whole content, as JSON.
const STATE: &str = "state.json";

#[derive(Serialize, Deserialize)]
struct StoredKeys {
    serving: Pair,
    #[serde(default)]
    next: Option<Pair>,
    #[serde(default)]
    earlier: Vec<(String, Timestamp)>,
}

impl Pair {
    fn life(&self) -> Duration {
        let life = self.expires.duration_since(self.issued);
        life.try_into().unwrap_or_default()
    }

    fn covers(&self, hosts: &[String]) -> bool {
        hosts.iter().all(|host| self.hosts.contains(host))
    }

    /// Two thirds of its life.
    fn renewal(&self) -> Timestamp {
        self.issued
            .checked_add(self.life() * 2 / 3)
            .unwrap_or(self.expires)
    }
}

impl ServingKeys {
    /// The first certificate.
    pub(crate) fn first(pair: Pair) -> Self {
        Self {
            serving: pair,
            next: None,
            earlier: Vec::new(),
        }
    }

    /// Returns the next step. `trusted_since` is when all configurations had this state's authorities.
    pub(crate) fn rotation(
        &self,
        hosts: &[String],
        now: Timestamp,
        trusted_since: Option<Timestamp>,
    ) -> Rotation {
        if now >= self.serving.expires {
            return Rotation::Replace;
        }
        let Some(next) = &self.next else {
            let renewal = self.serving.renewal();
            return if now >= renewal || !self.serving.covers(hosts) {
                Rotation::Prepare
            } else {
                Rotation::Wait(renewal)
            };
        };
        let grace = grace(next.life());
        let at = trusted_since.and_then(|since| since.checked_add(grace).ok());
        match at {
            Some(at) if now >= at => Rotation::Promote,
            Some(at) => Rotation::Wait(at.min(self.serving.expires)),
            None => Rotation::Wait(self.serving.expires),
        }
    }

    /// Adds a certificate that will serve next.
    #[must_use]
    pub(crate) fn with_next(mut self, pair: Pair, now: Timestamp) -> Self {
        self.earlier.retain(|(_, expires)| *expires > now);
        if let Some(skipped) = self.next.replace(pair) {
            // Another replica may serve it.
            self.earlier.push((skipped.authority, skipped.expires));
        }
        self
    }

    /// Lets the next certificate serve; the authority of the previous one stays trusted.
    #[must_use]
    pub(crate) fn promoted(mut self) -> Self {
        if let Some(next) = self.next.take() {
            let before = std::mem::replace(&mut self.serving, next);
            self.earlier.push((before.authority, before.expires));
        }
        self
    }

    /// Returns the trusted authorities in PEM, each once.
    pub(crate) fn authorities(&self) -> String {
        let next = self.next.iter().map(|pair| pair.authority.as_str());
        let earlier = self.earlier.iter().map(|(authority, _)| authority.as_str());
        let all = std::iter::once(self.serving.authority.as_str());
        let mut known: Vec<&str> = Vec::new();
        for authority in all.chain(next).chain(earlier) {
            if !known.contains(&authority) {
                known.push(authority);
            }
        }
        known.concat()
    }

    /// Returns the `data` of the Secret.
    pub(crate) fn data(&self) -> Value {
        let state = StoredKeys {
            serving: self.serving.clone(),
            next: self.next.clone(),
            earlier: self.earlier.clone(),
        };
        let state = serde_json::to_string(&state).unwrap_or_default();
        let encode = |text: &str| STANDARD.encode(text);
        json!({
            CERTIFICATE: encode(&self.serving.certificate),
            KEY: encode(&self.serving.key),
            AUTHORITIES: encode(&self.authorities()),
            STATE: encode(&state),
        })
    }

    /// True if the parts of a Secret that Kubernetes and people read are those of these certificates.
    pub(crate) fn is_written_to(&self, secret: &Node) -> bool {
        let data = self.data();
        [CERTIFICATE, KEY, AUTHORITIES].into_iter().all(|part| {
            let written = secret.get("data").and_then(|data| data.get(part));
            written.and_then(Node::as_str) == data[part].as_str()
        })
    }

    /// Returns what can be used, at `now`: without a certificate that serves, nothing; damaged parts beside it are left out.
    pub(crate) fn usable(mut self, now: Timestamp) -> Option<Self> {
        if !self.serving.is_usable(now) {
            return None;
        }
        self.next = self.next.filter(|next| next.is_usable(now));
        self.earlier
            .retain(|(authority, _)| roots(authority).is_some());
        Some(self)
    }

    /// Reads a Secret; none if it has another content.
    pub(crate) fn read(secret: &Node) -> Option<Self> {
        let state = secret.get("data")?.get(STATE)?.as_str()?;
        let state = STANDARD.decode(state).ok()?;
        let state: StoredKeys = serde_json::from_slice(&state).ok()?;
        Some(Self {
            serving: state.serving,
            next: state.next,
            earlier: state.earlier,
        })
    }
}

/// How long all API servers have to take over authorities that were written.
fn grace(life: Duration) -> Duration {
    (life / 20).clamp(Duration::from_secs(1), Duration::from_secs(30))
}

/// Issues a certificate for `hosts`, valid from `now` for `life`.
///
/// # Errors
/// A host is neither a DNS name nor an IP address.
pub(crate) fn issue(
    hosts: &[String],
    now: Timestamp,
    life: Duration,
) -> Result<Pair, rcgen::Error> {
    let expires = now.checked_add(life).unwrap_or(Timestamp::MAX);
    let mut parts: BTreeMap<&str, String> =
        orkestra_operator::certificates::issue_for("orkestra-webhooks", hosts, (now, expires))?;
    let mut part = |name: &str| parts.remove(name).unwrap_or_default();
    Ok(Pair {
        certificate: part(CERTIFICATE),
        key: part(KEY),
        authority: part(AUTHORITIES),
        hosts: hosts.to_vec(),
        issued: now,
        expires,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_mins(50);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_770_000_000 + second).unwrap()
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn pair(second: i64) -> Pair {
        issue(&hosts(&["a.b.svc"]), at(second), LIFE).unwrap()
    }

    #[test]
    fn the_next_certificate_serves_only_once_its_authority_is_trusted() {
        let desired = hosts(&["a.b.svc"]);
        let keys = ServingKeys::first(pair(0));
        assert_eq!(
            keys.rotation(&desired, at(1999), None),
            Rotation::Wait(at(2000))
        );
        assert_eq!(
            keys.rotation(&desired, at(2000), Some(at(0))),
            Rotation::Prepare
        );
        let keys = keys.with_next(pair(2000), at(2000));
        let both = keys.authorities();
        assert!(both.contains(&keys.serving.authority));
        assert!(both.contains(&keys.next.as_ref().unwrap().authority));
        assert_eq!(
            keys.rotation(&desired, at(2100), None),
            Rotation::Wait(at(3000))
        );
        // The wait is 30 s at most: a twentieth of the certificate's lifetime would be longer.
        let trusted = Some(at(2100));
        assert_eq!(
            keys.rotation(&desired, at(2129), trusted),
            Rotation::Wait(at(2130))
        );
        assert_eq!(
            keys.rotation(&desired, at(2130), trusted),
            Rotation::Promote
        );
        let before = keys.serving.clone();
        let keys = keys.promoted();
        assert!(keys.authorities().contains(&before.authority));
        assert_eq!(keys.serving.issued, at(2000));
        // The authority of an expired certificate is no longer trusted.
        let keys = keys.with_next(pair(4000), at(4000));
        assert!(!keys.authorities().contains(&before.authority));
    }

    #[test]
    fn an_expired_certificate_is_replaced_at_once_and_another_host_needs_another_one() {
        let keys = ServingKeys::first(pair(0));
        let desired = hosts(&["a.b.svc", "c.b.svc"]);
        assert_eq!(keys.rotation(&desired, at(1), None), Rotation::Prepare);
        assert_eq!(keys.rotation(&desired, at(3000), None), Rotation::Replace);
        let prepared = keys.with_next(pair(2000), at(2000));
        assert_eq!(
            prepared.rotation(&desired, at(3000), None),
            Rotation::Replace
        );
    }

    #[test]
    fn a_secret_is_read_as_it_was_written_and_a_strange_one_is_not() {
        let keys = ServingKeys::first(pair(0))
            .with_next(pair(10), at(10))
            .promoted();
        let secret = Node::from(&json!({ "data": keys.data() }));
        assert_eq!(ServingKeys::read(&secret), Some(keys));
        for strange in [
            json!({}),
            json!({ "data": { STATE: "!" } }),
            json!({ "data": { STATE: "e30=" } }),
        ] {
            assert_eq!(ServingKeys::read(&Node::from(&strange)), None);
        }
    }

    #[test]
    fn a_damaged_certificate_is_as_good_as_none() {
        let whole = ServingKeys::first(pair(0)).with_next(pair(10), at(10));
        let secret = Node::from(&json!({ "data": whole.data() }));
        assert_eq!(whole.clone().usable(at(20)), Some(whole.clone()));
        assert!(whole.is_written_to(&secret));
        // An expired one is not damaged: it is replaced in its own way.
        assert!(whole.clone().usable(at(1_000_000)).is_some());
        let other = pair(0);
        let damage: [fn(&mut Pair, &Pair); 6] = [
            |pair, _| pair.certificate = pair.certificate[..200].to_owned(),
            |pair, _| pair.certificate.clear(),
            |pair, _| {
                pair.key =
                    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned();
            },
            |pair, other| pair.key.clone_from(&other.key),
            |pair, other| pair.authority.clone_from(&other.authority),
            |pair, _| pair.hosts.push("other.b.svc".to_owned()),
        ];
        for (number, damage) in damage.into_iter().enumerate() {
            let mut serving = whole.clone();
            damage(&mut serving.serving, &other);
            assert_eq!(serving.usable(at(20)), None, "{number}");
            let mut next = whole.clone();
            damage(next.next.as_mut().unwrap(), &other);
            let left = ServingKeys::first(whole.serving.clone());
            assert_eq!(next.usable(at(20)), Some(left), "{number}");
        }
        let mut earlier = whole.clone();
        earlier.earlier.push(("rubbish".to_owned(), at(5000)));
        assert_eq!(earlier.usable(at(20)), Some(whole.clone()));
        let mut data = whole.data();
        data[CERTIFICATE] = "AAAA".into();
        assert!(!whole.is_written_to(&Node::from(&json!({ "data": data }))));
    }
}
