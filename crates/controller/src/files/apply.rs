//! Applies the manifests that Katalog files name: setup, the CRD, then custom resources.

use std::{collections::BTreeMap, path::PathBuf};

use orkestra_cluster::requests::Cluster;
use orkestra_object::value;
use tokio::sync::mpsc;

use super::{
    FileError, Notice,
    charts::{ChartKey, RenderEnvironment},
    load::{EntryFiles, LoadedKatalog},
    manifest::{MANAGER, Manifest, apply_manifest, manifests, wait_for},
};
use orkestra_loader::compose::Fetch;

/// The files that were applied, by the hash of their content: later changes by a user in the cluster are kept.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    files: BTreeMap<PathBuf, String>,
    charts: BTreeMap<ChartKey, String>,
}

impl Applied {
    /// Applies the files that `katalog` names and that changed since they were last applied.
    pub(crate) async fn apply(
        &mut self,
        cluster: &Cluster,
        fetch: &dyn Fetch,
        katalog: &LoadedKatalog,
        random: &RenderEnvironment,
        notices: &mpsc::UnboundedSender<Notice>,
    ) -> Result<(), FileError> {
        for EntryFiles {
            setup,
            charts,
            wait,
            crd,
            resources,
        } in &katalog.entries
        {
            for (file, wait) in setup {
                self.apply_file(cluster, file, notices).await?;
                wait_for(cluster, wait).await?;
            }
            for chart in charts {
                let key = chart.key();
                let seen = self.charts.get(&key);
                let hash = chart.apply(cluster, fetch, random, seen, notices).await?;
                self.charts.insert(key, hash);
            }
            wait_for(cluster, wait).await?;
            for file in crd.iter().chain(resources) {
                self.apply_file(cluster, file, notices).await?;
            }
        }
        Ok(())
    }

    async fn apply_file(
        &mut self,
        cluster: &Cluster,
        file: &Manifest,
        notices: &mpsc::UnboundedSender<Notice>,
    ) -> Result<(), FileError> {
        let text = file.read().await?;
        let file = &*file.path;
        let hash = value::hash_text(&text);
        if self.files.get(file) == Some(&hash) {
            return Ok(());
        }
        for manifest in manifests(file, &text)? {
            let applied = apply_manifest(cluster, &manifest, MANAGER).await?;
            let _ = notices.send(Notice::Applied(applied));
        }
        self.files.insert(file.to_owned(), hash);
        Ok(())
    }
}
