//! What the figures were measured on.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

/// The machine and the versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    /// CPUs that this process may use.
    pub(crate) cores: usize,
    /// What they call themselves.
    pub(crate) cpu: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// What `kube-apiserver --version` says.
    pub(crate) kubernetes: String,
    /// What `ork --version` says.
    pub(crate) ork: String,
    /// `release`, or `debug`: then times and sizes tell nothing of what is shipped.
    pub(crate) profile: String,
    /// When the run began.
    pub(crate) at: jiff::Timestamp,
}

impl Machine {
    /// Reads `/proc` and asks the programs for their versions; `ork` is where that one is.
    pub(crate) fn read(ork: &Path) -> Result<Self> {
        let server = testbed::Assets::find()?.binary("kube-apiserver")?;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let memory = field(&std::fs::read_to_string("/proc/meminfo")?, "MemTotal");
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            cpu: field(&std::fs::read_to_string("/proc/cpuinfo")?, "model name"),
            memory_mib: kib / 1024,
            kernel: release.trim().to_owned(),
            kubernetes: version(&server)?,
            ork: version(ork)?,
            profile: profile().to_owned(),
            at: jiff::Timestamp::now().round(jiff::Unit::Second)?,
        })
    }
}

/// What `PROGRAM --version` says.
fn version(program: &Path) -> Result<String> {
    let said = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        said.status.success(),
        "{} reports no version",
        program.display()
    );
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

/// The harness' own profile: `ork` is built in the same one, by the same command.
pub(crate) fn profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

/// The first value of that name in a file of `name : value` lines; empty if there is none.
pub(crate) fn field(text: &str, name: &str) -> String {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "VmPeak:\t  9 kB\nVmRSS:\t  1234 kB\nVmRSS2: 5\n";
        assert_eq!(field(text, "VmRSS"), "1234 kB");
        assert_eq!(field(text, "Vm"), "");
    }
}
