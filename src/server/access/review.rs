//! The two reviews by the API server: the user of a token, and the user's permission.
//!
//! Source: Kubernetes API reference, `TokenReview v1 authentication` and `SubjectAccessReview v1 authorization`.

use http::Request;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use orkestra_cluster::client::flow::Share;
use serde::{Serialize, de::DeserializeOwned};

/// The path for `TokenReview`.
pub(super) const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// The path for `SubjectAccessReview`.
pub(super) const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The user of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenUser(UserInfo);

// The fields of a `UserInfo` are strings, and lists and maps of strings.
impl Eq for TokenUser {}

impl TokenUser {
    /// The user's name.
    pub(super) fn name(&self) -> &str {
        self.0.username.as_deref().unwrap_or_default()
    }
}

/// Requests reviews from the API server.
pub(super) struct Reviewer {
    client: kube::Client,
    share: Share,
}

impl Reviewer {
    /// Sends requests through `client`, with their own account in flow control.
    pub(super) fn new(client: kube::Client) -> Self {
        Self {
            client,
            share: Share::new("http"),
        }
    }

    /// Returns the user of a token; `None` if the API server does not accept it.
    pub(super) async fn user(&self, token: &str) -> Result<Option<TokenUser>, String> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.ask(TOKENS, &review).await?.status.unwrap_or_default();
        let user = (status.authenticated == Some(true)).then_some(status.user);
        Ok(user.flatten().map(TokenUser))
    }

    /// Returns whether the user may get that path.
    pub(super) async fn may_get(&self, user: &TokenUser, path: &str) -> Result<bool, String> {
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
        let status = self.ask(ACCESS, &review).await?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn ask<T: Serialize + DeserializeOwned>(
        &self,
        path: &str,
        review: &T,
    ) -> Result<T, String> {
        let resource = path.rsplit('/').next().unwrap_or_default();
        let body = serde_json::to_vec(review).map_err(|error| error.to_string())?;
        let request = Request::post(path)
            .header("content-type", "application/json")
            .extension(self.share.clone())
            .body(body)
            .map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| {
            // The API server's response names the missing permission; other errors are about connections.
            if let kube::Error::Api(status) = error {
                return format!(
                    "the API server refused to create {resource}: {}",
                    status.message
                );
            }
            tracing::warn!(%error, resource, "review failed");
            "the API server did not answer".to_owned()
        })
    }
}
