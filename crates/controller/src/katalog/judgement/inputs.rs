//! The inputs of the compilation of an object that the controller follows: all but full schemas are in memory.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::{
    compilation::{MotifAnswer, SourceAnswer},
    compose::{Locked, SourceRequest},
};
use orkestra_engine::reconcile::crd::CrdRecord;
use orkestra_plan::{GroupKind, definitions::Schemas};
use parking_lot::Mutex;

use crate::{
    katalog::ControllerContext,
    known::{known, whole_schemas},
    sources::FetchedSources,
};
use orkestra_loader::compilation::CompilationInputs;

/// What one compilation is answered with.
pub(crate) struct ObjectInputs<'a> {
    shared: &'a ControllerContext,
    namespace: &'a str,
    /// The sources that are followed.
    sources: FetchedSources,
    /// The CRDs whose schemas were used last.
    crds: Mutex<Option<Vec<Arc<CrdRecord>>>>,
}

impl<'a> ObjectInputs<'a> {
    pub(crate) fn new(
        shared: &'a ControllerContext,
        namespace: &'a str,
        sources: Option<FetchedSources>,
    ) -> Self {
        Self {
            shared,
            namespace,
            sources: sources.unwrap_or_default(),
            crds: Mutex::default(),
        }
    }

    /// Returns the CRDs whose schemas were used; none if none were requested.
    pub(crate) fn used_crds(&self) -> Option<Vec<Arc<CrdRecord>>> {
        self.crds.lock().take()
    }
}

impl CompilationInputs for ObjectInputs<'_> {
    type Error = Infallible;

    fn source<'a>(
        &'a self,
        request: &'a SourceRequest,
        _: Option<&'a Locked>,
    ) -> BoxFuture<'a, SourceAnswer> {
        let known = self.sources.get(&request.id);
        let problem = known.and_then(|known| known.problem.as_ref());
        let answer = match known.and_then(|known| known.artifact.as_ref()) {
            Some(artifact) => SourceAnswer::Fetched(Arc::clone(artifact)),
            None => SourceAnswer::Awaited(problem.map(ToString::to_string)),
        };
        async move { answer }.boxed()
    }

    fn motif<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<MotifAnswer, Infallible>> {
        let motif = self.shared.motifs.get(self.namespace, name);
        let answer = motif.map_or_else(MotifAnswer::Absent, MotifAnswer::Object);
        async move { Ok(answer) }.boxed()
    }

    fn schemas<'a>(&'a self, kinds: &'a BTreeSet<GroupKind>) -> BoxFuture<'a, Schemas> {
        let context = &self.shared.context;
        let crds = known(&context.crds, kinds);
        *self.crds.lock() = Some(crds.clone());
        async move { whole_schemas(&context.cluster, &crds).await }.boxed()
    }
}
