//! Permissions: every granted permission is needed. A scenario uses each verb on each resource, and without a verb a condition
//! names the missing permission.

mod used;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::{Value, json};
use testbed::eventually;

use crate::external::sink::Sink;
use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

struct Case {
    scenario: Scenario,
    roles: Vec<ClusterRole>,
    sink: Sink,
    colour: u32,
}

impl Case {
    /// Starts both operators, and creates the objects that they read.
    async fn new() -> Result<Self> {
        let sink = Sink::start().await?;
        sink.answer("/depth", 200, "3");
        let mut scenario = Scenario::new("every").await?;
        scenario
            .arguments
            .extend(["--external-allow".to_owned(), "127.0.0.1".to_owned()]);
        let katalog = input("rights/every.yaml")?;
        let roles = scenario.grant(&katalog).await?;
        scenario.install(&waters::crds()?).await?;
        let named = |name: &str, data: Value| json!({ "metadata": { "name": name }, "data": data });
        let (maps, secrets) = (scenario.objects("configmaps"), scenario.objects("secrets"));
        maps.create(&named("depths", json!({ "depth": "3" })))
            .await?;
        let token = json!({ "token": "dG9rZW4=" });
        secrets.create(&named("caller", token)).await?;
        scenario.start().await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("waters", "True", "Running").await?;
        let mut case = Self {
            scenario,
            roles,
            sink,
            colour: 0,
        };
        let spec = json!({ "colour": "c0", "open": "true" });
        waters::lake(&case.scenario, "north", &spec).await?;
        case.pond("north").await?;
        for plural in ["lakes", "ponds"] {
            case.scenario.objects(plural).until_ready("north").await?;
        }
        Ok(case)
    }

    async fn pond(&mut self, name: &str) -> Result<()> {
        let spec = json!({ "colour": self.paint(), "open": "true", "job": "fill", "lake": "north", "url": self.sink.url() });
        waters::pond(&self.scenario, name, &spec).await.map(drop)
    }

    /// Returns a new colour.
    fn paint(&mut self) -> String {
        self.colour += 1;
        format!("c{}", self.colour)
    }

    async fn set(&self, plural: &str, name: &str, spec: &Value) -> Result<()> {
        let change = json!({ "spec": spec });
        let objects = self.scenario.objects(plural);
        objects.patch(name, &change).await.map(drop)
    }

    /// Revokes the verb on the resource, and waits until that is in force.
    async fn lose(&self, verb: &str, group: &str, resource: &str) -> Result<()> {
        let mut is_granted = false;
        for role in &self.roles {
            let mut less = role.clone();
            let rules = less.rules.take().unwrap_or_default();
            let kept = rules.into_iter().flat_map(|rule| {
                let without = without(&rule, verb, group, resource);
                is_granted |= without.len() != 1 || without[0] != rule;
                without
            });
            less.rules = Some(kept.collect());
            if less != *role {
                self.scenario.put_role(&less).await?;
            }
        }
        ensure!(is_granted, "no role grants {verb} on {resource}");
        let may = self.scenario.wait_for_right(verb, group, resource, false);
        may.await
    }

    async fn give_back(&self, verb: &str, group: &str, resource: &str) -> Result<()> {
        for role in &self.roles {
            self.scenario.put_role(role).await?;
        }
        let may = self.scenario.wait_for_right(verb, group, resource, true);
        may.await
    }

    /// Waits until a condition of a custom resource or of the Katalog reports that the permission is missing.
    async fn until_reported(&self, verb: &str, resource: &str) -> Result<()> {
        let missing = format!("cannot {verb} resource \"{resource}\"");
        eventually(
            &format!("a condition reports `{missing}`"),
            LIMIT,
            async || {
                let mut reported = Vec::new();
                for plural in ["katalogs", "ponds", "lakes"] {
                    for object in self.scenario.objects(plural).list().await? {
                        let lists = ["/status/conditions", "/status/operators"];
                        let lists = lists.map(|at| object.pointer(at).and_then(Value::as_array));
                        let texts = lists.into_iter().flatten().flatten();
                        reported.extend(texts.map(|one| waters::text(one, "/message").to_owned()));
                    }
                }
                let is_reported = reported.iter().any(|message| message.contains(&missing));
                ensure!(is_reported, "the messages are {reported:#?}");
                Ok(Some(()))
            },
        )
        .await
    }
}

/// Returns the rule without a verb on a resource: two rules if it covers other resources too, none if nothing is left.
fn without(rule: &PolicyRule, verb: &str, group: &str, resource: &str) -> Vec<PolicyRule> {
    let mut groups = rule.api_groups.iter().flatten();
    let resources = rule.resources.clone().unwrap_or_default();
    let is_meant = groups.any(|one| one == group)
        && resources.iter().any(|one| one == resource)
        && rule.verbs.iter().any(|one| one == verb);
    if !is_meant {
        return vec![rule.clone()];
    }
    let others: Vec<String> = resources
        .into_iter()
        .filter(|one| one != resource)
        .collect();
    let mut less = rule.clone();
    less.resources = Some(vec![resource.to_owned()]);
    less.verbs.retain(|one| one != verb);
    let mut left = Vec::new();
    if !less.verbs.is_empty() {
        left.push(less);
    }
    if !others.is_empty() {
        left.push(PolicyRule {
            resources: Some(others),
            ..rule.clone()
        });
    }
    left
}

/// Permissions that are revoked while the controller runs. `rights.rs` tests those on custom resources and their status.
const LOST: [(&str, &str, &str); 6] = [
    ("patch", "apps", "deployments"),
    ("delete", "apps", "deployments"),
    ("create", "apps", "deployments"),
    ("get", "apps", "deployments"),
    ("create", "batch", "jobs"),
    ("get", "", "configmaps"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_one_verb_what_needs_it_is_reported() -> Result<()> {
    let mut case = Case::new().await?;
    for (turn, (verb, group, resource)) in LOST.into_iter().enumerate() {
        let group = case.scenario.text(group);
        case.lose(verb, &group, resource).await?;
        // Each turn has its own pond, because a request that failed before is retried only later.
        let name = format!("pond-{turn}");
        match (verb, resource) {
            ("patch", _) => {
                let colour = json!({ "colour": case.paint() });
                case.set("ponds", "north", &colour).await?;
            }
            ("delete", _) => {
                let closed = json!({ "open": "false" });
                case.set("ponds", "north", &closed).await?;
            }
            ("get", "deployments") => {
                let labels = json!({ "app": "other" });
                let container = json!({ "name": "other", "image": "registry.example/other:1" });
                let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
                let spec = json!({ "replicas": 0, "selector": { "matchLabels": labels }, "template": template });
                let other = json!({ "metadata": { "name": name }, "spec": spec });
                case.scenario.objects("deployments").create(&other).await?;
                case.pond(&name).await?;
            }
            // A cached object is used until it changes, so it is changed.
            ("get", "configmaps") => {
                let deeper = json!({ "data": { "depth": case.paint() } });
                let maps = case.scenario.objects("configmaps");
                maps.patch("depths", &deeper).await?;
                case.pond(&name).await?;
            }
            _ => case.pond(&name).await?,
        }
        case.until_reported(verb, resource)
            .await
            .with_context(|| format!("without permission to {verb} {resource}"))?;
        case.scenario.check_running()?;
        case.give_back(verb, &group, resource).await?;
    }
    Ok(())
}

/// Permissions without which a watch cannot start, so the controller is started without them.
const UNWATCHED: [(&str, &str, &str); 4] = [
    ("list", "", "pods"),
    ("watch", "", "configmaps"),
    ("list", "GROUP", "lakes"),
    ("watch", "apps", "deployments"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_list_or_a_watch_what_needs_it_is_reported() -> Result<()> {
    let mut case = Case::new().await?;
    for (verb, group, resource) in UNWATCHED {
        let group = case.scenario.text(group);
        case.scenario.kill9()?;
        case.lose(verb, &group, resource).await?;
        case.scenario.launch().await?;
        let colour = json!({ "colour": case.paint() });
        case.set("ponds", "north", &colour).await?;
        case.until_reported(verb, resource)
            .await
            .with_context(|| format!("without permission to {verb} {resource}"))?;
        case.scenario.check_running()?;
        case.give_back(verb, &group, resource).await?;
    }
    Ok(())
}
