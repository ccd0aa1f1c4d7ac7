//! The settings of a gateway.

use std::time::Duration;

use super::{AuthorCheck, Callers, CertificateFiles};
use orkestra_controller::Namespaces;

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
    /// Not at all: no webhooks are served, and only policies are kept.
    Unserved,
}

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The name of its configurations, and the value of their label.
    pub name: String,
    /// The installation that it belongs to: `namespace/Lease` of a controller, `namespace/gateway:NAME` of a gateway without one,
    /// `namespace/ork controller of KATALOGS` of a controller without leader election.
    pub installation: String,
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
    /// Who counts as the API server.
    pub callers: Callers,
    /// The user of this process, whose writes for purposes of its own are not judged; set at the start.
    pub user: String,
    /// Whether its Katalogs end with this process, so that it removes their policies when it stops: those of files.
    pub ephemeral: bool,
}

impl GatewayOptions {
    /// The URL at which the API server reaches it, if it is not a Service.
    pub(crate) fn own_url(&self) -> Option<&str> {
        match &self.reach {
            Reach::Url(url) => Some(url),
            Reach::Service { .. } | Reach::Unserved => None,
        }
    }

    /// True if webhooks are served.
    pub(crate) fn serves(&self) -> bool {
        self.reach != Reach::Unserved
    }
}
