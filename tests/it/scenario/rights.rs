//! The permissions of a scenario's user: what `ork generate rbac` prints, with role names that are unique to the scenario.

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

/// The namespace of the Leases with which installations claim kinds.
pub(crate) const CLAIMS: &str = "orkestra-claims";

impl Scenario {
    /// Grants the permissions that `ork generate rbac -k KATALOG` prints, in addition to earlier ones, and waits until they are
    /// in force.
    pub(crate) async fn grant(&mut self, katalog: &str) -> Result<Vec<ClusterRole>> {
        Ok(self.grant_printed(katalog, &[]).await?.0)
    }

    /// Does the same for a controller that runs only the Katalogs of the scenario's namespace, with Roles for single namespaces.
    pub(crate) async fn grant_confined(
        &mut self,
        katalog: &str,
    ) -> Result<(Vec<ClusterRole>, Vec<Role>)> {
        let namespace = self.namespace.clone();
        self.grant_printed(katalog, &["--namespace", &namespace])
            .await
    }

    /// Does the same with these arguments of the command. Returns the `ClusterRole`s and the Roles.
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
                // Only installations with webhooks need this role: see `gateway`.
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
                // The scenario's user replaces the service account; the remaining Role is for replicas with leader election.
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

    /// Grants a Role to the scenario's user, in the namespace of the Role.
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

    /// Grants the printed Role for claims to a user, and waits until it is in force.
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
        // Two tests may create the namespace at the same time: one of them gets the error that it already exists.
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
        eventually("the Role for claims is in force", LIMIT, async || {
            let review = reviews.create(&question).await?;
            Ok((review["status"]["allowed"] == true).then_some(()))
        })
        .await
    }

    /// Writes a role. If a rule was removed from it, this revokes the permission.
    pub(crate) async fn put_role(&self, role: &ClusterRole) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        apply_as_scenario(&roles, role).await
    }

    /// Does the same for a Role of a namespace.
    pub(crate) async fn put_role_in(&self, namespace: &str, role: &Role) -> Result<()> {
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        apply_as_scenario(&roles, role).await
    }

    /// Binds a role to a user.
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

    /// Waits until the roles are in force: the API server reads roles with a watch, so they apply shortly after they are written.
    /// It reads each role as a whole: for a user's first roles, one permission of each that no other role grants is enough.
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

    /// Waits until the scenario's user may, or may not, use that verb on that kind of resource in all namespaces.
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

    /// Does the same in one namespace, or in all with `None`.
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
            &format!("permission to {verb} {resource} is {allowed}"),
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

/// Namespace (`None` for all), verb, group and resource.
type Right = (Option<String>, String, String, String);
type Rights = BTreeSet<Right>;

/// Returns the permissions that a role's rules grant, without rules for single objects (`resourceNames`).
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

/// Applies an object as field manager `scenario`, and takes over fields of other managers.
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
