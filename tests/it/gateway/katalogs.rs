//! Admission of Katalogs, Komposers and Motifs: errors, warnings, and the permissions of the author.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{Identity, eventually};

use super::Gate;
use crate::scenario::LIMIT;

const CRDS: &[&str] = &["rules/crds.yaml"];

const BINDER: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: binder }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      operatorBox:
        onReconcile:
          custom:
            - apiVersion: rbac.authorization.k8s.io/v1
              kind: ClusterRoleBinding
              metadata: { name: '{{ .metadata.name }}' }
              roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }
              subjects: [{ kind: User, name: eve, apiGroup: rbac.authorization.k8s.io }]
";

const PLAIN: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: plain }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      operatorBox:
        onReconcile:
          configMaps:
            - name: '{{ .metadata.name }}'
              data: { image: '{{ .spec.image }}' }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_katalog_is_refused_with_the_fields_of_its_errors_and_our_own_writes_are_not_reviewed()
-> Result<()> {
    let gate = Gate::start("gatekat", CRDS, PLAIN).await?;
    let wrong = PLAIN
        .replace("apiTypes:", "apiTypez:")
        .replace("configMaps:", "configMapz:");
    let error = gate.refused(&wrong)?;
    ensure!(
        error.contains("katalogs.orkestra.orkspace.io") && error.contains("denied the request"),
        "{error}"
    );
    for at in ["spec.crds.site.apiTypez", "onReconcile.configMapz"] {
        ensure!(error.contains(at), "{error}");
    }
    // The error shows the keys that lead to the field, since the API server sends no line numbers.
    let keys = "\n| spec:\n|   crds:\n|     site:\n|       apiTypez:\n|       ^^^^^^^^\n";
    ensure!(error.contains(keys), "{error}");
    ensure!(error.contains("run `ork validate` on the file"), "{error}");
    // Of seven errors, the message lists five.
    let keys: Vec<String> = (0..7).map(|key| format!("      wrong{key}: 1\n")).collect();
    let many = PLAIN.replace(
        "      operatorBox:",
        &format!("{}      operatorBox:", keys.concat()),
    );
    let error = gate.refused(&many)?;
    ensure!(error.contains("and 2 more errors"), "{error}");

    // No Katalog was stored. A valid one runs: writes of its finalizer and status pass the same webhook configuration.
    ensure!(gate.scenario.objects("katalogs").list().await?.is_empty());
    gate.run(PLAIN).await?;
    // The kind of an entry cannot change.
    let other = PLAIN.replace("kind: Site, plural: sites", "kind: Lake, plural: lakes");
    let error = gate.refused(&other)?;
    ensure!(error.contains("its kind cannot change"), "{error}");
    // A Katalog that leads to a warning is accepted.
    let odd = PLAIN.replace(
        "metadata: { name: plain }",
        "metadata: { name: plain, labels: { odd: one } }",
    );
    gate.accepted(&odd)?;
    let motif = "
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: m }
spec: { resourcez: {} }
";
    let error = gate.refused(motif)?;
    ensure!(error.contains("resourcez"), "{error}");
    // A Katalog can be deleted.
    gate.scenario.objects("katalogs").delete("plain").await?;
    gate.scenario
        .objects("katalogs")
        .until_gone("plain", LIMIT)
        .await
}

const ALL: [&str; 7] = [
    "get", "list", "watch", "create", "update", "patch", "delete",
];

/// Creates a `ClusterRole` with the rules, and binds it to the author.
fn bind(gate: &Gate, role: &str, rules: &Value) -> Result<()> {
    let user = format!("author-{}", gate.scenario.namespace);
    bind_to(gate, &user, role, rules)
}

fn bind_to(gate: &Gate, user: &str, role: &str, rules: &Value) -> Result<()> {
    let scenario = &gate.scenario;
    let name = format!("{}:{role}", scenario.namespace);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io" }],
    });
    scenario.apply(&role.to_string())?;
    scenario.apply(&binding.to_string())
}

/// Creates a user who may write Katalogs and Komposers, and no other objects.
fn author(gate: &Gate) -> Result<Identity> {
    let user = format!("author-{}", gate.scenario.namespace);
    let author = gate.scenario.cluster.identity(&user, &[])?;
    bind(gate, "author", &own())?;
    Ok(author)
}

/// Creates another user with the same permissions, who is not bound to a role that permits approval.
fn author_without_approval(gate: &Gate) -> Result<Identity> {
    let user = format!("other-{}", gate.scenario.namespace);
    let author = gate.scenario.cluster.identity(&user, &[])?;
    bind_to(gate, &user, "others", &own())?;
    Ok(author)
}

fn own() -> Value {
    json!([{
        "apiGroups": ["orkestra.orkspace.io"], "resources": ["katalogs", "komposers"], "verbs": ALL,
    }])
}

/// Applies [`BINDER`] as an author who lacks the permissions that it needs; returns the standard error of `kubectl`.
async fn applied_by(gate: &Gate, author: &Identity) -> Result<String> {
    eventually("the author may write Katalogs", LIMIT, async || {
        let output = gate.kubectl_as(Some(author), &["apply", "-f", "-"], BINDER)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("cannot get resource") {
            return Ok(None);
        }
        ensure!(output.status.success(), "{said}");
        Ok(Some(said))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_author_check_warn_the_author_is_reported_the_missing_permissions() -> Result<()> {
    let arguments = &["--admission-author-check=warn"];
    let gate = Gate::start_with("gatewarn", CRDS, PLAIN, arguments).await?;
    let said = applied_by(&gate, &author(&gate)?).await?;
    ensure!(said.contains("Warning: "), "{said}");
    for part in ["cannot grant permissions", "clusterrolebindings"] {
        ensure!(said.contains(part), "{part}: {said}");
    }
    // An invalid Katalog is denied nevertheless.
    let error = gate.refused(&PLAIN.replace("apiTypes:", "apiTypez:"))?;
    ensure!(error.contains("spec.crds.site.apiTypez"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_author_check_off_nobody_is_asked_for_permissions() -> Result<()> {
    let arguments = &["--admission-author-check=off"];
    let gate = Gate::start_with("gateoff", CRDS, PLAIN, arguments).await?;
    let author = author(&gate)?;
    let mark = gate.scenario.cluster.mark()?;
    let said = applied_by(&gate, &author).await?;
    ensure!(!said.contains("Warning"), "{said}");
    let requests = gate.scenario.requests_since(mark)?;
    let asked = requests
        .iter()
        .find(|one| one.resource == "subjectaccessreviews");
    ensure!(asked.is_none(), "{asked:?}");
    let error = gate.refused(&PLAIN.replace("apiTypes:", "apiTypez:"))?;
    ensure!(error.contains("spec.crds.site.apiTypez"), "{error}");
    Ok(())
}

const KOMPOSER: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Komposer
metadata: { name: all }
spec:
  sources:
    configMaps:
      - name: binder
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_komposer_is_refused_and_so_are_sources_that_its_author_may_not_approve()
-> Result<()> {
    let gate = Gate::start("gatekomp", CRDS, PLAIN).await?;
    let error = gate.refused(&KOMPOSER.replace("configMaps:", "configMapz:"))?;
    ensure!(error.contains("denied the request"), "{error}");
    ensure!(error.contains("spec.sources.configMapz"), "{error}");
    let keys = "\n| spec:\n|   sources:\n|     configMapz:\n|     ^^^^^^^^^^\n";
    ensure!(error.contains(keys), "{error}");
    let error = gate.refused(&KOMPOSER.replace("name: binder", "nam: binder"))?;
    ensure!(error.contains("spec.sources.configMaps[0]"), "{error}");
    let komposers = gate.scenario.objects("komposers");
    ensure!(komposers.list().await?.is_empty());

    // The permissions that the sources need are not known at admission: the author needs the permission `approve`.
    let author = author(&gate)?;
    let apply = || {
        let output = gate.kubectl_as(Some(&author), &["apply", "-f", "-"], KOMPOSER)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.success(), said))
    };
    let error = eventually("the author may write Komposers", LIMIT, async || {
        let (is_accepted, said) = apply()?;
        ensure!(!is_accepted, "it was accepted");
        Ok((!said.contains("cannot get resource")).then_some(said))
    })
    .await?;
    ensure!(error.contains("cannot grant permissions"), "{error}");
    let missing = "approve komposers.orkestra.orkspace.io";
    ensure!(error.contains(missing), "{error}");
    let approve = |names: &Value| {
        json!([{
            "apiGroups": ["orkestra.orkspace.io"], "resources": ["komposers"], "verbs": ["approve"],
            "resourceNames": names,
        }])
    };
    bind(&gate, "other", &approve(&json!(["other"])))?;
    bind(&gate, "approver", &approve(&json!(["all"])))?;
    eventually("the author may approve", LIMIT, async || {
        let (is_accepted, said) = apply()?;
        ensure!(is_accepted || said.contains(missing), "{said}");
        Ok(is_accepted.then_some(()))
    })
    .await?;

    an_approval_by_annotation_is_refused_too(&gate, missing).await
}

/// Checks that an author without the permission to approve cannot approve by annotation, but can change other metadata.
async fn an_approval_by_annotation_is_refused_too(gate: &Gate, missing: &str) -> Result<()> {
    let other = author_without_approval(gate)?;
    let annotate = |key: &str| {
        let annotation = format!("{key}=sha256:0");
        let arguments = ["annotate", "komposer", "all", &annotation];
        let output = gate.kubectl_as(Some(&other), &arguments, "")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.success(), said))
    };
    eventually("another author may write Komposers", LIMIT, async || {
        Ok(annotate("example.org/note")?.0.then_some(()))
    })
    .await?;
    let (is_accepted, said) = annotate("orkestra.orkspace.io/approve")?;
    ensure!(!is_accepted && said.contains(missing), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_permissions_by_a_katalog_that_they_do_not_have() -> Result<()> {
    let gate = Gate::start("gateauth", CRDS, PLAIN).await?;
    let scenario = &gate.scenario;
    let author = author(&gate)?;
    let apply = |text: &str| gate.kubectl_as(Some(&author), &["apply", "-f", "-"], text);
    // The API server applies RBAC a moment later: from then on the webhook denies the Katalog.
    let error = eventually("the author may write Katalogs", LIMIT, async || {
        let output = apply(BINDER)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "it was accepted");
        Ok((!error.contains("cannot get resource")).then_some(error))
    })
    .await?;
    ensure!(error.contains("cannot grant permissions"), "{error}");
    let named = [
        "bind clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings",
    ];
    ensure!(named.iter().any(|rule| error.contains(rule)), "{error}");
    // The administrator has the permissions.
    gate.kubectl_as(None, &["apply", "--dry-run=server", "-f", "-"], BINDER)?;

    let error = String::from_utf8_lossy(&apply(PLAIN)?.stderr).into_owned();
    ensure!(error.contains("configmaps"), "{error}");
    let group = scenario.group.clone();
    let rights = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ALL },
        { "apiGroups": [group], "resources": ["*"], "verbs": ALL },
    ]);
    bind(&gate, "children", &rights)?;
    eventually("the author has the permissions", LIMIT, async || {
        let output = apply(PLAIN)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{error}");
        Ok(Some(()))
    })
    .await?;
    // A change of metadata needs no permissions but those to write the Katalog.
    let label = gate.kubectl_as(Some(&author), &["label", "katalog", "plain", "a=b"], "")?;
    ensure!(
        label.status.success(),
        "{}",
        String::from_utf8_lossy(&label.stderr)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_strips_a_configuration_gets_it_back_and_a_quiet_gateway_writes_nothing() -> Result<()>
{
    let gate = Gate::start("gatekeep", CRDS, PLAIN).await?;
    let name = &gate.scenario.namespace;
    let configurations = gate.registrations("validatingwebhookconfigurations");
    let bundle = "/webhooks/0/clientConfig/caBundle";
    let before = configurations.fetch(name).await?;
    let authority = before.pointer(bundle).cloned().unwrap_or_default();
    ensure!(
        authority.as_str().is_some_and(|text| !text.is_empty()),
        "{before}"
    );
    let mut stripped = before["webhooks"].clone();
    stripped[0]["clientConfig"]["caBundle"] = Value::Null;
    configurations
        .patch(name, &json!({ "webhooks": stripped }))
        .await?;
    configurations
        .until_equal(name, bundle, authority.clone(), LIMIT)
        .await?;
    configurations.delete(name).await?;
    configurations
        .until_equal(name, bundle, authority, LIMIT)
        .await?;
    let times = (std::time::Duration::from_secs(3), LIMIT);
    gate.scenario.until_no_requests(times).await
}
