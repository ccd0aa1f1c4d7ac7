//! `ork install`

use std::{env, fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use orkestra_charts::{Capabilities, read_values};
use orkestra_cluster::requests::Cluster;
use orkestra_language::api::duration;
use orkestra_plan::rbac;

use super::{Failure, connection::ConnectionOptions, options::parse_namespace, output};
use orkestra_admin::install::{
    self, Apply, ApplyOutcome, Error, Level, ManifestObject, Manifests, ManifestsRequest,
};

/// How long requests that the API server throttles are repeated.
const THROTTLED: Duration = Duration::from_secs(30);

/// Install or upgrade Orkestra in a cluster
///
/// Applies the manifests of the Helm chart that is part of `ork`, with server-side apply: the CRDs, the permissions of the
/// controller without any Katalog, and its Deployment. Before it writes, it checks your permissions, the CRDs of the cluster
/// and other installations. Objects of an earlier `ork install` that are no longer part of it are deleted. `ork uninstall`
/// removes the installation.
///
/// `ork install --dry-run=client` prints the manifests, for review, Git or `kubectl apply`; it needs no cluster.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Namespace of the controller; created if it does not exist
    #[arg(short, long, value_name = "NS", default_value = rbac::NAMESPACE, value_parser = parse_namespace)]
    namespace: String,
    /// Values file of the chart; may be repeated, and later files override earlier ones
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Image of the controller, such as registry.example/orkestra:0.1.0, or by digest; takes precedence over values. Required unless
    /// this build is of a release that publishes an image [env: `ORK_IMAGE`, over which values take precedence]
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// Value of the chart, such as `replicas=3` or `image.tag=1.2.0`; may be repeated. The value is read as YAML; `\.` is a dot in
    /// a key
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Print the manifests without a cluster (`client`), or have the API server check each without storing it (`server`)
    #[arg(long, value_name = "WHERE", value_enum, default_value_t, default_missing_value = "client", num_args = 0..=1, require_equals = true)]
    dry_run: InstallTarget,
    /// Wait until the controller is available
    #[arg(long)]
    wait: bool,
    /// Timeout of `--wait`
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
    /// Take over fields that other field managers own
    #[arg(long)]
    force_conflicts: bool,
    /// Install even if a check of the cluster fails
    #[arg(long)]
    ignore_preflight: bool,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InstallTarget {
    /// Apply
    #[default]
    None,
    /// Print the manifests
    Client,
    /// Check by the API server
    Server,
}

/// An unreachable cluster has an exit code of its own.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_unreachable = error.is_unreachable();
        Self::of(error, is_unreachable)
    }
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    let mut request = request(&args)?;
    if args.dry_run == InstallTarget::Client {
        return Ok(output::print(&yaml(&install::render(&request)?)?)?);
    }
    let cluster = connect(&args.cluster).await?;
    request.capabilities = install::capabilities(&cluster).await.map_err(|error| {
        Failure::Cluster(anyhow!(error).context("cannot read the version of the API server"))
    })?;
    let manifests = install::render(&request)?;
    check(&args, &cluster, &manifests.objects).await?;
    let is_dry = args.dry_run == InstallTarget::Server;
    let applied = Apply {
        objects: &manifests.objects,
        namespace: &args.namespace,
        force: args.force_conflicts,
        dry_run: if is_dry {
            install::DryRun::Server
        } else {
            install::DryRun::No
        },
    };
    let mut lines = |object: &ManifestObject, done: ApplyOutcome| {
        let dry = if is_dry { " (dry run)" } else { "" };
        // A closed pipe does not interrupt an installation.
        let _ = output::print(&format!("{object} {}{dry}\n", done.word()));
    };
    install::apply(&cluster, &applied, &mut lines).await?;
    if is_dry {
        return Ok(());
    }
    let mut lines = |object: &dyn std::fmt::Display| {
        let _ = output::print(&format!("{object} deleted\n"));
    };
    let objects = &manifests.objects;
    let withdrawn = install::withdraw(&cluster, objects, &args.namespace, &mut lines).await?;
    for kept in &withdrawn.kept {
        output::note(&format!("warning: not removed: {kept}"));
    }
    if args.wait {
        let waiting = install::wait(&cluster, &manifests.objects, args.timeout);
        output::progress("waiting for the controller", waiting).await?;
    }
    output::note(manifests.notes.trim_end());
    Ok(())
}

/// Returns the values of the flags.
fn request(args: &Args) -> anyhow::Result<ManifestsRequest> {
    let mut request = ManifestsRequest {
        namespace: args.namespace.clone(),
        values: Vec::new(),
        capabilities: Capabilities::default(),
    };
    // A variable is a default of the user; a flag is about this installation.
    let default = env::var("ORK_IMAGE").unwrap_or_default();
    if !default.is_empty() {
        let image = install::image_values(&default).context("cannot use ORK_IMAGE")?;
        request.values.push(image);
    }
    for file in &args.values {
        let shown = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let values =
            read_values(&text).with_context(|| format!("cannot use the values of {shown}"))?;
        request.values.push(values);
    }
    for argument in &args.set {
        request.set(argument).context("cannot use --set")?;
    }
    if let Some(image) = &args.image {
        let image = install::image_values(image).context("cannot use --image")?;
        request.values.push(image);
    }
    Ok(request)
}

/// Connects to the cluster.
pub(crate) async fn connect(cluster: &ConnectionOptions) -> Result<Cluster, Failure> {
    let connection = cluster.connect().await?;
    Ok(Cluster::new(connection.client).patient(THROTTLED))
}

/// Prints the findings of the checks. Errors stop the installation.
async fn check(args: &Args, cluster: &Cluster, objects: &[ManifestObject]) -> Result<(), Failure> {
    let now = jiff::Timestamp::now();
    let checking = install::preflight(cluster, objects, &args.namespace, now);
    let findings = output::progress("checking the cluster", checking).await?;
    let mut errors = 0;
    for finding in &findings {
        match finding.level {
            Level::Warning => output::note(&format!("warning: {}", finding.message)),
            Level::Error => {
                errors += 1;
                output::error(&anyhow!(finding.message.clone()));
            }
        }
    }
    if errors == 0 || args.ignore_preflight {
        return Ok(());
    }
    let failed = output::count(errors, "check");
    Err(anyhow!(
        "{failed} failed, nothing was changed; use `--ignore-preflight` to continue anyway"
    )
    .into())
}

/// Returns the manifests as a YAML stream.
fn yaml(manifests: &Manifests) -> anyhow::Result<String> {
    let objects = manifests.objects.iter();
    objects
        .map(|object| output::to_yaml(&object.body.to_json()))
        .collect()
}
