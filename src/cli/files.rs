//! Compiles Katalog files into plans, without a cluster.

use std::{path::PathBuf, sync::Arc};

use orkestra_plan::{Plan, definitions::Schemas};

use super::{Failure, output};
use orkestra_loader::compose::Fetch;

/// Compiles the files and prints warnings to stderr; `manages_definitions` as in [`meta::compile_files`].
pub(crate) async fn compile(
    paths: &[PathBuf],
    fetch: &dyn Fetch,
    manages_definitions: bool,
) -> Result<Vec<Arc<Plan>>, Failure> {
    let (plans, warnings) =
        orkestra_controller::compile_files(paths, &Schemas::default(), fetch, manages_definitions)
            .await?;
    output::diagnostics(&warnings);
    Ok(plans)
}

/// Returns the errors of the files that do not depend on the cluster. Warnings are reported later, when the files run.
pub(crate) async fn check(paths: &[PathBuf], fetch: &dyn Fetch) -> Result<(), Failure> {
    orkestra_controller::compile_files(paths, &Schemas::default(), fetch, false).await?;
    Ok(())
}
