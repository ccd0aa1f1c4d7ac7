//! The inputs of compilations of files.

use std::{collections::BTreeSet, convert::Infallible, io, path::Path, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::{
    compilation::{CompilationRules, MotifAnswer, SourceAnswer, UnreadFile},
    compose::{Artifact, Locked, SourceRequest},
};
use orkestra_language::document::MotifDocument;
use orkestra_plan::{GroupKind, definitions::Schemas};

use super::Fetch;
use crate::compilation::CompilationInputs;

/// What is known beside a file, and what fetches the rest.
#[derive(Debug, Clone, Copy)]
pub struct FileInputs<'a> {
    /// Definitions, beside the `crdFile`s of a document.
    pub schemas: &'a Schemas,
    /// Motifs that Katalogs may name.
    pub motifs: &'a [MotifDocument],
    /// Fetches the sources of compositions.
    pub fetch: &'a dyn Fetch,
    /// Whether the plan is for a controller that applies the definitions which `schema` of entries generates.
    pub manages_definitions: bool,
}

impl FileInputs<'_> {
    /// Returns the rules for files: nothing is compared with an earlier revision.
    pub(crate) fn rules(&self) -> CompilationRules {
        CompilationRules {
            ignores_locks: self.fetch.ignores_locks(),
            manages_definitions: self.manages_definitions,
            ..CompilationRules::default()
        }
    }
}

impl CompilationInputs for FileInputs<'_> {
    type Error = Infallible;

    fn source<'a>(
        &'a self,
        request: &'a SourceRequest,
        locked: Option<&'a Locked>,
    ) -> BoxFuture<'a, SourceAnswer> {
        let fetched = match locked {
            Some(locked) => self.fetch.fetch_locked(request, locked),
            None => self.fetch.fetch(request),
        };
        let answer = fetched.map(|fetched| match fetched {
            Ok(artifact) => SourceAnswer::Fetched(artifact),
            Err(problem) => SourceAnswer::Failed(problem),
        });
        answer.boxed()
    }

    fn motif<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<MotifAnswer, Infallible>> {
        let given = self.motifs.iter().find(|motif| motif.name == name);
        let answer = match given {
            Some(motif) => MotifAnswer::Document(Arc::new(motif.clone())),
            None => MotifAnswer::Absent(format!("there is no Motif `{name}` among the files")),
        };
        async move { Ok(answer) }.boxed()
    }

    fn schemas<'a>(&'a self, _: &'a BTreeSet<GroupKind>) -> BoxFuture<'a, Schemas> {
        let schemas = self.schemas.clone();
        async move { schemas }.boxed()
    }

    fn artifact<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Arc<Artifact>, String>> {
        self.fetch.motif(reference)
    }

    fn file<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, UnreadFile>> {
        let text = tokio::fs::read_to_string(path);
        let text = text.map(|text| {
            text.map_err(|error| UnreadFile {
                is_missing: error.kind() == io::ErrorKind::NotFound,
                why: error.to_string(),
            })
        });
        text.boxed()
    }
}
