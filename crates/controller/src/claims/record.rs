//! The Leases by which installations claim kinds: pure.
//!
//! ```text
//!  kind-website.example.org   holderIdentity: the installation; annotations: the Katalog and its uid
//!  installation-4f2a91c0de    holderIdentity: the installation; renewTime: its last heartbeat
//! ```
//!
//! Only the name of the Lease says which kind it claims. An unreadable Lease is a claim without a holder.

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use orkestra_language::api::names;
use orkestra_object::decode::Version;
use orkestra_plan::{GroupKind, KatalogRef, rbac::CLAIMS_NAMESPACE};
use serde_json::{Value, json};

/// How often an installation renews its Lease.
pub(crate) const RENEWAL: SignedDuration = SignedDuration::from_mins(5);
/// How long an installation that does not renew its Lease keeps its claims.
pub(crate) const EXPIRY: SignedDuration = SignedDuration::from_mins(15);

/// The Katalog for which a kind is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// Namespace and name.
    pub(crate) katalog: KatalogRef,
    /// `metadata.uid`; for a Katalog from a file, its namespace and name.
    pub(crate) uid: String,
}

/// The state of an object that a write refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    /// `metadata.uid`.
    pub(crate) uid: String,
    /// `metadata.resourceVersion`.
    pub(crate) version: String,
}

impl ObjectVersion {
    /// True if it is certainly older than another one of the same Lease.
    pub(crate) fn is_behind(&self, other: &Self) -> bool {
        Version::from(&*self.version).is_behind(&Version::from(&*other.version))
    }
}

/// A claim on a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The installation that holds it; empty if the Lease does not say.
    pub(crate) installation: String,
    /// The Katalog that claims it.
    pub(crate) claimant: Claimant,
    pub(crate) state: ObjectVersion,
}

/// A heartbeat of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) installation: String,
    /// When it was renewed, by the clock of the writer; none if the Lease does not say.
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) state: ObjectVersion,
}

/// The content of a Lease in the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseContent {
    Claim(Claim),
    Heartbeat(Heartbeat),
}

impl LeaseContent {
    /// Returns the state of the Lease from which it was read.
    pub(crate) fn state(&self) -> &ObjectVersion {
        match self {
            Self::Claim(claim) => &claim.state,
            Self::Heartbeat(heartbeat) => &heartbeat.state,
        }
    }

    /// Reads a Lease; returns its name and content, or none if it is neither.
    pub(crate) fn read(lease: &DynamicObject) -> Option<(String, Self)> {
        let name = lease.metadata.name.clone()?;
        let text = |field: &str| {
            let field = lease.data.get("spec")?.get(field)?.as_str()?;
            Some(field.to_owned())
        };
        let state = ObjectVersion {
            uid: lease.metadata.uid.clone().unwrap_or_default(),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
        };
        let installation = text("holderIdentity").unwrap_or_default();
        if name.starts_with("kind-") {
            let claim = Claim {
                installation,
                claimant: claimant(lease),
                state,
            };
            return Some((name, Self::Claim(claim)));
        }
        (name == names::installation_lease(&installation)).then(|| {
            let heartbeat = Heartbeat {
                installation,
                renewed: text("renewTime").and_then(|time| time.parse().ok()),
                state,
            };
            (name, Self::Heartbeat(heartbeat))
        })
    }
}

fn claimant(lease: &DynamicObject) -> Claimant {
    let annotations = lease.metadata.annotations.as_ref();
    let text = |name: &str| {
        let text = annotations.and_then(|all| all.get(name));
        text.map(String::as_str).unwrap_or_default()
    };
    Claimant {
        katalog: KatalogRef::parse(text(names::ANNOTATION_KATALOG)),
        uid: text(names::ANNOTATION_KATALOG_UID).to_owned(),
    }
}

/// Returns the name of the Lease that claims `kind`.
pub(crate) fn lease_of(kind: &GroupKind) -> String {
    names::claim_lease(&kind.group, &kind.kind)
}

/// Returns the wanted Lease of a claim; with `over`, the write requires that state.
pub(crate) fn claim(
    name: &str,
    (installation, claimant): (&str, &Claimant),
    now: Timestamp,
    over: Option<&ObjectVersion>,
) -> Value {
    let Claimant { katalog, uid } = claimant;
    let mut lease = lease(name, over);
    lease["metadata"]["annotations"] = json!({
        names::ANNOTATION_KATALOG: katalog.to_string(),
        names::ANNOTATION_KATALOG_UID: uid,
    });
    lease["spec"] = json!({ "holderIdentity": installation, "acquireTime": micros(now) });
    lease
}

/// Returns the wanted Lease of an installation, with the version of its program for `ork version --cluster`; with `over`, the write requires that state.
pub(crate) fn heartbeat(
    (installation, version): (&str, &str),
    now: Timestamp,
    over: Option<&ObjectVersion>,
) -> Value {
    let mut lease = lease(&names::installation_lease(installation), over);
    lease["metadata"]["annotations"] = json!({ names::ANNOTATION_VERSION: version });
    lease["spec"] = json!({
        "holderIdentity": installation,
        "leaseDurationSeconds": EXPIRY.as_secs(),
        "renewTime": micros(now),
    });
    lease
}

fn lease(name: &str, over: Option<&ObjectVersion>) -> Value {
    let mut metadata = json!({ "name": name, "namespace": CLAIMS_NAMESPACE });
    if let Some(ObjectVersion { uid, version }) = over {
        metadata["uid"] = uid.as_str().into();
        metadata["resourceVersion"] = version.as_str().into();
    }
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata })
}

/// Formats a time as a `MicroTime`. Source: Kubernetes API reference, `Lease v1 coordination`.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lease: Value) -> Option<(String, LeaseContent)> {
        LeaseContent::read(&serde_json::from_value(lease).unwrap())
    }

    #[test]
    fn what_is_written_is_read() {
        let katalog = KatalogRef::new("shop".to_owned(), "waters".to_owned());
        let claimant = Claimant {
            katalog,
            uid: "u1".to_owned(),
        };
        let now: Timestamp = "2026-03-01T10:00:00.5Z".parse().unwrap();
        let name = lease_of(&GroupKind::parse("Pond.water.example"));
        let written = claim(&name, ("east/orkestra", &claimant), now, None);
        let (read_name, record) = read(written).unwrap();
        assert_eq!(read_name, "kind-pond.water.example");
        let LeaseContent::Claim(read_claim) = record else {
            panic!("{record:?}")
        };
        assert_eq!(
            (read_claim.installation.as_str(), read_claim.claimant),
            ("east/orkestra", claimant)
        );
        let (_, record) = read(heartbeat(("east/orkestra", "1.2.3+abc"), now, None)).unwrap();
        let LeaseContent::Heartbeat(read_heartbeat) = record else {
            panic!("{record:?}")
        };
        assert_eq!(
            (read_heartbeat.installation.as_str(), read_heartbeat.renewed),
            ("east/orkestra", Some(now))
        );
    }

    #[test]
    fn what_cannot_be_read_is_the_claim_of_nobody() {
        let bare = |name: &str, spec: Value| json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name }, "spec": spec });
        let (_, record) = read(bare("kind-pond.water.example", json!({}))).unwrap();
        assert!(matches!(record, LeaseContent::Claim(claim) if claim.installation.is_empty()));
        assert_eq!(
            read(bare("installation-1", json!({ "holderIdentity": "x" }))),
            None
        );
        assert_eq!(read(bare("other", json!({ "holderIdentity": 7 }))), None);
        let name = names::installation_lease("x");
        let spec = json!({ "holderIdentity": "x", "renewTime": "yesterday" });
        let (_, record) = read(bare(&name, spec)).unwrap();
        assert!(
            matches!(record, LeaseContent::Heartbeat(heartbeat) if heartbeat.renewed.is_none())
        );
    }
}
