//! `ork release`

use std::{collections::BTreeSet, time::Duration};

use anyhow::anyhow;
use orkestra_core::plan::GroupKind;

use super::{
    Failure,
    files::{self},
    options::Files,
    output,
};
use crate::{
    client::{self, ClusterOptions},
    meta,
};

/// How long the first question to the cluster may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes Orkestra's finalizers off the custom resources of Katalog files
///
/// Labels and annotations of Orkestra's own go, too. The custom resources and what was made for them stay. Stop
/// `ork run` first, or it puts the finalizers back.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) files: Files,
}

pub(super) async fn execute(args: Args, cluster: &ClusterOptions) -> Result<(), Failure> {
    let plans = files::compile(&args.files.katalogs).await?;
    let connection = client::connect(cluster).await?;
    connection.check(PATIENCE).await?;
    let mut done: BTreeSet<GroupKind> = BTreeSet::new();
    let mut failed = 0;
    for operator in plans.iter().flat_map(|plan| &plan.operators) {
        let kind = operator.resource.group_kind();
        if !done.insert(kind.clone()) {
            continue;
        }
        match meta::release_kind(&connection.client, &meta::operated(&operator.resource)).await {
            Ok(released) => output::note(&format!(
                "{kind}: {} custom resources released, and {} children without an owner",
                released.resources, released.children
            )),
            Err(error) => {
                failed += 1;
                output::error(&anyhow::Error::new(error).context(format!("cannot release {kind}")));
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} kinds could not be released", done.len()).into()),
    }
}
