//! The inputs of the compilation of an object that is being written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_cluster::requests::{ClusterError, Scope};
use orkestra_compiler::{
    compilation::{MotifAnswer, SourceAnswer},
    compose::{Locked, SourceRequest},
};
use orkestra_plan::{GroupKind, definitions::Schemas};
use parking_lot::Mutex;
use serde_json::Value;

use super::{PAGE, typed};
use crate::{
    known::{known, whole_schemas},
    watched::own_kind,
};
use orkestra_loader::compilation::CompilationInputs;
use orkestra_operator::context::Context;

/// The Motifs of a namespace that some document uses, read by name: the users who may write Motifs decide how many there are.
pub(crate) struct ReviewInputs<'a> {
    pub(crate) context: &'a Context,
    namespace: String,
    /// Each that was read; none if it does not exist.
    motifs: Mutex<BTreeMap<String, Option<Arc<Value>>>>,
}

impl<'a> ReviewInputs<'a> {
    pub(crate) fn of(context: &'a Context, namespace: String) -> Self {
        Self {
            context,
            namespace,
            motifs: Mutex::default(),
        }
    }

    /// Uses a Motif that is not stored yet.
    pub(crate) fn put(&self, name: &str, motif: Arc<Value>) {
        self.motifs.lock().insert(name.to_owned(), Some(motif));
    }

    /// Reads a Motif, by a list, for which the permission exists.
    async fn read(&self, name: &str) -> Result<Option<Arc<Value>>, ClusterError> {
        let known = self.motifs.lock().get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let served = own_kind("Motif", "motifs");
        let scope = Scope {
            namespace: Some(self.namespace.clone()),
            fields: Some(format!("metadata.name={name}")),
            ..Scope::default()
        };
        let cluster = &self.context.cluster;
        let page = cluster.list_page(&served, &scope, PAGE, None).await?;
        let found = page.items.first();
        let found = found.map(|object| Arc::new(typed(&served, object.to_json())));
        self.motifs.lock().insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

impl CompilationInputs for ReviewInputs<'_> {
    type Error = ClusterError;

    fn source<'a>(
        &'a self,
        _: &'a SourceRequest,
        _: Option<&'a Locked>,
    ) -> BoxFuture<'a, SourceAnswer> {
        async { SourceAnswer::Awaited(None) }.boxed()
    }

    fn motif<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<MotifAnswer, ClusterError>> {
        async move {
            let absent = || {
                let why = format!("there is no Motif `{name}` in this namespace");
                MotifAnswer::Absent(why)
            };
            let found = self.read(name).await?;
            Ok(found.map_or_else(absent, MotifAnswer::Object))
        }
        .boxed()
    }

    fn schemas<'a>(&'a self, kinds: &'a BTreeSet<GroupKind>) -> BoxFuture<'a, Schemas> {
        let crds = known(&self.context.crds, kinds);
        async move { whole_schemas(&self.context.cluster, &crds).await }.boxed()
    }
}
