//! Permissions: each rule that `ork generate rbac` prints is removed in turn and restored.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};
use testbed::eventually;

use crate::scenario::{LIMIT, Scenario, input};
use crate::waters;

/// The operators that need a permission, and therefore report that it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    /// Only this operator needs it.
    By(&'static str),
    /// Both operators need it.
    ByAll,
    /// No operator needs it: they continue without it.
    ByNone,
    /// Only new revisions need it.
    ForRevisions,
}

/// A scenario with both operators running and converged, and its roles.
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) roles: Vec<ClusterRole>,
    colour: u32,
}

impl Case {
    pub(crate) async fn new() -> Result<Self> {
        let mut scenario = Scenario::new("rights").await?;
        let katalog = input("rights/katalog.yaml")?;
        let roles = scenario.grant(&katalog).await?;
        scenario.install(&waters::crds()?).await?;
        scenario.start().await?;
        scenario.apply(&katalog)?;
        scenario.katalog_is("waters", "True", "Running").await?;
        let mut case = Self {
            scenario,
            roles,
            colour: 0,
        };
        let spec = json!({ "colour": case.paint() });
        waters::pond(&case.scenario, "north", &spec).await?;
        waters::lake(&case.scenario, "north", &spec).await?;
        case.until_followed("pond").await?;
        case.until_followed("lake").await?;
        Ok(case)
    }

    /// Returns a new colour.
    pub(crate) fn paint(&mut self) -> String {
        self.colour += 1;
        format!("c{}", self.colour)
    }

    /// Returns the roles that change without these resources, each given with its group, and the verbs that were granted on them.
    pub(crate) fn without(&self, lost: &[(&str, &str)]) -> Result<(Vec<ClusterRole>, Vec<String>)> {
        let (mut roles, mut verbs) = (Vec::new(), Vec::new());
        for role in &self.roles {
            let mut less = role.clone();
            for rule in less.rules.iter_mut().flatten() {
                let groups = rule.api_groups.clone().unwrap_or_default();
                let resources = rule.resources.get_or_insert_default();
                let before = resources.len();
                resources.retain(|resource| {
                    !lost.iter().any(|(group, lost)| {
                        lost == resource && groups.iter().any(|one| one == group)
                    })
                });
                if resources.len() < before {
                    verbs.extend(rule.verbs.clone());
                }
            }
            // Remove rules without resources.
            less.rules
                .get_or_insert_default()
                .retain(|rule| rule.resources.iter().flatten().next().is_some());
            if less != *role {
                roles.push(less);
            }
        }
        ensure!(
            !verbs.is_empty(),
            "`ork generate rbac` grants no permission on {lost:?}"
        );
        Ok((roles, verbs))
    }

    /// Waits until the operator's resource has the newest colour in its children and its status.
    pub(crate) async fn until_followed(&self, operator: &str) -> Result<()> {
        let wanted = json!(format!("c{}", self.colour));
        let plural = format!("{operator}s");
        self.scenario
            .objects(&plural)
            .until_equal("north", "/status/colour", wanted.clone(), LIMIT)
            .await?;
        self.scenario
            .objects(&plural)
            .until("north", "is ready", LIMIT, crate::scenario::is_ready)
            .await?;
        let children: &[(&str, &str)] = if operator == "pond" {
            &[("deployments", "/metadata/labels/colour")]
        } else {
            &[
                ("configmaps", "/data/colour"),
                ("serviceaccounts", "/metadata/labels/colour"),
            ]
        };
        for (children, pointer) in children {
            self.scenario
                .objects(children)
                .until_equal(&format!("north-{operator}"), pointer, wanted.clone(), LIMIT)
                .await?;
        }
        Ok(())
    }

    /// Waits until a condition of the Katalog or of a custom resource names the resource and one of the verbs.
    pub(crate) async fn until_reported(&self, resource: &str, verbs: &[String]) -> Result<()> {
        let plural = resource.split('/').next().unwrap_or(resource);
        eventually(
            &format!("a condition names {resource} and one of {verbs:?}"),
            LIMIT,
            async || {
                let mut reported = Vec::new();
                for plural in ["katalogs", "ponds", "lakes"] {
                    for object in self.scenario.objects(plural).list().await? {
                        let conditions = object
                            .pointer("/status/conditions")
                            .and_then(Value::as_array)
                            .cloned()
                            .unwrap_or_default();
                        reported.extend(
                            conditions
                                .iter()
                                .map(|condition| waters::text(condition, "/message").to_owned()),
                        );
                        let rows = object
                            .pointer("/status/operators")
                            .and_then(Value::as_array)
                            .cloned()
                            .unwrap_or_default();
                        reported.extend(
                            rows.iter()
                                .map(|row| waters::text(row, "/message").to_owned()),
                        );
                    }
                }
                let names_it = |message: &&String| {
                    message.contains(plural)
                        && verbs.iter().any(|verb| message.contains(verb.as_str()))
                };
                ensure!(
                    reported.iter().any(|message| names_it(&message)),
                    "the messages are {reported:#?}"
                );
                Ok(Some(()))
            },
        )
        .await
    }

    /// Revokes a permission, checks the effects, and restores it. The controller is down at that moment, because the revocation
    /// does not end running watches; permissions that only new revisions need are revoked while it runs.
    async fn lose(&mut self, group: &str, resource: &str, needed: Needed) -> Result<()> {
        let group = self.scenario.text(group);
        let (roles, verbs) = self.without(&[(group.as_str(), resource)])?;
        let restarts = needed != Needed::ForRevisions;
        if restarts {
            self.scenario.kill9()?;
        }
        for role in &roles {
            self.scenario.put_role(role).await?;
        }
        for verb in &verbs {
            self.scenario
                .wait_for_right(verb, &group, resource, false)
                .await?;
        }
        if restarts {
            self.scenario.launch().await?;
        }
        let colour = self.paint();
        for plural in ["ponds", "lakes"] {
            self.scenario
                .objects(plural)
                .patch("north", &json!({ "spec": { "colour": colour } }))
                .await?;
        }
        if needed == Needed::ForRevisions {
            let patch = json!({ "spec": { "crds": { "pond": { "description": colour } } } });
            self.scenario
                .objects("katalogs")
                .patch("waters", &patch)
                .await?;
        }
        self.until_reported(resource, &verbs)
            .await
            .with_context(|| format!("without {resource}"))?;
        for operator in ["pond", "lake"] {
            if needed != Needed::ByAll && needed != Needed::By(operator) {
                self.until_followed(operator).await.with_context(|| {
                    format!("without {resource}, which {operator} does not need")
                })?;
            }
        }
        self.scenario.check_running()?;
        self.give_back(resource).await
    }

    /// Restores the permission, and waits until both operators continue.
    async fn give_back(&mut self, resource: &str) -> Result<()> {
        for role in &self.roles {
            self.scenario.put_role(role).await?;
        }
        let returned = Instant::now();
        for operator in ["pond", "lake"] {
            self.until_followed(operator)
                .await
                .with_context(|| format!("with {resource} restored"))?;
        }
        self.scenario
            .katalog_is("waters", "True", "Running")
            .await
            .with_context(|| format!("with {resource} restored"))?;
        println!(
            "both operators continued {:?} after {resource} was restored",
            returned.elapsed()
        );
        self.scenario.check_running()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_permission_on_one_operators_children_is_named_and_hits_that_operator_alone()
-> Result<()> {
    let (mut one, mut other) = tokio::try_join!(Case::new(), Case::new())?;
    tokio::try_join!(
        async {
            one.lose("apps", "deployments", Needed::By("pond")).await?;
            one.lose("", "secrets", Needed::By("pond")).await
        },
        async {
            other.lose("", "configmaps", Needed::By("lake")).await?;
            other.lose("", "serviceaccounts", Needed::By("lake")).await
        },
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_permission_on_one_operators_resources_is_named_and_hits_that_operator_alone()
-> Result<()> {
    let (mut one, mut other) = tokio::try_join!(Case::new(), Case::new())?;
    tokio::try_join!(
        one.lose("GROUP", "ponds", Needed::By("pond")),
        other.lose("GROUP", "lakes/status", Needed::By("lake")),
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_permission_of_the_runtime_itself_is_named_where_it_can_be() -> Result<()> {
    let (mut one, mut other) = tokio::try_join!(Case::new(), Case::new())?;
    tokio::try_join!(
        async {
            one.lose("apps", "controllerrevisions", Needed::ForRevisions)
                .await?;
            one.lose("", "events", Needed::ByNone).await
        },
        other.lose(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            Needed::ByAll
        ),
    )?;
    Ok(())
}
