//! The folder of the control plane's binaries. `hack/control-plane/build` prints it and builds missing binaries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The folder of the control plane's binaries.
#[derive(Debug, Clone)]
pub struct Assets {
    folder: PathBuf,
}

impl Assets {
    /// Finds the binaries. If they are missing, it builds them first (about six minutes on two cores, once for each machine).
    ///
    /// If the environment variable `KUBEBUILDER_ASSETS` names a folder with the binaries, nothing is built.
    pub fn find() -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/control-plane/build");
        let output = Command::new(&script)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", script.display()))?;
        if !output.status.success() {
            bail!("the control plane could not be built; `make control-plane` shows why");
        }
        let text = String::from_utf8(output.stdout).context("the build printed no text")?;
        let folder = text.lines().last().context("the build named no folder")?;
        Ok(Self {
            folder: PathBuf::from(folder),
        })
    }

    /// Returns the folder, for example to add it to `PATH`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the binary `name`.
    pub fn binary(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.is_file() {
            bail!(
                "{} has no {name}: put it there, or unset KUBEBUILDER_ASSETS to have it built",
                self.folder.display()
            );
        }
        Ok(path)
    }

    /// Returns kwok's stage files, which define the states of a fake node and its pods.
    pub(crate) fn stages(&self) -> Result<Vec<PathBuf>> {
        let folder = self.folder.join("stages");
        let entries = std::fs::read_dir(&folder).with_context(|| {
            format!(
                "no kwok stages in {}: unset KUBEBUILDER_ASSETS to have them built",
                folder.display()
            )
        })?;
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry?.path());
        }
        files.sort();
        Ok(files)
    }
}
