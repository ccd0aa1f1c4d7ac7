//! `ork migrate`

use clap::Subcommand;
use orkestra_cluster::{client, requests::Cluster};

use super::{Failure, connection::ConnectionOptions, output};
use orkestra_admin::migrate;

/// Migrate stored objects
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: MigrateCommand,
}

#[derive(Debug, Subcommand)]
enum MigrateCommand {
    Storage(Storage),
}

/// Rewrite all objects of a kind in the storage version of its CustomResourceDefinition
///
/// Afterwards, earlier versions are removed from `status.storedVersions`, so that they can be removed from the definition.
/// Objects are not changed: the API server only stores them again. If the migration is interrupted, it prints the flag with
/// which it continues; it can also start again.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Storage {
    /// Kind, plural, or name of the definition (`<plural>.<group>`)
    #[arg(value_name = "KIND")]
    kind: String,
    /// Continue after this object
    #[arg(long, value_name = "NAMESPACE/NAME")]
    from: Option<String>,
    #[command(flatten)]
    cluster: ConnectionOptions,
}

impl From<migrate::Error> for Failure {
    fn from(error: migrate::Error) -> Self {
        let is_unreachable = error.is_unreachable();
        Self::of(error, is_unreachable)
    }
}

pub(crate) async fn execute(
    Args {
        what: MigrateCommand::Storage(args),
    }: Args,
) -> Result<(), Failure> {
    let connection = client::connect(&args.cluster.options()).await?;
    let cluster = Cluster::new(connection.client).in_turn(connection.flow);
    let definition = migrate::find(&cluster, &args.kind).await?;
    let (name, version) = (&definition.name, &definition.served.version);
    let mut last = args.from.clone();
    let progress = |progress: &migrate::MigrationProgress| {
        last.clone_from(&progress.last);
        output::note(&format!(
            "{name}: {} objects are stored in {version}",
            progress.done
        ));
    };
    let migrated = tokio::select! {
        migrated = migrate::migrate(&cluster, &definition, args.from.as_deref(), progress) => migrated.map(Some),
        _ = tokio::signal::ctrl_c() => Ok(None),
    };
    if let Ok(Some(progress)) = &migrated {
        let text = format!(
            "migrated {name}: {} objects, storedVersions: [{version}]\n",
            progress.done
        );
        return Ok(output::print(&text)?);
    }
    if let Some(last) = last {
        output::note(&format!(
            "continue with `ork migrate storage {name} --from {last}`"
        ));
    }
    migrated?;
    Err(anyhow::anyhow!("the migration was interrupted").into())
}
