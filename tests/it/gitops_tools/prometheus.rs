//! The alert rules, checked and tested by promtool, a program of Prometheus.

use std::process::Command;

use anyhow::Result;

use super::tools;
use crate::scenario::printed;

#[test]
#[ignore = "make gitops"]
fn promtool_accepts_the_alerts_and_each_fires_when_it_should() -> Result<()> {
    let promtool = tools("promtool")?.join("promtool");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/monitoring");
    for args in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ] {
        let output = Command::new(&promtool)
            .args(args)
            .current_dir(&folder)
            .output()?;
        let said = printed(&output, "promtool")?;
        anyhow::ensure!(said.contains("SUCCESS"), "{said}");
    }
    Ok(())
}
