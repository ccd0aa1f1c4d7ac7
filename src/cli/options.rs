//! Flags that commands share.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use clap::ValueEnum;
use orkestra_cluster::client::{ClusterOptions, Connection};
use orkestra_core::{
    api::{duration, names},
    plan::rbac,
};

use crate::{
    external::{Allow, Client, Guard, Resolver, Variables},
    server::tls::{self, Tls},
    telemetry::{self, LogFilter, LogFormat},
};

/// Port of the probes.
const PROBE_PORT: u16 = 8081;

/// The cluster that a command connects to; only commands that connect to one have these flags.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct Cluster {
    /// Kubeconfig to use instead of $KUBECONFIG, ~/.kube/config or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// The ids of the flags of [`Cluster`].
pub(super) const CLUSTER_FLAGS: [&str; 2] = ["kubeconfig", "context"];

impl Cluster {
    pub(super) fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

/// The Katalog files of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Files {
    /// Katalog files
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    flags: FileFlags,
}

/// The Katalog files of a command, as flags alone.
#[derive(Debug, clap::Args)]
pub(super) struct FileFlags {
    /// Katalog file; may be repeated
    #[arg(
        short = 'f',
        long = "file",
        visible_short_alias = 'k',
        visible_alias = "katalog",
        value_name = "PATH",
        num_args = 1..
    )]
    pub(super) files: Vec<PathBuf>,
}

/// Files that are read if a command names none, in this order.
const DEFAULT_FILES: [&str; 2] = ["katalog.yaml", "komposer.yaml"];

impl Files {
    /// The paths in the order of the command line: flags last.
    pub(super) fn given(self) -> Vec<PathBuf> {
        let Self { mut paths, flags } = self;
        paths.extend(flags.files);
        paths
    }

    /// The paths, or the default file of the current folder.
    ///
    /// # Errors
    /// If no path is given and the folder has no default file.
    pub(super) fn or_default(self) -> anyhow::Result<Vec<PathBuf>> {
        let given = self.given();
        if !given.is_empty() {
            return Ok(given);
        }
        default_file(Path::new("")).map(|file| vec![file])
    }
}

/// The default file of a folder.
fn default_file(folder: &Path) -> anyhow::Result<PathBuf> {
    let files = DEFAULT_FILES.map(|name| folder.join(name));
    let found = files.into_iter().find(|file| file.exists());
    found.ok_or_else(|| {
        anyhow::anyhow!(
            "no file is given, and the current folder has no {}: name a Katalog with `--file`",
            DEFAULT_FILES.join(" or ")
        )
    })
}

/// Where a process listens, and who may read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(super) struct Http {
    /// Address of the metrics and /katalog pages; `:8080` listens on all interfaces [default: :8080;
    /// 127.0.0.1:8080 for `ork run`]
    #[arg(long, value_name = "ADDR", env = "ORK_LISTEN", hide_env_values = true, value_parser = parse_listen)]
    pub(super) listen: Option<SocketAddr>,
    /// Address of a port for probes alone, or `off`; `--listen` answers probes too [default: :8081; `off` if `--listen` is a
    /// loopback address]
    #[arg(long, value_name = "ADDR|off", env = "ORK_PROBE_LISTEN", hide_env_values = true, value_parser = parse_probes)]
    probe_listen: Option<Probes>,
    /// Serve metrics and /katalog pages without authentication, whatever the address; on a loopback address they need none
    #[arg(
        long = "insecure-http",
        value_name = "BOOL",
        env = "ORK_INSECURE_HTTP",
        hide_env_values = true,
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub(super) insecure: bool,
    /// Certificate chain in PEM, to serve HTTPS on `--listen`; reloaded when it changes [default: plain HTTP]
    #[arg(
        long,
        value_name = "FILE",
        env = "ORK_TLS_CERT_FILE",
        hide_env_values = true,
        requires = "tls_key_file"
    )]
    tls_cert_file: Option<PathBuf>,
    /// Private key of that certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "ORK_TLS_KEY_FILE",
        hide_env_values = true,
        requires = "tls_cert_file"
    )]
    tls_key_file: Option<PathBuf>,
}

/// Where the probes have a port of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probes {
    Off,
    At(SocketAddr),
}

impl Http {
    /// Address of the probes' own port, beside that of the pages; none where they have none.
    pub(super) fn probes_beside(&self, pages: SocketAddr) -> Option<SocketAddr> {
        match self.probe_listen {
            Some(Probes::At(address)) => Some(address),
            Some(Probes::Off) => None,
            None if is_loopback(pages) => None,
            None => Some(SocketAddr::new(pages.ip(), PROBE_PORT)),
        }
    }

    /// The certificate, where the pages are served by HTTPS.
    pub(super) fn tls(&self) -> Result<Option<Tls>, tls::Error> {
        let files = self.tls_cert_file.as_ref().zip(self.tls_key_file.as_ref());
        files
            .map(|(certificate, key)| Tls::read(certificate, key))
            .transpose()
    }
}

/// Whether only this machine reaches an address.
pub(super) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Of a process that stays.
#[derive(Debug, clap::Args)]
pub(super) struct Process {
    /// How log lines look
    #[arg(
        long,
        value_name = "FORMAT",
        env = "ORK_LOG_FORMAT",
        hide_env_values = true,
        value_enum,
        default_value_t
    )]
    log_format: Format,
    /// What is logged: a level (error, warn, info, debug, trace, off), or levels by module such as warn,orkestra=debug
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", hide_env_values = true, default_value = telemetry::DEFAULT_FILTER)]
    log: LogFilter,
    #[command(flatten)]
    calls: Calls,
    /// How long writes in flight may take to end after SIGTERM or SIGINT; what has not ended then is logged and left
    #[arg(
        long,
        value_name = "DURATION",
        env = "ORK_SHUTDOWN_TIMEOUT",
        hide_env_values = true,
        default_value = "25s",
        value_parser = duration::parse
    )]
    pub(super) shutdown_timeout: Duration,
}

/// The calls of `external`.
#[derive(Debug, clap::Args)]
pub(super) struct Calls {
    /// What `external` may call; may be repeated [default: nothing]. A host (api.example.org), the hosts below one (*.example.org), an
    /// address, or a network (10.96.0.0/12), each with a port (host:8443) if it is to be that one alone. A host is called over
    /// https, unless it is written with http:// before it
    #[arg(
        long,
        value_name = "HOST|CIDR",
        env = "ORK_EXTERNAL_ALLOW",
        hide_env_values = true
    )]
    external_allow: Vec<Several<Allow>>,
    /// Environment variable that the `token` of an `external` call may name; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "ORK_EXTERNAL_ENV",
        hide_env_values = true
    )]
    external_env: Vec<Several<String>>,
}

/// Which of several processes works.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub(super) struct Election {
    /// Whether several may run at a time, of which one works and the others take over when it ends; `false` for a process
    /// that is alone
    #[arg(
        long = "leader-elect",
        value_name = "BOOL",
        env = "ORK_LEADER_ELECT",
        hide_env_values = true,
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub(super) elect: bool,
    /// Name of the Lease; processes that run the same Katalogs share one
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        env = "ORK_LEADER_ELECT_RESOURCE_NAME",
        hide_env_values = true,
        default_value = rbac::LEASE,
        value_parser = parse_namespace
    )]
    pub(super) name: String,
    /// Namespace of the Lease [default: the Pod's, else that of the kubeconfig's context]
    #[arg(
        long = "leader-elect-resource-namespace",
        value_name = "NS",
        env = "ORK_LEADER_ELECT_RESOURCE_NAMESPACE",
        hide_env_values = true,
        value_parser = parse_namespace
    )]
    pub(super) namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Human,
    /// One JSON object a line
    Json,
}

impl Process {
    /// Starts logging as asked for.
    pub(super) fn start_logging(&self) {
        let format = match self.log_format {
            Format::Human => LogFormat::Human,
            Format::Json => LogFormat::Json,
        };
        telemetry::init(format, &self.log);
    }

    /// What makes the calls of `external`.
    pub(super) fn external(&self, connection: &Connection) -> Client {
        self.calls.external(connection)
    }
}

impl Calls {
    /// What makes the calls of `external`. The API server is not among what may be called.
    pub(super) fn external(&self, connection: &Connection) -> Client {
        let mut guard =
            Guard::new(Several::all(&self.external_allow)).with_api_server(&connection.server);
        // In a Pod the API server has an address beside its name. Source: Kubernetes, "Accessing the API from a Pod".
        let variable = |name: &str| std::env::var(name).ok();
        let (host, port) = (
            variable("KUBERNETES_SERVICE_HOST"),
            variable("KUBERNETES_SERVICE_PORT"),
        );
        if let (Some(host), Some(port)) = (host, port) {
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host
            };
            guard = guard.with_api_server(&format!("https://{host}:{port}"));
        }
        let variables = Variables::new(Several::all(&self.external_env), variable);
        Client::new(guard, variables, Resolver::system())
    }
}

/// Values with commas between them, as a variable has several; one that is set to nothing has none.
#[derive(Clone, Debug)]
struct Several<T>(Vec<T>);

impl<T: Clone> Several<T> {
    fn all(flags: &[Self]) -> Vec<T> {
        flags.iter().flat_map(|flag| flag.0.clone()).collect()
    }
}

impl<T: FromStr> FromStr for Several<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let values = text.split(',').map(str::trim);
        let values = values.filter(|value| !value.is_empty()).map(str::parse);
        values.collect::<Result<_, _>>().map(Self)
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    whole
        .parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:8080 or :8080".to_owned())
}

fn parse_probes(text: &str) -> Result<Probes, String> {
    match text {
        "off" => Ok(Probes::Off),
        address => parse_listen(address).map(Probes::At),
    }
}

/// A namespace's name.
pub(super) fn parse_namespace(text: &str) -> Result<String, String> {
    names::check_dns1123_subdomain(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn without_a_path_the_katalog_of_the_folder_is_taken_before_its_komposer() {
        let folder = tempfile::TempDir::new().unwrap();
        let error = default_file(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("no katalog.yaml or komposer.yaml"),
            "{error}"
        );
        for name in ["komposer.yaml", "katalog.yaml"] {
            let file = folder.path().join(name);
            fs::write(&file, "").unwrap();
            assert_eq!(default_file(folder.path()).unwrap(), file);
        }
    }
}
