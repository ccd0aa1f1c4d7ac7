//! What is checked before anything is written.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use orkestra_cluster::requests::{Cluster, Scope};

use super::{
    Error, ManifestObject,
    apply::Kinds,
    controllers::{controllers, list},
    objects::text,
    remove::withdrawn,
    skew::{self, Skew},
};

/// The verbs that an installation needs on every kind.
const VERBS: [&str; 3] = ["get", "create", "patch"];
/// Reviews that are requested at once.
const AT_ONCE: usize = 8;
/// The annotation of objects that helm installed.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// Whether a finding stops the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The installation would fail, or do damage.
    Error,
    /// Probably a mistake.
    Warning,
}

/// A finding of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it stops the installation.
    pub level: Level,
    /// What is wrong, and what to do.
    pub message: String,
}

fn error(message: impl Into<String>) -> Finding {
    Finding {
        level: Level::Error,
        message: message.into(),
    }
}

fn warning(message: impl Into<String>) -> Finding {
    Finding {
        level: Level::Warning,
        message: message.into(),
    }
}

/// Checks permissions, CRDs and other installations; reads only.
///
/// # Errors
/// The API server does not answer.
pub async fn preflight(
    cluster: &Cluster,
    objects: &[ManifestObject],
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let mut findings = missing_permissions(cluster, objects).await?;
    if !findings.is_empty() {
        // Without them, the other checks may not be permitted either.
        return Ok(findings);
    }
    if objects.iter().any(ManifestObject::is_definition) {
        findings.extend(older_definitions(cluster).await?);
    }
    findings.extend(needed_conversions(cluster, objects, namespace).await?);
    findings.extend(other_owner(cluster, objects).await?);
    findings.extend(others(cluster, namespace, now).await?);
    Ok(findings)
}

/// The permissions that the user lacks: one finding for each kind.
async fn missing_permissions(
    cluster: &Cluster,
    objects: &[ManifestObject],
) -> Result<Vec<Finding>, Error> {
    let mut kinds = Kinds::new(cluster);
    let mut asked = BTreeSet::new();
    for object in objects {
        let kind = match kinds.of(object).await {
            // Applying it says more: its CRD may be among the objects.
            Err(error) if error.is_not_served() => continue,
            kind => kind?,
        };
        asked.insert((kind.group, kind.plural, object.key.namespace.clone()));
    }
    let reviews = asked
        .into_iter()
        .flat_map(|about| VERBS.map(|verb| (verb, about.clone())));
    let reviews: Vec<Result<Option<_>, Error>> = stream::iter(reviews)
        .map(async |(verb, (group, plural, namespace))| {
            let allowed = cluster.may(verb, (&group, &plural), namespace.as_deref());
            let allowed = allowed.await;
            let allowed = allowed.map_err(Error::request("review", "your permissions"))?;
            Ok((!allowed).then_some((verb, namespace, group, plural)))
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut findings = Vec::new();
    for review in reviews {
        if let Some((verb, namespace, group, plural)) = review? {
            let group = if group.is_empty() {
                String::new()
            } else {
                format!(".{group}")
            };
            let place = namespace.map_or(String::new(), |namespace| {
                format!(" in the namespace {namespace}")
            });
            findings.push(error(format!(
                "missing permission: you cannot {verb} {plural}{group}{place}"
            )));
        }
    }
    Ok(findings)
}

/// CRDs of the cluster that this version would change for the worse.
async fn older_definitions(cluster: &Cluster) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (own, skew) in skew::skews(cluster).await? {
        if let Skew::Newer { .. } = skew {
            let sentence = skew.sentence(&own.name);
            findings.push(error(format!(
                "{sentence}, and this is version {}: install that version or a newer one, or keep the CRDs with `--set crds.install=false`",
                orkestra_ground::VERSION
            )));
        }
        let dropped = if skew == Skew::Missing {
            Vec::new()
        } else {
            skew::dropped_versions(cluster, &own).await?
        };
        if !dropped.is_empty() {
            findings.push(error(format!(
                "CRD {} stores objects in {}, which this version does not have: migrate them first",
                own.name,
                dropped.join(", ")
            )));
        }
    }
    Ok(findings)
}

/// Conversions that stored objects need, if the installation serves no webhooks.
async fn needed_conversions(
    cluster: &Cluster,
    objects: &[ManifestObject],
    namespace: &str,
) -> Result<Vec<Finding>, Error> {
    let registered = withdrawn(cluster, objects, namespace).await?;
    let needed = registered.iter().filter_map(|one| {
        let why = one.kept.as_ref()?;
        Some(error(format!(
            "{one} is needed, and without webhooks nothing would serve it: {why}"
        )))
    });
    Ok(needed.collect())
}

/// Objects that helm installed.
async fn other_owner(
    cluster: &Cluster,
    objects: &[ManifestObject],
) -> Result<Option<Finding>, Error> {
    let mut kinds = Kinds::new(cluster);
    for object in objects
        .iter()
        .filter(|object| object.is("apps", "Deployment"))
    {
        let live = kinds.get(object).await?;
        let release = live.as_ref().and_then(|live| live.annotation(HELM_RELEASE));
        if let Some(release) = release {
            return Ok(Some(error(format!(
                "{object} belongs to the Helm release {release}: upgrade it with `helm upgrade`, or remove it with `helm uninstall` first"
            ))));
        }
    }
    Ok(None)
}

/// Other installations of Orkestra: by their Deployments, and by the Leases with which they claim kinds.
async fn others(cluster: &Cluster, namespace: &str, now: Timestamp) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let labels = format!(
        "app.kubernetes.io/name={0},app.kubernetes.io/part-of={0}",
        super::RELEASE
    );
    let everywhere = Scope {
        selector: Some(labels),
        ..Scope::default()
    };
    for deployment in list(cluster, "apps/Deployment", &everywhere).await? {
        let place = text(&deployment, &["metadata", "namespace"]).unwrap_or_default();
        if place != namespace {
            findings.push(warning(format!(
                "another installation runs in the namespace {place}; a kind is operated by the installation that claims it first"
            )));
        }
    }
    for running in controllers(cluster, now).await? {
        if running.namespace() != namespace {
            findings.push(warning(format!(
                "the installation {:?} is running; a kind is operated by the installation that claims it first",
                running.installation
            )));
        }
    }
    Ok(findings)
}
