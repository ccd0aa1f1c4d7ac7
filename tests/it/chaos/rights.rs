//! The permissions of `ork`: they are read, removed and restored.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::private::Private;
use crate::scenario::{Objects, pause};

/// The time for which a request is retried while the control plane fails.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Returns the cluster roles that `ork` is bound to, with their rules.
pub(crate) async fn granted(private: &Private) -> Result<Vec<(String, Vec<Value>)>> {
    let [bindings, roles] = ["clusterrolebindings", "clusterroles"]
        .map(|plural| Objects::of_cluster(&private.client, plural));
    let until = Instant::now() + PATIENCE;
    loop {
        match read(&bindings, &roles, private.identity.user()).await {
            Err(_) if Instant::now() < until => pause(PAUSE).await,
            read => return read,
        }
    }
}

async fn read(
    bindings: &Objects,
    roles: &Objects,
    subject: &str,
) -> Result<Vec<(String, Vec<Value>)>> {
    let is_ours = |binding: &Value| {
        let subjects = binding["subjects"].as_array();
        subjects.into_iter().flatten().any(|one| {
            let [namespace, name] = ["namespace", "name"].map(|at| one[at].as_str().unwrap_or(""));
            subject == format!("system:serviceaccount:{namespace}:{name}")
        })
    };
    let mut granted = Vec::new();
    for binding in bindings.list().await?.iter().filter(|one| is_ours(one)) {
        let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let role = roles.fetch(name).await?;
        let permitted = role["rules"].as_array().cloned().unwrap_or_default();
        if !permitted.is_empty() {
            granted.push((name.to_owned(), permitted));
        }
    }
    ensure!(!granted.is_empty(), "no ClusterRole is bound to {subject}");
    Ok(granted)
}

/// Replaces the rules of a cluster role.
pub(crate) async fn grant(private: &Private, role: &str, rules: &[Value]) -> Result<()> {
    let cluster_roles = Objects::of_cluster(&private.client, "clusterroles");
    let patch = json!({ "rules": rules });
    let until = Instant::now() + PATIENCE;
    loop {
        match cluster_roles.patch(role, &patch).await {
            Err(_) if Instant::now() < until => pause(PAUSE).await,
            patched => return patched.map(drop),
        }
    }
}
