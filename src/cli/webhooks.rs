//! The flags of the gateway, and its start.
//!
//! One file: a table of flags, and what is started with them.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::{ValueEnum, builder::BoolishValueParser};
use orkestra_cluster::{
    client::{self, ClusterOptions},
    requests::Cluster,
};
use orkestra_ground::tasks::{self, Task};
use orkestra_language::api::duration;
use orkestra_object::value::Network;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    Failure,
    options::{parse_listen, parse_namespace},
};
use orkestra_controller::{Directory, Namespaces};
use orkestra_gateway::{self, AuthorCheck, GatewayOptions, Reach, Withdrawal};
use orkestra_http_api::{listen, tls};
use orkestra_operator::context::Context;

/// All interfaces: the API server connects from another machine.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 8443));
/// The value of the label of policies that processes for Katalogs of files keep.
const OF_FILES: &str = "ork-run";
/// The default Service.
const SERVICE: &str = "orkestra";

/// The webhooks of a process.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookOptions {
    /// Serve webhooks [default: on in a Pod, and with --webhooks-listen or --webhooks-url]
    #[arg(
        id = "webhooks",
        long = "webhooks",
        value_name = "ON|OFF",
        env = "ORK_WEBHOOKS",
        hide_env_values = true,
        value_enum
    )]
    switch: Option<Switch>,
    /// Address of the webhooks [default: :8443]
    #[arg(id = "webhooks_listen", long = "webhooks-listen", value_name = "ADDR", env = "ORK_WEBHOOKS_LISTEN", hide_env_values = true, value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    // Not a doc comment: the address has no markup.
    #[arg(help = "URL at which the API server reaches the webhooks, such as https://127.0.0.1:8443 [default: the Service]", id = "webhooks_url", long = "webhooks-url", value_name = "URL", env = "ORK_WEBHOOKS_URL", hide_env_values = true, value_parser = parse_url)]
    url: Option<String>,
    /// Service at which the API server reaches the webhooks, at port 443
    #[arg(id = "webhooks_service", long = "webhooks-service", value_name = "NAME", env = "ORK_SERVICE_NAME", hide_env_values = true, default_value = SERVICE, value_parser = parse_namespace)]
    service: String,
    /// Namespace of the Service and of the Secret with the certificate [default: the namespace of the Pod, else of the
    /// kubeconfig's context]
    #[arg(id = "webhooks_namespace", long = "webhooks-namespace", value_name = "NS", env = "ORK_WEBHOOKS_NAMESPACE", hide_env_values = true, value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Name of the webhook configurations; installations in one cluster need different names
    #[arg(id = "webhooks_name", long = "webhooks-name", value_name = "NAME", env = "ORK_WEBHOOKS_NAME", hide_env_values = true, default_value = orkestra_gateway::NAME, value_parser = parse_namespace)]
    name: String,
    /// Secret with the certificate that the webhooks issue for themselves
    #[arg(id = "webhooks_secret", long = "webhooks-secret", value_name = "NAME", env = "ORK_WEBHOOKS_SECRET", hide_env_values = true, default_value = orkestra_gateway::SECRET, value_parser = parse_namespace)]
    secret: String,
    /// Validity of that certificate; it is replaced after two thirds of it
    #[arg(id = "webhooks_cert_life", long = "webhooks-cert-life", value_name = "DURATION", env = "ORK_WEBHOOKS_CERT_LIFE", hide_env_values = true, default_value = "2160h", value_parser = parse_life)]
    cert_life: Duration,
    /// Certificate chain in PEM, instead of one that the webhooks issue; reloaded when it changes
    #[arg(
        id = "webhooks_cert_file",
        long = "webhooks-cert-file",
        value_name = "FILE",
        env = "TLS_CERT",
        hide_env_values = true,
        requires_all = ["webhooks_key_file", "webhooks_ca_file"]
    )]
    cert_file: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(
        id = "webhooks_key_file",
        long = "webhooks-key-file",
        value_name = "FILE",
        env = "TLS_KEY",
        hide_env_values = true,
        requires = "webhooks_cert_file"
    )]
    key_file: Option<PathBuf>,
    /// Certificates of the authorities that the API server trusts for it, in PEM
    #[arg(
        id = "webhooks_ca_file",
        long = "webhooks-ca-file",
        value_name = "FILE",
        env = "TLS_CA",
        hide_env_values = true,
        requires = "webhooks_cert_file"
    )]
    ca_file: Option<PathBuf>,
    /// Certificates of the authorities, in PEM, that sign client certificates of API servers and nothing else: reviews of callers
    /// with such a certificate may read Secrets, make external calls and record Events
    #[arg(
        id = "webhooks_client_ca",
        long = "webhooks-client-ca",
        value_name = "FILE",
        env = "ORK_WEBHOOKS_CLIENT_CA",
        hide_env_values = true
    )]
    client_ca: Option<PathBuf>,
    /// Networks from which only the API server connects, such as 10.0.0.4/32: its reviews may do the same without a certificate
    #[arg(
        id = "webhooks_trusted_peers",
        long = "webhooks-trusted-peers",
        value_name = "CIDR",
        env = "ORK_WEBHOOKS_TRUSTED_PEERS",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = parse_network
    )]
    trusted_peers: Vec<Network>,
    /// Check that the author of a Katalog has the permissions that its operators need
    #[arg(
        long,
        value_name = "MODE",
        env = "ORK_ADMISSION_AUTHOR_CHECK",
        hide_env_values = true,
        value_enum,
        default_value_t
    )]
    admission_author_check: AuthorCheck,
    /// Let webhooks apply the rules that policies cannot express in Katalogs that do not set `security.webhooks.admission`
    #[arg(
        long,
        value_name = "BOOL",
        env = "ENABLE_ADMISSION_WEBHOOK",
        hide_env_values = true,
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        value_parser = BoolishValueParser::new(),
        action = clap::ArgAction::Set
    )]
    pub(crate) enable_admission: bool,
    /// Serve conversions of Katalogs that do not set `security.conversion`
    #[arg(
        long,
        value_name = "BOOL",
        env = "ENABLE_CONVERSION",
        hide_env_values = true,
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        value_parser = BoolishValueParser::new(),
        action = clap::ArgAction::Set
    )]
    enable_conversion: bool,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Serve webhooks
    On,
    /// Do not serve webhooks
    Off,
}

/// A bound port of the webhooks.
pub(crate) struct Bound {
    listener: TcpListener,
    files: Option<orkestra_gateway::CertificateFiles>,
    callers: orkestra_gateway::Callers,
}

impl WebhookOptions {
    /// Binds the port; `None` if there are no webhooks. `always` is for a process that does nothing else.
    pub(crate) async fn bind(&self, always: bool) -> Result<Option<Bound>, Failure> {
        let is_asked = self.listen.is_some() || self.url.is_some();
        let is_on = match self.switch {
            Some(switch) => switch == Switch::On,
            None => always || is_asked || is_in_pod(),
        };
        if !is_on {
            return Ok(None);
        }
        let files = (self.cert_file.as_ref())
            .zip(self.key_file.as_ref())
            .zip(self.ca_file.as_ref());
        let files = match files {
            None => None,
            Some(((certificate, key), authorities)) => {
                let files = orkestra_gateway::CertificateFiles {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    authorities: authorities.clone(),
                };
                files.check().await.map_err(anyhow::Error::new)?;
                Some(files)
            }
        };
        let certificates = self.client_ca.as_deref().map(tls::client_authorities);
        let callers = orkestra_gateway::Callers {
            certificates: certificates.transpose().map_err(anyhow::Error::new)?,
            peers: self.trusted_peers.clone(),
        };
        let address = self.listen.unwrap_or(LISTEN);
        let listener = listen::bind(address, "--webhooks-listen").await;
        let listener = listener.map_err(anyhow::Error::new)?;
        Ok(Some(Bound {
            listener,
            files,
            callers,
        }))
    }

    /// The settings; `of` is the process within its namespace: the name of its Lease, or [`GATEWAY`](gateway::GATEWAY) and a name.
    fn options(&self, namespace: &str, of: &str, katalogs: Namespaces) -> GatewayOptions {
        let reach = match &self.url {
            Some(url) => Reach::Url(url.clone()),
            None => Reach::Service {
                name: self.service.clone(),
            },
        };
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        GatewayOptions {
            name: self.name.clone(),
            installation: format!("{namespace}/{of}"),
            namespace: namespace.to_owned(),
            secret: self.secret.clone(),
            reach,
            conversion: self.enable_conversion,
            author_check: self.admission_author_check,
            life: self.cert_life,
            files: None,
            katalogs,
            callers: orkestra_gateway::Callers::default(),
            user: String::new(),
            ephemeral: false,
        }
    }

    /// The settings of a process that serves no webhooks.
    pub(crate) fn unserved(
        &self,
        namespace: &str,
        of: &str,
        katalogs: Namespaces,
    ) -> GatewayOptions {
        GatewayOptions {
            reach: Reach::Unserved,
            ..self.options(namespace, of, katalogs)
        }
    }

    /// Removes what the webhooks of this installation registered earlier: all of it if they were switched off, and otherwise what has
    /// another name. A process that has no webhooks by default removes nothing.
    pub(crate) fn withdraw(&self, serves: bool, lease: &str, context: &Arc<Context>) {
        if serves || self.switch == Some(Switch::Off) {
            let namespace = context.cluster.default_namespace();
            let options = self.options(namespace, lease, Namespaces::All);
            Withdrawal::of(&options, serves).start(context);
        }
    }

    /// The process of a gateway without operators.
    pub(crate) fn alone(&self) -> String {
        format!("{}{}", orkestra_gateway::GATEWAY, self.name)
    }

    /// Starts the gateway of a process, as [`options`](Self::options) has it. Its requests do not depend on leader election.
    pub(crate) async fn start(
        &self,
        (bound, of): (Bound, &str),
        (context, cluster, elects): (&Arc<Context>, &ClusterOptions, bool),
        (directory, listed, katalogs): (Directory, watch::Receiver<bool>, Namespaces),
        (shutdown, stop): (&CancellationToken, &CancellationToken),
    ) -> Result<JoinHandle<()>, Failure> {
        let cluster = ungated(context, cluster, elects).await?;
        let address = bound.listener.local_addr();
        let address = address.context("cannot determine the bound address")?;
        tracing::info!(%address, "webhooks listen");
        let options = GatewayOptions {
            files: bound.files,
            callers: bound.callers,
            ..self.options(context.cluster.default_namespace(), of, katalogs)
        };
        let ends = (bound.listener, shutdown.clone(), stop.clone());
        let running =
            orkestra_gateway::run(options, context.clone(), cluster, (directory, listed), ends);
        Ok(tasks::named(Task::Webhooks, address).start_needed(stop, running))
    }
}

/// The cluster for requests that do not depend on leader election.
async fn ungated(
    context: &Context,
    cluster: &ClusterOptions,
    elects: bool,
) -> Result<Cluster, Failure> {
    if !elects {
        return Ok(context.cluster.clone());
    }
    let connection = client::connect(cluster).await?;
    Ok(Cluster::new(connection.client).in_turn(connection.flow))
}

/// Returns the settings of a process that runs Katalogs of files and keeps their policies while it runs.
pub(crate) fn of_files(installation: &str, namespace: &str) -> GatewayOptions {
    GatewayOptions {
        name: OF_FILES.to_owned(),
        installation: installation.to_owned(),
        namespace: namespace.to_owned(),
        secret: String::new(),
        reach: Reach::Unserved,
        conversion: false,
        author_check: AuthorCheck::default(),
        life: Duration::ZERO,
        files: None,
        katalogs: Namespaces::All,
        callers: orkestra_gateway::Callers::default(),
        user: String::new(),
        ephemeral: true,
    }
}

/// Starts to keep policies in a process that serves no webhooks.
pub(crate) async fn keep_policies(
    options: GatewayOptions,
    (context, cluster, elects): (&Arc<Context>, &ClusterOptions, bool),
    katalogs: (Directory, watch::Receiver<bool>),
    (shutdown, stop): (&CancellationToken, &CancellationToken),
) -> Result<JoinHandle<()>, Failure> {
    let cluster = ungated(context, cluster, elects).await?;
    let ends = (shutdown.clone(), stop.clone());
    let running = orkestra_gateway::run_policies(options, context.clone(), cluster, katalogs, ends);
    Ok(tasks::named(Task::WebhookConfigurations, "policies").start(running))
}

/// True if this process runs in a Pod.
///
/// Source: Kubernetes, "Accessing the API from a Pod".
pub(crate) fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn parse_network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| {
        format!("`{text}` is not a network: expected an address and a prefix length, such as 10.0.0.4/32")
    })
}

fn parse_url(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|_| format!("`{text}` is not a URL"))?;
    let is_plain = uri.query().is_none() && uri.path().trim_end_matches('/').is_empty();
    if uri.scheme_str() != Some("https") || uri.host().is_none() || !is_plain {
        return Err(
            "expected an https URL without path and query, such as https://127.0.0.1:8443"
                .to_owned(),
        );
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn parse_life(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_secs(15);
    let life = duration::parse(text).map_err(|error| error.to_string())?;
    if life < SHORTEST {
        return Err(format!("expected at least {} s", SHORTEST.as_secs()));
    }
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_webhooks_is_an_https_origin() {
        for good in [
            "https://127.0.0.1:8443",
            "https://gate.example.org/",
            "https://[::1]:1",
        ] {
            assert!(parse_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://127.0.0.1",
            "https://h/path",
            "https://h?x=1",
            "127.0.0.1:8443",
            "",
        ] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
        assert!(parse_life("1s").is_err() && parse_life("15s").is_ok());
    }
}
