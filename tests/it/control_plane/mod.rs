//! The control plane of the tests: authorization, scheduling, garbage collection and audit log work as in a real cluster, and no
//! process outlives the tests.

mod killed;

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
    WatchParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::{ControlPlane, Options, eventually, namespace};

use crate::scenario::LIMIT;

fn object<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}

fn config_map(name: &str) -> Result<ConfigMap> {
    object(json!({ "metadata": { "name": name }, "data": { "colour": "teal" } }))
}

fn pod_template(restart: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "orchard" } },
        "spec": {
            "restartPolicy": restart,
            "containers": [{ "name": "main", "image": "registry.example/orchard:3" }],
        },
    })
}

#[tokio::test]
async fn the_server_and_its_kubectl_are_of_one_version() -> Result<()> {
    let cluster = ControlPlane::shared();
    let server = cluster.admin().client()?.apiserver_version().await?;
    let output = cluster.kubectl(&cluster.admin(), &["version", "-o", "json"], None)?;
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(reported["clientVersion"]["gitVersion"], server.git_version);
    assert_eq!(reported["serverVersion"]["gitVersion"], server.git_version);
    assert!(
        server.git_version.starts_with("v1."),
        "{}",
        server.git_version
    );
    Ok(())
}

#[tokio::test]
async fn an_identity_may_do_what_a_role_grants_and_nothing_else() -> Result<()> {
    let cluster = ControlPlane::shared();
    let admin = cluster.admin().client()?;
    let own = namespace(&admin, "rights").await?;
    let clerk = cluster.identity("rights-clerk", &["rights-readers", "rights-others"])?;
    let maps: Api<ConfigMap> = Api::namespaced(clerk.client()?, &own);
    let code = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let denied = maps.list(&ListParams::default()).await.err().map(code);
    assert_eq!(denied, Some(403));

    let rights = json!({ "apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "reader" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "reader" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "rights-others" }],
        },
    ]});
    let applied = cluster.kubectl(
        &cluster.admin(),
        &["apply", "-n", &own, "-f", "-"],
        Some(&rights.to_string()),
    )?;
    ensure!(
        applied.status.success(),
        "{}",
        String::from_utf8_lossy(&applied.stderr)
    );
    // The authorizer receives the binding through its own watch, so it takes effect with a delay.
    eventually("the role is in force", LIMIT, async || {
        Ok(Some(maps.list(&ListParams::default()).await?))
    })
    .await?;
    let write = maps
        .create(&PostParams::default(), &config_map("forbidden")?)
        .await;
    assert_eq!(write.err().map(code), Some(403));
    Ok(())
}

#[tokio::test]
async fn a_deployment_becomes_ready() -> Result<()> {
    let client = ControlPlane::shared().admin().client()?;
    let own = namespace(&client, "ready").await?;
    let deployments: Api<Deployment> = Api::namespaced(client, &own);
    let wanted = object(json!({
        "metadata": { "name": "orchard" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "orchard" } },
            "template": pod_template("Always"),
        },
    }))?;
    deployments.create(&PostParams::default(), &wanted).await?;
    eventually("three pods are ready", LIMIT, async || {
        let status = deployments.get("orchard").await?.status;
        Ok(status.filter(|status| status.ready_replicas == Some(3)))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_job_completes() -> Result<()> {
    let client = ControlPlane::shared().admin().client()?;
    let own = namespace(&client, "complete").await?;
    let jobs: Api<Job> = Api::namespaced(client, &own);
    let wanted = object(json!({
        "metadata": { "name": "harvest" },
        "spec": { "template": pod_template("Never") },
    }))?;
    jobs.create(&PostParams::default(), &wanted).await?;
    eventually("the Job is complete", LIMIT, async || {
        let conditions = jobs
            .get("harvest")
            .await?
            .status
            .and_then(|status| status.conditions);
        Ok(conditions.filter(|all| {
            all.iter()
                .any(|one| one.type_ == "Complete" && one.status == "True")
        }))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn what_a_deleted_object_owns_is_collected() -> Result<()> {
    let client = ControlPlane::shared().admin().client()?;
    let own = namespace(&client, "collect").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &own);
    let owner = maps
        .create(&PostParams::default(), &config_map("owner")?)
        .await?;
    let mut child = config_map("child")?;
    child.metadata.owner_references = Some(object(json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
    }]))?);
    maps.create(&PostParams::default(), &child).await?;
    maps.create(&PostParams::default(), &config_map("stranger")?)
        .await?;
    maps.delete("owner", &DeleteParams::background()).await?;
    eventually("the child is collected", LIMIT, async || {
        Ok(maps.get_opt("child").await?.is_none().then_some(()))
    })
    .await?;
    assert!(maps.get_opt("stranger").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn what_an_instance_of_a_new_kind_owns_is_collected_too() -> Result<()> {
    let cluster = ControlPlane::shared();
    let client = cluster.admin().client()?;
    let own = namespace(&client, "kinds").await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kind = object(json!({
        "metadata": { "name": "orchards.collect.example" },
        "spec": {
            "group": "collect.example",
            "scope": "Namespaced",
            "names": { "kind": "Orchard", "plural": "orchards" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    }))?;
    crds.create(&PostParams::default(), &kind).await?;
    let gvk = GroupVersionKind::gvk("collect.example", "v1", "Orchard");
    let orchards: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &own, &ApiResource::from_gvk(&gvk));
    let wanted = object(json!({
        "apiVersion": "collect.example/v1", "kind": "Orchard", "metadata": { "name": "north" },
    }))?;
    let owner = eventually("the kind is served", LIMIT, async || {
        Ok(Some(
            orchards.create(&PostParams::default(), &wanted).await?,
        ))
    })
    .await?;
    cluster.relearn_kinds()?;

    let maps: Api<ConfigMap> = Api::namespaced(client, &own);
    let mut child = config_map("child")?;
    child.metadata.owner_references = Some(object(json!([{
        "apiVersion": "collect.example/v1", "kind": "Orchard", "name": "north", "uid": owner.metadata.uid,
    }]))?);
    maps.create(&PostParams::default(), &child).await?;
    orchards
        .delete("north", &DeleteParams::background())
        .await?;
    // Well below the 30 s after which the garbage collector would discover the kind by itself.
    eventually(
        "the child is collected",
        Duration::from_secs(20),
        async || Ok(maps.get_opt("child").await?.is_none().then_some(())),
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_audit_log_shows_each_request_of_a_user_once() -> Result<()> {
    let cluster = ControlPlane::shared();
    let own = namespace(&cluster.admin().client()?, "audit").await?;
    let clerk = cluster.identity("audit-clerk", &[testbed::SYSTEM_MASTERS])?;
    let maps: Api<ConfigMap> = Api::namespaced(clerk.client()?, &own);
    maps.create(&PostParams::default(), &config_map("before")?)
        .await?;

    let mark = cluster.mark()?;
    maps.create(&PostParams::default(), &config_map("counted")?)
        .await?;
    maps.get_opt("absent").await?;
    {
        let params = WatchParams::default().timeout(1);
        let mut events = Box::pin(maps.watch(&params, "0").await?);
        // Read the watch to its end, for which the API server logs a second line.
        while events.next().await.is_some() {}
    }
    let got = cluster.kubectl(&clerk, &["get", "configmap", "counted", "-n", &own], None)?;
    assert!(got.status.success());

    let seen: Vec<_> = cluster
        .audit_since(mark)?
        .into_iter()
        .filter(|event| event.user == "audit-clerk" && event.resource == "configmaps")
        .map(|event| {
            (
                event.verb,
                event.name,
                event.code,
                event.user_agent.starts_with("kubectl/"),
            )
        })
        .collect();
    let expected = [
        ("create", "counted", 201, false),
        ("get", "absent", 404, false),
        ("watch", "", 200, false),
        ("get", "counted", 200, true),
    ]
    .map(|(verb, name, code, kubectl)| (verb.to_owned(), name.to_owned(), code, kubectl));
    assert_eq!(seen, expected);
    Ok(())
}

#[tokio::test]
async fn a_killed_api_server_comes_back_with_its_data_and_its_controllers() -> Result<()> {
    let cluster = ControlPlane::start(Options {
        nodes: true,
        ..Options::default()
    })?;
    let client = cluster.admin().client()?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("kept")?)
        .await?;

    cluster.stop_api_server()?;
    assert!(maps.get("kept").await.is_err(), "the API server answers");
    cluster.start_api_server()?;

    // The same client works: address and certificates are unchanged.
    assert_eq!(maps.get("kept").await?.data, config_map("kept")?.data);
    let pod = json!({ "metadata": { "name": "late" }, "spec": pod_template("Always")["spec"] });
    pods.create(&PostParams::default(), &object(pod)?).await?;
    eventually("a pod made after the restart runs", LIMIT, async || {
        let phase = pods
            .get("late")
            .await?
            .status
            .and_then(|status| status.phase);
        Ok(phase.filter(|phase| phase == "Running"))
    })
    .await?;
    Ok(())
}
