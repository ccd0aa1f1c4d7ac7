//! The settings of a gateway.

use std::time::Duration;

use super::{AuthorCheck, CertificateFiles};
use crate::meta::Namespaces;

/// How the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service of the gateway's namespace, at port 443.
    Service {
        /// The Service, for Katalogs that name none.
        name: String,
    },
    /// By a URL, without a path.
    Url(String),
}

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The name of its configurations, and the value of their label.
    pub name: String,
    /// The namespace of the Secret and of the Service; nothing in it depends on the webhooks.
    pub namespace: String,
    /// The Secret with the certificates.
    pub secret: String,
    /// How the API server reaches it.
    pub reach: Reach,
    /// Whether kinds are converted whose Katalog does not say so.
    pub conversion: bool,
    /// Whether authors of Katalogs are checked.
    pub author_check: AuthorCheck,
    /// The validity of certificates that it issues.
    pub life: Duration,
    /// The certificate, if it does not issue its own.
    pub files: Option<CertificateFiles>,
    /// The namespaces whose Katalogs are its own.
    pub katalogs: Namespaces,
    /// The user of this process, whose writes are not reviewed; set at the start.
    pub user: String,
}
