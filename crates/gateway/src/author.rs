//! The permissions of a Katalog's author: an author gets no permissions through a Katalog that they do not have.
//!
//! Source: Kubernetes API reference, `SubjectAccessReview v1 authorization`.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use orkestra_cluster::{
    client::flow::Share,
    requests::{Cluster, ClusterError},
};
use orkestra_engine::admission::Permission;

use super::review::RequestUser;

/// The API group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The most reviews at a time for one Katalog.
const AT_ONCE: usize = 16;
/// The most permissions that a message names.
const MOST_NAMED: usize = 5;

/// Whether authors are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthorCheck {
    /// A Katalog that needs more is refused
    #[default]
    Enforce,
    /// The author is warned
    Warn,
    /// Authors are not checked
    Off,
}

/// Asks the API server for permissions.
#[derive(Clone)]
pub(crate) struct Authors {
    cluster: Cluster,
}

impl Authors {
    /// Sends reviews through `cluster`, on an account of their own.
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.on_account_of(Share::new("webhooks")),
        }
    }

    /// Returns the permissions among `permissions` that the user does not have.
    ///
    /// # Errors
    /// The API server did not answer, or does not permit reviews.
    pub(crate) async fn missing(
        &self,
        user: &RequestUser,
        permissions: BTreeSet<Permission>,
    ) -> Result<Vec<Permission>, String> {
        // An administrator has all: one request answers for every permission.
        let everything = Permission::everything(None);
        if permissions.is_empty() || self.has(user, &everything).await? {
            return Ok(Vec::new());
        }
        let asked = stream::iter(permissions).map(|permission| async {
            let has = self.has(user, &permission).await?;
            Ok::<_, String>((!has).then_some(permission))
        });
        let mut answers = asked.buffer_unordered(AT_ONCE);
        let mut missing = Vec::new();
        while let Some(answer) = answers.next().await {
            missing.extend(answer?);
        }
        missing.sort();
        Ok(missing)
    }

    async fn has(&self, user: &RequestUser, permission: &Permission) -> Result<bool, String> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: text(&user.username),
                groups: Some(user.groups.clone()),
                uid: text(&user.uid),
                extra: Some(user.extra.clone()),
                resource_attributes: Some(ResourceAttributes {
                    namespace: permission.namespace.clone(),
                    group: Some(permission.group.clone()),
                    resource: Some(permission.resource.clone()),
                    subresource: text(&permission.subresource),
                    name: permission.name.clone(),
                    verb: Some(permission.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = self.cluster.review(&review).await;
        let answer = answer.map_err(|error| match error {
            ClusterError::Unavailable(error) => {
                tracing::warn!(error, "review failed");
                "the API server did not answer".to_owned()
            }
            error => format!("the API server refused to review it: {error}"),
        })?;
        let status = answer.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }
}

/// Returns the message about permissions that the user does not have.
pub(crate) fn message(user: &RequestUser, missing: &[Permission]) -> String {
    // Permissions on roles and bindings grant all others: they are named first.
    let mut ordered: Vec<&Permission> = missing.iter().collect();
    ordered.sort_by_key(|permission| permission.group != RBAC && permission.verb != "*");
    let named: Vec<String> = ordered
        .into_iter()
        .take(MOST_NAMED)
        .map(ToString::to_string)
        .collect();
    let more = match missing.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "user `{}` cannot grant permissions that they do not have: {}{more}",
        user.username,
        named.join("; ")
    )
}

/// Returns the user of this process, as the API server knows it.
///
/// # Errors
/// The API server did not answer.
pub(crate) async fn own_user(cluster: &Cluster) -> Result<String, ClusterError> {
    let review = cluster.review(&SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_permissions_are_named_and_the_others_counted() {
        let permission = |name: usize| Permission {
            namespace: Some("shop".to_owned()),
            group: "apps".to_owned(),
            resource: format!("kind{name}"),
            subresource: String::new(),
            name: None,
            verb: "create".to_owned(),
        };
        let user = RequestUser {
            username: "jane".to_owned(),
            ..RequestUser::default()
        };
        let permissions: Vec<Permission> = (0..7).map(permission).collect();
        let one = message(&user, &permissions[..1]);
        assert_eq!(
            one,
            "user `jane` cannot grant permissions that they do not have: create kind0.apps in namespace shop"
        );
        assert!(message(&user, &permissions).ends_with("kind4.apps in namespace shop; and 2 more"));
    }
}
