//! Flags that commands share.

use std::{net::SocketAddr, path::PathBuf};

use clap::ValueEnum;
use orkestra_core::api::names;

use crate::{
    client::ClusterOptions,
    telemetry::{self, LogFilter, LogFormat},
};

/// Which cluster.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct Cluster {
    /// Kubeconfig to use instead of $KUBECONFIG, ~/.kube/config or the Pod's service account
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of its current one
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
}

impl Cluster {
    pub(super) fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

/// Which Katalogs, from files.
#[derive(Debug, clap::Args)]
pub(super) struct Files {
    /// Katalog files; may be repeated
    #[arg(short = 'k', long = "katalog", value_name = "FILE", num_args = 1.., required = true)]
    pub(super) katalogs: Vec<PathBuf>,
}

/// Of a process that stays.
#[derive(Debug, clap::Args)]
pub(super) struct Process {
    /// Address of the probes, metrics and /katalog pages; without a host, as in `:8080`, all of them
    #[arg(long, value_name = "ADDR", env = "ORK_LISTEN", hide_env_values = true, default_value = "0.0.0.0:8080", value_parser = parse_listen)]
    pub(super) listen: SocketAddr,
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

/// A namespace's name.
pub(super) fn parse_namespace(text: &str) -> Result<String, String> {
    names::check_dns1123_subdomain(text).map(|()| text.to_owned())
}
