//! The machine and versions of a measurement.

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
    /// The model name of the CPUs.
    pub(crate) cpu: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The output of `kube-apiserver --version`.
    pub(crate) kubernetes: String,
    /// The output of `ork --version`.
    pub(crate) ork: String,
    /// `release` or `debug`. The times and sizes of a debug build do not apply to the shipped program.
    pub(crate) profile: String,
    /// The start of the run.
    pub(crate) at: jiff::Timestamp,
}

impl Machine {
    /// Reads `/proc` and runs the programs with `--version`. `ork` is the path of `ork`.
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

/// Returns the output of `PROGRAM --version`.
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

/// Returns the harness' own profile. `ork` is built in the same one, by the same command.
pub(crate) fn profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

/// Returns the first value with this name in a file of `name : value` lines, or an empty text.
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
