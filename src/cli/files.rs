//! Katalog files to plans, without a cluster.

use std::{path::PathBuf, sync::Arc};

use orkestra_core::plan::{Plan, Schemas};

use super::{Failure, output};
use crate::meta;

/// Compiles the files; warnings go to stderr.
pub(super) async fn compile(paths: &[PathBuf]) -> Result<Vec<Arc<Plan>>, Failure> {
    let (plans, warnings) = meta::compile_files(paths, &Schemas::default()).await?;
    output::diagnostics(&warnings);
    Ok(plans)
}

/// Finds what is wrong with the files whatever the cluster holds; warnings are left to those who run them.
pub(super) async fn check(paths: &[PathBuf]) -> Result<(), Failure> {
    meta::compile_files(paths, &Schemas::default()).await?;
    Ok(())
}
