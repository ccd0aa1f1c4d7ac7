//! A control plane for a person: `testbed up`, `testbed down`.
fn main() -> anyhow::Result<()> {
    let t = std::time::Instant::now();
    let c = testbed::ControlPlane::start(testbed::Options {
        nodes: std::env::args().len() > 1,
        folder: None,
    })?;
    eprintln!("{:?} {} {}", t.elapsed(), c.url(), c.folder().display());
    std::thread::sleep(std::time::Duration::from_secs(600));
    Ok(())
}
