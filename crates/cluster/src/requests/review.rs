//! Requests whose response is not an object of the cluster: reviews, and responses that the caller reads itself.

use bytes::Bytes;
use futures::TryFutureExt as _;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k8s_openapi::{
    Resource,
    api::authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    },
};
use kube::client::Body;
use serde::{Serialize, de::DeserializeOwned};

use super::{Cluster, ClusterError, JSON, error::RequestSubject};

/// A response that is not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body; `None` if it is longer than permitted.
    pub body: Option<Bytes>,
}

impl Cluster {
    /// Has the API server review `review`: it returns it with its status, and stores nothing.
    ///
    /// # Errors
    /// [`ClusterError::Forbidden`] if a permission is missing, [`ClusterError::Unavailable`] if there is no response or it cannot be read.
    pub async fn review<T>(&self, review: &T) -> Result<T, ClusterError>
    where
        T: Resource + Serialize + DeserializeOwned,
    {
        let asked = RequestSubject::review(T::GROUP, T::URL_PATH_SEGMENT);
        let body = serde_json::to_vec(review).map_err(|_| asked.unwritable())?;
        let path = format!("/apis/{}/{}", T::API_VERSION, T::URL_PATH_SEGMENT);
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, JSON)
            .header(header::ACCEPT, JSON);
        let text = self.send(&asked, request, body).await?;
        // serde_json's own message may quote a value.
        serde_json::from_str(&text).map_err(|_| {
            ClusterError::Unavailable("the response to the review cannot be read".to_owned())
        })
    }

    /// Returns whether this process may do that to objects of that kind, in one namespace or in all.
    ///
    /// # Errors
    /// As [`Cluster::review`].
    pub async fn may(
        &self,
        verb: &str,
        (group, plural): (&str, &str),
        namespace: Option<&str>,
    ) -> Result<bool, ClusterError> {
        self.may_on(verb, (group, plural), namespace, None).await
    }

    /// Returns whether this process may do that to the object of that name, or to all objects of a kind, or of a subresource
    /// such as `websites/status`.
    ///
    /// # Errors
    /// As [`Cluster::review`].
    pub async fn may_on(
        &self,
        verb: &str,
        (group, resource): (&str, &str),
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<bool, ClusterError> {
        let (plural, subresource) = match resource.split_once('/') {
            Some((plural, subresource)) => (plural, Some(subresource.to_owned())),
            None => (resource, None),
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: namespace.map(str::to_owned),
                    group: Some(group.to_owned()),
                    resource: Some(plural.to_owned()),
                    verb: Some(verb.to_owned()),
                    subresource,
                    name: name.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let status = self.review(&review).await?.status;
        Ok(status.is_some_and(|status| status.allowed))
    }

    /// Returns the response to a GET of `path`, whatever its status, in the form that `accept` names. At most `longest` bytes of
    /// it are read, so that the memory for it is bounded.
    ///
    /// # Errors
    /// [`ClusterError::Unavailable`] if there is no response.
    pub async fn raw(
        &self,
        path: &str,
        accept: &str,
        longest: usize,
    ) -> Result<RawResponse, ClusterError> {
        let asked = RequestSubject::discovery("");
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .map_err(|_| asked.unwritable())?;
        let fetch = async |request| {
            let answer = self.client.send(request);
            let answer = answer.map_err(|error| asked.sort(error)).await?;
            let status = answer.status();
            let body = match Limited::new(answer.into_body(), longest).collect().await {
                Ok(body) => Some(body.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => None,
                Err(error) => return Err(ClusterError::Unavailable(error.to_string())),
            };
            Ok(RawResponse { status, body })
        };
        self.answered(request, fetch).await
    }
}
