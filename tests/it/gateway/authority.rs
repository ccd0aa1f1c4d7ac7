//! The authority of authors: an author with few permissions gets no more by another spelling, a template, a binding, or a source.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{Identity, eventually};

use super::Gate;
use crate::{
    scenario::{LIMIT, Objects, Scenario, condition, input},
    waters,
};

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
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// A role whose rules the custom resource decides, with its binding.
const GRANTS: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: grants }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      allowedNamespaces: [NAMESPACE]
      operatorBox:
        onReconcile:
          roles: [{ name: g, rules: [{ apiGroups: ['{{ .spec.image }}'], resources: ['{{ .spec.tier }}'], verbs: ['{{ .spec.seen }}'] }] }]
          roleBindings: [{ name: g, roleRef: { name: g }, subjects: [{ kind: User, name: author }] }]
";

/// Creates a user who may do these things in the scenario's namespace, by a Role of its own.
fn tenant(scenario: &Scenario, name: &str, rules: &Value) -> Result<Identity> {
    let user = format!("{name}-{}", scenario.namespace);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io" }],
    });
    scenario.apply(&role.to_string())?;
    scenario.apply(&binding.to_string())?;
    scenario.cluster.identity(&user, &[])
}

/// Applies a document as a user until the API server knows the user's roles; it must be refused. Returns the message.
async fn refused(gate: &Gate, user: &Identity, text: &str) -> Result<String> {
    eventually("the author may write the object", LIMIT, async || {
        let error = gate.refused_as(Some(user), text)?;
        Ok((!error.contains("cannot get resource")).then_some(error))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_need_approval_wherever_and_however_they_are_written() -> Result<()> {
    let gate = Gate::start("authsrc", &["rules/crds.yaml"], PLAIN).await?;
    let rules = json!([
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["komposers", "katalogs"], "verbs": ["*"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"] },
    ]);
    // Another author of the same namespace may approve Komposers.
    let approve = json!([
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["komposers"], "verbs": ["get", "create", "patch", "approve"] },
    ]);
    // `*` includes `approve`: it is left out here.
    let verbs = json!([
        "get", "list", "watch", "create", "update", "patch", "delete"
    ]);
    let mut rules = rules;
    rules[0]["verbs"] = verbs;
    let author = tenant(&gate.scenario, "author", &rules)?;
    let approver = tenant(&gate.scenario, "approver", &approve)?;
    let sources = json!({ "configMaps": [{ "name": "source" }] });
    let document = |kind: &str, key: &str, is_below: bool| {
        let mut document = json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": kind,
            "metadata": { "name": "composed" }, "spec": {},
        });
        let place = if is_below {
            &mut document["spec"]
        } else {
            &mut document
        };
        place[key] = sources.clone();
        document.to_string()
    };
    for (kind, key) in [
        ("Komposer", "sources"),
        ("Komposer", "imports"),
        ("Katalog", "sources"),
    ] {
        for is_below in [true, false] {
            let error = refused(&gate, &author, &document(kind, key, is_below)).await?;
            let missing = format!("approve {}s.orkestra.orkspace.io", kind.to_lowercase());
            ensure!(error.contains(&missing), "{kind} {key} {is_below}: {error}");
        }
    }
    let beside = document("Komposer", "sources", false);
    eventually("the approver may approve", LIMIT, async || {
        let output = gate.kubectl_as(Some(&approver), &["apply", "-f", "-"], &beside)?;
        Ok(output.status.success().then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_custom_resource_decides_counts_as_every_permission() -> Result<()> {
    let gate = Gate::start("authtmpl", &["rules/crds.yaml"], PLAIN).await?;
    // The administrator of a namespace, who has no permission beyond it and does not have all in it.
    let group = gate.scenario.group.clone();
    let most = json!([
        { "apiGroups": ["", "apps", "batch", group, "orkestra.orkspace.io", "rbac.authorization.k8s.io"],
          "resources": ["*"], "verbs": ["*"] },
    ]);
    let author = tenant(&gate.scenario, "author", &most)?;
    let namespace = &gate.scenario.namespace;
    let everything = format!("every permission in namespace {namespace}");
    let error = refused(&gate, &author, GRANTS).await?;
    ensure!(error.contains(&everything), "{error}");
    let bound = GRANTS
        .replace("['{{ .spec.image }}']", "['']")
        .replace("['{{ .spec.tier }}']", "[configmaps]")
        .replace("['{{ .spec.seen }}']", "[get]");
    let chosen = bound.replace(
        "roleRef: { name: g }",
        "roleRef: { name: '{{ .spec.image }}' }",
    );
    let error = refused(&gate, &author, &chosen).await?;
    ensure!(error.contains(&everything), "{error}");
    // With literal rules, the author has what is granted.
    gate.kubectl_as(Some(&author), &["apply", "-f", "-"], &bound)
        .and_then(|output| {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.success(), "{error}");
            Ok(())
        })
}

/// A role that a custom resource names, with its binding.
const BOUND: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: bound }
spec:
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      allowedNamespaces: [NAMESPACE]
      operatorBox:
        onReconcile:
          roles:
            - name: '{{ .metadata.name }}'
              when: [{ field: spec.tier, notEquals: none }]
              rules: [{ apiGroups: [''], resources: [configmaps], verbs: [get] }]
          roleBindings:
            - { name: '{{ .metadata.name }}', roleRef: { name: '{{ .metadata.name }}' }, subjects: [{ kind: User, name: author }] }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_is_created_only_for_the_role_of_its_own_custom_resource() -> Result<()> {
    let mut scenario = Scenario::new("authbind").await?;
    scenario.install(&input("rules/crds.yaml")?).await?;
    scenario.grant_confined(BOUND).await?;
    scenario.accept_faults();
    scenario.start().await?;
    // A role of the cluster's administrator.
    let powerful = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "taken" },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }],
    });
    for name in ["taken", "unmade"] {
        let mut role = powerful.clone();
        role["metadata"]["name"] = json!(name);
        scenario.apply(&role.to_string())?;
    }
    scenario.apply(BOUND)?;
    scenario.katalog_is("bound", "True", "Running").await?;
    let site = |name: &str, tier: &str| {
        waters::resource(&scenario, "Site", name, &json!({ "tier": tier })).to_string()
    };
    // A role of that name exists already; and one is never created by the condition.
    scenario.apply(&site("taken", "x"))?;
    scenario.apply(&site("unmade", "none"))?;
    scenario.apply(&site("fine", "x"))?;
    let sites = scenario.objects("sites");
    sites.until_ready("fine").await?;
    let path = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
        scenario.namespace
    );
    let bindings = Objects::at(&scenario.client, &path);
    ensure!(bindings.get("fine").await?.is_some());
    for (name, reason) in [("taken", "NameTaken"), ("unmade", "TargetRefused")] {
        crate::external::reported(&sites, name, reason).await?;
        ensure!(bindings.get(name).await?.is_none(), "{name} has a binding");
    }
    Ok(())
}

/// Returns the definition of a kind with the subresource `scale`.
pub(crate) fn scaled_crd() -> Result<String> {
    let scale = "{ status: {}, scale: { specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas } }";
    Ok(input("rules/crds.yaml")?.replace("{ status: {} }", scale))
}

/// Rules on the number of replicas, as a policy of the API server and as the webhook evaluates them.
const SCALED: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: scaled }
spec:
  security: { webhooks: { admission: { enabled: true } } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.replicas, max: '5', message: 'too many replicas' }
          - { field: '{{ .spec.replicas | add 0 }}', notEquals: '4', message: 'four is unlucky' }
          - { name: none, field: '{{ .spec.replicas | add 0 }}', notEquals: '0', message: 'none is too few' }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: a } }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_on_replicas_hold_for_kubectl_scale() -> Result<()> {
    let scenario = Scenario::new("authscale").await?;
    scenario.install(&scaled_crd()?).await?;
    let mut gate = Gate::of(scenario, &[], &[SCALED]).await?;
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(SCALED).await?;
    let spec = json!({ "image": "a", "replicas": 1 });
    gate.accepted(&waters::resource(&gate.scenario, "Site", "shop", &spec).to_string())?;
    let kind = format!("sites.{}/shop", gate.scenario.group);
    let scale = |count: &str| -> Result<(bool, String)> {
        let count = format!("--replicas={count}");
        let output = gate.kubectl_as(None, &["scale", &kind, &count], "")?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.success(), error))
    };
    let sites = gate.scenario.objects("sites");
    for (count, message) in [
        ("9", "too many replicas"),
        ("4", "four is unlucky"),
        ("0", "none is too few"),
    ] {
        eventually("scaling is judged", LIMIT, async || {
            let (is_accepted, error) = scale(count)?;
            if is_accepted {
                sites
                    .patch("shop", &json!({ "spec": { "replicas": 1 } }))
                    .await?;
            }
            Ok((!is_accepted && error.contains(message)).then_some(()))
        })
        .await?;
    }
    let (is_accepted, error) = scale("3")?;
    ensure!(is_accepted, "{error}");
    ensure!(sites.fetch("shop").await?["spec"]["replicas"] == 3);
    Ok(())
}

/// A kind whose custom resources the operator of another kind creates.
const CHILDREN: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: parents }
spec:
  security: { webhooks: { admission: { enabled: true } } }
  crds:
    pond:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Pond, plural: ponds }
      operatorBox:
        onReconcile:
          custom:
            - apiVersion: GROUP/v1alpha1
              kind: Site
              metadata: { name: '{{ .metadata.name }}' }
              spec: { image: '{{ .spec.colour }}' }
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules:
          - { field: spec.image, notEquals: forbidden, message: 'forbidden image', fires: { reconcile: false } }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_is_a_custom_resource_is_judged_like_any_other() -> Result<()> {
    let mut gate = Gate::prepared("authchild", &["rules/crds.yaml"], &[]).await?;
    gate.scenario.install(&waters::crds()?).await?;
    gate.scenario.grant(CHILDREN).await?;
    gate.scenario.accept_faults();
    gate.scenario.arguments = gate.arguments(&[]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(CHILDREN).await?;
    let site = waters::resource(
        &gate.scenario,
        "Site",
        "probe",
        &json!({ "image": "forbidden" }),
    );
    eventually("the rule applies", LIMIT, async || {
        let create = ["create", "--dry-run=server", "-f", "-"];
        let output = gate.kubectl_as(None, &create, &site.to_string())?;
        Ok((!output.status.success()).then_some(()))
    })
    .await?;
    let pond = |name: &str, colour: &str| {
        waters::resource(&gate.scenario, "Pond", name, &json!({ "colour": colour })).to_string()
    };
    gate.accepted(&pond("good", "green"))?;
    gate.accepted(&pond("bad", "forbidden"))?;
    let ponds = gate.scenario.objects("ponds");
    ponds.until_ready("good").await?;
    let is_refused = |pond: &Value| {
        let ready = condition(pond, "Ready").cloned().unwrap_or_default();
        ready["status"] == "False" && waters::text(&ready, "/message").contains("forbidden image")
    };
    ponds
        .until("bad", "is refused its child", LIMIT, is_refused)
        .await?;
    ensure!(gate.scenario.objects("sites").get("bad").await?.is_none());
    // Orkestra's own metadata on the child is not a write of its declaration: the child is released.
    let good = gate.scenario.objects("sites").fetch("good").await?;
    let finalizers = good["metadata"]["finalizers"].as_array();
    finalizers.context("the child has no finalizer")?;
    Ok(())
}
