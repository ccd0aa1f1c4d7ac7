//! The two reviews by the API server: the user of a token, and the user's permission.
//!
//! Source: Kubernetes API reference, `TokenReview v1 authentication` and `SubjectAccessReview v1 authorization`.

use k8s_openapi::Resource;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use orkestra_cluster::{
    client::flow::Share,
    requests::{Cluster, ClusterError},
};
use serde::{Serialize, de::DeserializeOwned};

/// The user of a token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenUser(UserInfo);

// The fields of a `UserInfo` are strings, and lists and maps of strings.
impl Eq for TokenUser {}

impl TokenUser {
    /// The user's name.
    pub(crate) fn name(&self) -> &str {
        self.0.username.as_deref().unwrap_or_default()
    }
}

/// Requests reviews from the API server.
pub(crate) struct Reviewer {
    cluster: Cluster,
}

impl Reviewer {
    /// Sends requests through `cluster`, on an account of their own.
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.on_account_of(Share::new("http")),
        }
    }

    /// Returns the user of a token; `None` if the API server does not accept it.
    pub(crate) async fn user(&self, token: &str) -> Result<Option<TokenUser>, String> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.ask(&review).await?.status.unwrap_or_default();
        let user = (status.authenticated == Some(true)).then_some(status.user);
        Ok(user.flatten().map(TokenUser))
    }

    /// Returns whether the user may get that path.
    pub(crate) async fn may_get(&self, user: &TokenUser, path: &str) -> Result<bool, String> {
        let UserInfo {
            username,
            groups,
            uid,
            extra,
        } = user.0.clone();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: username,
                groups,
                uid,
                extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.ask(&review).await?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn ask<T>(&self, review: &T) -> Result<T, String>
    where
        T: Resource + Serialize + DeserializeOwned,
    {
        let resource = T::URL_PATH_SEGMENT;
        self.cluster
            .review(review)
            .await
            .map_err(|error| match error {
                ClusterError::Unavailable(error) => {
                    tracing::warn!(error, resource, "review failed");
                    "the API server did not answer".to_owned()
                }
                // The API server's response names the missing permission.
                error => format!("the API server refused to create {resource}: {error}"),
            })
    }
}
