//! The rights of a scenario's user: what `ork generate rbac` prints, under names of the scenario's own.

use std::collections::BTreeSet;
use std::fmt::Debug;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::eventually;

use super::{LIMIT, Objects, Scenario};

/// Namespace of the Leases by which installations claim kinds.
pub(crate) const CLAIMS: &str = "orkestra-claims";

impl Scenario {
    /// Grants what `ork generate rbac -k KATALOG` prints, beside what was granted before, and waits until it holds.
    pub(crate) async fn grant(&mut self, katalog: &str) -> Result<Vec<ClusterRole>> {
        Ok(self.grant_printed(katalog, &[]).await?.0)
    }

    /// The same for a controller that runs the Katalogs of the scenario's namespace alone, with the Roles of single namespaces.
    pub(crate) async fn grant_confined(
        &mut self,
        katalog: &str,
    ) -> Result<(Vec<ClusterRole>, Vec<Role>)> {
        let namespace = self.namespace.clone();
        self.grant_printed(katalog, &["--namespace", &namespace])
            .await
    }

    /// The same with these arguments of the command; returns the roles of the cluster, and those of single namespaces.
    pub(crate) async fn grant_printed(
        &mut self,
        katalog: &str,
        arguments: &[&str],
    ) -> Result<(Vec<ClusterRole>, Vec<Role>)> {
        let file = self.file(&format!("katalog-{}.yaml", self.grants), katalog)?;
        let file = file.to_str().context("a path is not text")?.to_owned();
        let arguments = [&["generate", "rbac", "-k", &file][..], arguments].concat();
        let printed = self.ork(&arguments)?;
        let (mut roles, mut confined) = (Vec::new(), Vec::new());
        let mut claims = None;
        for manifest in serde_saphyr::from_multiple::<Value>(&printed)? {
            match manifest["kind"].as_str() {
                // For those that serve webhooks: see `gateway`.
                Some("ClusterRole") if manifest["metadata"]["name"] == "orkestra-webhooks" => {}
                Some("ClusterRole") => {
                    let mut role: ClusterRole = serde_json::from_value(manifest)?;
                    let name = role.metadata.name.unwrap_or_default();
                    role.metadata.name = Some(format!("{}:{}:{name}", self.namespace, self.grants));
                    roles.push(role);
                }
                Some("Role") if manifest["metadata"]["namespace"] == CLAIMS => {
                    claims = Some(manifest);
                }
                Some("Role") if manifest["metadata"]["namespace"] != "orkestra-system" => {
                    let mut role: Role = serde_json::from_value(manifest)?;
                    let name = role.metadata.name.unwrap_or_default();
                    role.metadata.name = Some(format!("{}:{}:{name}", self.namespace, self.grants));
                    confined.push(role);
                }
                // In their place the scenario's user; the other Role is for those who take part in an election.
                Some(
                    "ClusterRoleBinding" | "Namespace" | "Role" | "RoleBinding" | "ServiceAccount",
                ) => {}
                other => bail!("`ork generate rbac` printed a {other:?}"),
            }
        }
        self.grants += 1;
        let claims = claims.context("no Role for claims is printed")?;
        self.let_claim(claims, self.identity.user()).await?;
        for role in &roles {
            self.put_role(role).await?;
            self.bind_to(role, self.identity.user()).await?;
        }
        for role in &confined {
            self.put_confined(role).await?;
        }
        let scopes = (roles.iter()).map(|role| rights_of(None, role.rules.as_deref()));
        let confined_scopes = confined
            .iter()
            .map(|role| rights_of(role.metadata.namespace.as_deref(), role.rules.as_deref()));
        self.wait_for_rights(&scopes.chain(confined_scopes).collect::<Vec<_>>())
            .await?;
        Ok((roles, confined))
    }

    /// Gives the scenario's user a Role in its namespace.
    async fn put_confined(&self, role: &Role) -> Result<()> {
        let ObjectMeta {
            name, namespace, ..
        } = &role.metadata;
        let (name, namespace) = (
            name.clone().unwrap_or_default(),
            namespace.as_deref().unwrap_or_default(),
        );
        let binding = RoleBinding {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            role_ref: RoleRef {
                kind: "Role".to_owned(),
                name: name.clone(),
                ..RoleRef::default()
            },
            subjects: Some(vec![self.user()]),
        };
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        apply_as_scenario(&roles, role).await?;
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        apply_as_scenario(&bindings, &binding).await
    }

    fn user(&self) -> Subject {
        Subject {
            kind: "User".to_owned(),
            name: self.identity.user().to_owned(),
            ..Subject::default()
        }
    }

    /// Grants a user the printed Role for claims, and waits until it holds.
    pub(crate) async fn let_claim(&self, mut role: Value, user: &str) -> Result<()> {
        let name = format!("claims-{user}");
        role["metadata"]["name"] = json!(name);
        let subject =
            json!({ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": CLAIMS },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [subject],
        });
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": CLAIMS } });
        // Two tests may create the namespace at once: one of them finds that it exists already.
        eventually("the Role for claims is applied", LIMIT, async || {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            apply_as_scenario(&namespaces, &namespace).await?;
            let roles: Api<Role> = Api::namespaced(self.client.clone(), CLAIMS);
            apply_as_scenario(&roles, &role).await?;
            let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), CLAIMS);
            apply_as_scenario(&bindings, &binding).await?;
            Ok(Some(()))
        })
        .await?;
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": user, "resourceAttributes": {
                "verb": "create", "group": "coordination.k8s.io", "resource": "leases", "namespace": CLAIMS,
            }},
        });
        let reviews = Objects::at(
            &self.client,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        );
        eventually("the Role for claims holds", LIMIT, async || {
            let review = reviews.create(&question).await?;
            Ok((review["status"]["allowed"] == true).then_some(()))
        })
        .await
    }

    /// Makes a role what it says here: with a rule less, that right is taken away.
    pub(crate) async fn put_role(&self, role: &ClusterRole) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        apply_as_scenario(&roles, role).await
    }

    /// The same for a role of a namespace.
    pub(crate) async fn put_role_in(&self, namespace: &str, role: &Role) -> Result<()> {
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        apply_as_scenario(&roles, role).await
    }

    /// Gives a role to a user.
    pub(crate) async fn bind_to(&self, role: &ClusterRole, user: &str) -> Result<()> {
        let role = role.metadata.name.clone().unwrap_or_default();
        let name = format!("{role}:{user}");
        let binding = ClusterRoleBinding {
            metadata: ObjectMeta {
                name: Some(name),
                ..ObjectMeta::default()
            },
            role_ref: RoleRef {
                kind: "ClusterRole".to_owned(),
                name: role,
                ..RoleRef::default()
            },
            subjects: Some(vec![Subject {
                kind: "User".to_owned(),
                name: user.to_owned(),
                ..Subject::default()
            }]),
        };
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        apply_as_scenario(&bindings, &binding).await
    }

    /// The API server takes in roles by a watch of its own: a moment after they are written. It takes in each whole, so of the
    /// first roles of a user one right is enough that no other of them gives.
    async fn wait_for_rights(&self, roles: &[Rights]) -> Result<()> {
        for (at, role) in roles.iter().enumerate() {
            let elsewhere = |right: &Right| {
                let mut others = roles.iter().enumerate().filter(|(other, _)| *other != at);
                others.any(|(_, other)| other.contains(right))
            };
            let own = role.iter().find(|right| !elsewhere(right));
            let asked: Vec<&Right> = match own {
                Some(own) if self.grants == 1 => vec![own],
                _ => role.iter().collect(),
            };
            for (namespace, verb, group, resource) in asked {
                self.wait_for_right_in(namespace.as_deref(), (verb, group, resource), true)
                    .await?;
            }
        }
        Ok(())
    }

    /// Waits until the scenario's user may, or may not, do that to resources of that kind everywhere.
    pub(crate) async fn wait_for_right(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        allowed: bool,
    ) -> Result<()> {
        self.wait_for_right_in(None, (verb, group, resource), allowed)
            .await
    }

    /// The same in one namespace; none is all of them.
    pub(crate) async fn wait_for_right_in(
        &self,
        namespace: Option<&str>,
        (verb, group, resource): (&str, &str, &str),
        allowed: bool,
    ) -> Result<()> {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": self.identity.user(),
                "resourceAttributes": { "namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": subresource },
            },
        });
        let reviews = Objects::at(
            &self.client,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        );
        eventually(
            &format!("the right to {verb} {resource} is {allowed}"),
            LIMIT,
            async || {
                Ok(
                    (reviews.create(&question).await?["status"]["allowed"] == allowed)
                        .then_some(()),
                )
            },
        )
        .await
    }
}

/// Namespace (none is all of them), verb, group and resource.
type Right = (Option<String>, String, String, String);
type Rights = BTreeSet<Right>;

/// What a role's rules permit, those about single objects apart.
fn rights_of(namespace: Option<&str>, rules: Option<&[PolicyRule]>) -> Rights {
    let of_all = |rule: &&PolicyRule| rule.resource_names.iter().flatten().next().is_none();
    let mut rights = Rights::new();
    for rule in rules.into_iter().flatten().filter(of_all) {
        let group = rule.api_groups.iter().flatten().next();
        for resource in rule.resources.iter().flatten() {
            rights.extend(rule.verbs.iter().map(|verb| {
                let group = group.cloned().unwrap_or_default();
                (
                    namespace.map(str::to_owned),
                    verb.clone(),
                    group,
                    resource.clone(),
                )
            }));
        }
    }
    rights
}

/// Applies an object of those as `scenario`, whoever else has its fields.
async fn apply_as_scenario<K>(objects: &Api<K>, object: &impl Serialize) -> Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let object = serde_json::to_value(object)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let how = PatchParams::apply("scenario").force();
    objects.patch(name, &how, &Patch::Apply(&object)).await?;
    Ok(())
}
