//! Compiles Katalog files into plans, without a cluster.

use std::{path::PathBuf, sync::Arc};

use orkestra_core::{definitions::Schemas, plan::Plan};

use super::{Failure, output};
use crate::{compose::Fetch, meta};

/// Compiles the files and prints warnings to stderr.
pub(super) async fn compile(
    paths: &[PathBuf],
    fetch: &dyn Fetch,
) -> Result<Vec<Arc<Plan>>, Failure> {
    let (plans, warnings) = meta::compile_files(paths, &Schemas::default(), fetch).await?;
    output::diagnostics(&warnings);
    Ok(plans)
}

/// Returns the errors of the files that do not depend on the cluster. Warnings are reported later, when the files run.
pub(super) async fn check(paths: &[PathBuf], fetch: &dyn Fetch) -> Result<(), Failure> {
    meta::compile_files(paths, &Schemas::default(), fetch).await?;
    Ok(())
}
