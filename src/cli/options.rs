//! Flags that commands share.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use clap::ValueEnum;
use orkestra_cluster::client::Connection;
use orkestra_language::api::{duration, names};
use orkestra_plan::rbac;

use crate::telemetry::{self, LogFilter, LogFormat};
use orkestra_http_api::tls::{self, Tls};
use orkestra_operator::external::{Allow, Client, Guard, Resolver, Variables};

/// Port of the probes.
const PROBE_PORT: u16 = 8081;

/// The Katalog files of a command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileOptions {
    /// Katalogs, and the CRDs that they do not name in crdFile: files and directories
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    flags: FileFlags,
}

/// The Katalog files of a command, given only as flags.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileFlags {
    /// File or directory, as PATH; may be repeated
    #[arg(
        short = 'f',
        long = "file",
        visible_short_alias = 'k',
        visible_alias = "katalog",
        value_name = "PATH",
        num_args = 1..
    )]
    pub(crate) files: Vec<PathBuf>,
}

/// The default files of a command, in order of preference.
const DEFAULT_FILES: [&str; 2] = ["katalog.yaml", "komposer.yaml"];

impl FileOptions {
    /// The paths in the order of the command line: flags last.
    pub(crate) fn given(self) -> Vec<PathBuf> {
        let Self { mut paths, flags } = self;
        paths.extend(flags.files);
        paths
    }

    /// The paths, or the default file of the current folder.
    ///
    /// # Errors
    /// If no path is given and the folder has no default file.
    pub(crate) fn or_default(self) -> anyhow::Result<Vec<PathBuf>> {
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
            "no file given, and the current directory has no {}: specify a Katalog with `--file`",
            DEFAULT_FILES.join(" or ")
        )
    })
}

/// The addresses of a process, and the access to its pages.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct Http {
    /// Address of the metrics and /katalog pages; `:8080` listens on all interfaces [default: :8080 in a
    /// Pod, 127.0.0.1:8080 elsewhere]
    #[arg(long, value_name = "ADDR", env = "ORK_LISTEN", hide_env_values = true, value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Address of a separate port for probes, or `off`; `--listen` answers probes too [default: :8081; `off` if `--listen` is a
    /// loopback address]
    #[arg(long, value_name = "ADDR|off", env = "ORK_PROBE_LISTEN", hide_env_values = true, value_parser = parse_probes)]
    probe_listen: Option<Probes>,
    /// Serve metrics and /katalog pages without authentication on any address; loopback addresses never require authentication
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
    pub(crate) insecure: bool,
    /// Certificate chain in PEM, to serve HTTPS on `--listen`; reloaded when it changes [default: plain HTTP]
    #[arg(
        long,
        value_name = "FILE",
        env = "ORK_TLS_CERT_FILE",
        hide_env_values = true,
        requires = "tls_key_file"
    )]
    tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "ORK_TLS_KEY_FILE",
        hide_env_values = true,
        requires = "tls_cert_file"
    )]
    tls_key_file: Option<PathBuf>,
}

/// The separate port of the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probes {
    Off,
    At(SocketAddr),
}

impl Http {
    /// The address of the separate probe port, if there is one. `pages` is the address of the pages.
    pub(crate) fn probes_beside(&self, pages: SocketAddr) -> Option<SocketAddr> {
        match self.probe_listen {
            Some(Probes::At(address)) => Some(address),
            Some(Probes::Off) => None,
            None if is_loopback(pages) => None,
            None => Some(SocketAddr::new(pages.ip(), PROBE_PORT)),
        }
    }

    /// The certificate, if the pages are served over HTTPS.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, tls::Error> {
        let files = self.tls_cert_file.as_ref().zip(self.tls_key_file.as_ref());
        files
            .map(|(certificate, key)| Tls::read(certificate, key))
            .transpose()
    }
}

/// True if an address is reachable only from this machine.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Flags of a long-running process.
#[derive(Debug, clap::Args)]
pub(crate) struct Process {
    /// Log format
    #[arg(
        long,
        value_name = "FORMAT",
        env = "ORK_LOG_FORMAT",
        hide_env_values = true,
        value_enum,
        default_value_t
    )]
    log_format: LogFormatArg,
    /// Log filter: a level (error, warn, info, debug, trace, off), or levels per module, such as warn,orkestra=debug. `debug` and
    /// `trace` are about the modules of Orkestra; name others to see their lines, such as debug,h2=debug
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", hide_env_values = true, default_value = telemetry::DEFAULT_FILTER)]
    log: LogFilter,
    #[command(flatten)]
    calls: CallOptions,
    /// Time for writes in flight to finish after SIGTERM or SIGINT; writes that take longer are logged and abandoned
    #[arg(
        long,
        value_name = "DURATION",
        env = "ORK_SHUTDOWN_TIMEOUT",
        hide_env_values = true,
        default_value = "25s",
        value_parser = duration::parse
    )]
    pub(crate) shutdown_timeout: Duration,
}

/// Options of `external` calls.
#[derive(Debug, clap::Args)]
pub(crate) struct CallOptions {
    /// Target that `external` may call; may be repeated [default: none]. A host (api.example.org), the subdomains of a host
    /// (*.example.org), an IP address, or a network (10.96.0.0/12). Append a port (host:8443) to permit only that port. Hosts
    /// require https; write http:// before a host to permit plain HTTP too
    #[arg(
        long,
        value_name = "HOST|CIDR",
        env = "ORK_EXTERNAL_ALLOW",
        hide_env_values = true
    )]
    external_allow: Vec<CommaSeparated<Allow>>,
    /// Environment variable that an `external` call may use as its `token`; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "ORK_EXTERNAL_ENV",
        hide_env_values = true
    )]
    external_env: Vec<CommaSeparated<String>>,
}

/// Leader election among replicas.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct ElectionOptions {
    /// Elect a leader among replicas; set `false` for a single replica
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
    pub(crate) elect: bool,
    /// Name of the Lease; replicas that run the same Katalogs share it
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        env = "ORK_LEADER_ELECT_RESOURCE_NAME",
        hide_env_values = true,
        default_value = rbac::LEASE,
        value_parser = parse_namespace
    )]
    pub(crate) name: String,
    /// Namespace of the Lease [default: the namespace of the Pod, else of the kubeconfig's context]
    #[arg(
        long = "leader-elect-resource-namespace",
        value_name = "NS",
        env = "ORK_LEADER_ELECT_RESOURCE_NAMESPACE",
        hide_env_values = true,
        value_parser = parse_namespace
    )]
    pub(crate) namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LogFormatArg {
    /// Human-readable text
    #[default]
    Human,
    /// One JSON object per line
    Json,
}

impl Process {
    /// Starts logging with the format and filter of the flags.
    pub(crate) fn start_logging(&self) {
        let format = match self.log_format {
            LogFormatArg::Human => LogFormat::Human,
            LogFormatArg::Json => LogFormat::Json,
        };
        telemetry::init(format, &self.log);
    }

    /// The client for `external` calls.
    pub(crate) fn external(&self, connection: &Connection) -> Client {
        self.calls.external(connection)
    }
}

impl CallOptions {
    /// The client for `external` calls. It never calls the API server.
    pub(crate) fn external(&self, connection: &Connection) -> Client {
        let guard = Guard::new(CommaSeparated::all(&self.external_allow));
        let guard = without_api_server(guard.with_api_server(&connection.server));
        let variable = |name: &str| std::env::var(name).ok();
        let variables = Variables::new(CommaSeparated::all(&self.external_env), variable);
        Client::new(guard, variables, Resolver::system())
    }
}

/// Returns a guard that also refuses the API server of the Pod that this process runs in.
///
/// Source: Kubernetes, "Accessing the API from a Pod": these variables hold its address, and the certificate has these names.
pub(crate) fn without_api_server(guard: Guard) -> Guard {
    let variable = |name: &str| std::env::var(name).ok();
    let (host, port) = (
        variable("KUBERNETES_SERVICE_HOST"),
        variable("KUBERNETES_SERVICE_PORT"),
    );
    let (Some(host), Some(port)) = (host, port) else {
        return guard;
    };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    guard.with_api_server(&format!("https://{host}:{port}"))
}

/// Comma-separated values, so that an environment variable can hold several. An empty text has none.
#[derive(Clone, Debug)]
pub(crate) struct CommaSeparated<T>(Vec<T>);

impl<T: Clone> CommaSeparated<T> {
    pub(crate) fn all(flags: &[Self]) -> Vec<T> {
        flags.iter().flat_map(|flag| flag.0.clone()).collect()
    }
}

impl<T: FromStr> FromStr for CommaSeparated<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let values = text.split(',').map(str::trim);
        let values = values.filter(|value| !value.is_empty()).map(str::parse);
        values.collect::<Result<_, _>>().map(Self)
    }
}

pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    whole
        .parse()
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:8080 or :8080".to_owned())
}

fn parse_probes(text: &str) -> Result<Probes, String> {
    match text {
        "off" => Ok(Probes::Off),
        address => parse_listen(address).map(Probes::At),
    }
}

/// Parses the name of a namespace.
pub(crate) fn parse_namespace(text: &str) -> Result<String, String> {
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
