//! A running `ork controller` and its use of CPU and memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use testbed::{Guarded, Signal, eventually, free_port, spawn_guarded};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::machine::field;

/// The longest time until it serves, and until it ends after SIGTERM.
const LIMIT: Duration = Duration::from_mins(1);
/// The time without CPU use after which it counts as quiet.
const QUIET: Duration = Duration::from_millis(500);
/// The ticks per second of the kernel's CPU accounting, which user space sees as 100 on every Linux.
///
/// Source: `proc_pid_stat(5)`, `utime`; `USER_HZ`.
const TICKS: u32 = 100;

/// The memory and threads of a process, from `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Resident memory in MB (10^6 bytes), including the pages of the program itself.
    pub(crate) rss_mb: f64,
    /// The peak of `rss_mb`.
    pub(crate) peak_mb: f64,
    /// The part of `rss_mb` that is not mapped from a file: heap and stacks.
    pub(crate) heap_mb: f64,
    /// The number of threads.
    pub(crate) threads: u32,
}

/// One `ork controller`. It ends when this value is dropped.
pub(crate) struct Ork {
    child: Guarded,
    listen: String,
    started: Instant,
    started_at: jiff::Timestamp,
}

impl Ork {
    /// Starts `ork controller ARGS` as the user of `kubeconfig`, in `folder`, and waits until it serves.
    pub(crate) async fn start(
        program: &Path,
        kubeconfig: &Path,
        folder: &Path,
        args: &[String],
    ) -> Result<Self> {
        for _ in 0..3 {
            let listen = format!("127.0.0.1:{}", free_port()?);
            let mut command = Command::new(program);
            command
                .args(["controller", "--listen", &listen])
                .args(args)
                .env("KUBECONFIG", kubeconfig)
                .env_remove("RUST_LOG")
                .current_dir(folder);
            let log: PathBuf = folder.join(format!("ork-{}.log", listen.replace(':', "-")));
            let mut ork = Self {
                started: Instant::now(),
                started_at: jiff::Timestamp::now(),
                child: spawn_guarded(&command, &log)?,
                listen,
            };
            match ork.until_live().await {
                Ok(()) => return Ok(ork),
                // Another process took the port.
                Err(_) if ork.child.log().contains("in use") => {}
                Err(error) => return Err(error),
            }
        }
        bail!("no port is free")
    }

    async fn until_live(&mut self) -> Result<()> {
        eventually("`ork controller` answers /livez", LIMIT, async || {
            if let Err(ended) = self.check() {
                return Ok(Some(Err(ended)));
            }
            Ok(self.get("/livez").await.ok().map(|_| Ok(())))
        })
        .await?
    }

    /// Returns an error with the end of the log, if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.status()? {
            bail!("`ork controller` ended with {status}:\n{}", self.tail());
        }
        Ok(())
    }

    /// Returns the end of the log.
    pub(crate) fn tail(&self) -> String {
        let log = self.child.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Returns the time at which it was started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the seconds from its start to `at`.
    pub(crate) fn seconds_at(&self, at: jiff::Timestamp) -> f64 {
        at.duration_since(self.started_at).as_secs_f64()
    }

    /// Returns the body of its answer at `path`.
    pub(crate) async fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.listen).await?;
        let host = &self.listen;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer))
            .await
            .with_context(|| format!("GET {path}: no answer within {LIMIT:?}"))??;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .with_context(|| format!("GET {path}: an answer without a body"))?;
        ensure!(head.starts_with("HTTP/1.1 200"), "GET {path}: {head}");
        Ok(body.to_owned())
    }

    /// Returns its current metrics.
    pub(crate) async fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics(self.get("/metrics").await?))
    }

    /// Returns the expiry of its webhooks' certificate, in seconds since 1970.
    pub(crate) async fn certificate_end(&self) -> Result<f64> {
        let metrics = self.metrics().await?;
        Ok(metrics.sum("orkestra_webhook_certificate_end_seconds"))
    }

    /// Returns its current memory.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let status = self.proc("status")?;
        let mb = |name: &str| -> Result<f64> {
            let value = field(&status, name);
            let kib: f64 = value
                .trim_end_matches(" kB")
                .parse()
                .with_context(|| format!("/proc/PID/status has no {name}"))?;
            Ok(kib * 1024.0 / 1e6)
        };
        Ok(Memory {
            rss_mb: mb("VmRSS")?,
            peak_mb: mb("VmHWM")?,
            heap_mb: mb("RssAnon")?,
            threads: field(&status, "Threads").parse()?,
        })
    }

    /// Returns the CPU seconds that it has used so far, in steps of 10 ms.
    pub(crate) fn cpu(&self) -> Result<f64> {
        cpu_seconds(&self.proc("stat")?)
    }

    fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.child.pid());
        std::fs::read_to_string(&path)
            .with_context(|| format!("`ork controller` has ended:\n{}", self.tail()))
    }

    /// Waits until it has made `passes` passes, its queues are empty and it uses no CPU. Returns the time at which that state
    /// began.
    pub(crate) async fn until_quiet(&mut self, passes: f64, limit: Duration) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        loop {
            let still = self
                .until_still(deadline.saturating_duration_since(Instant::now()))
                .await?;
            let metrics = self.metrics().await?;
            let done = metrics.sum("orkestra_reconcile_total");
            let busy = metrics.sum("orkestra_workers_active") + metrics.sum("orkestra_queue_depth");
            if done >= passes && busy < 0.5 {
                return Ok(still);
            }
            ensure!(
                Instant::now() < deadline,
                "`ork controller` is not quiet within {limit:?}: {done} of {passes} passes, {busy} keys in work:\n{}",
                self.tail()
            );
        }
    }

    /// Waits until it uses no CPU, and returns the time at which that state began.
    ///
    /// The kernel's CPU accounting has a resolution of 10 ms and costs the process nothing, unlike frequent requests for its
    /// metrics.
    pub(crate) async fn until_still(&mut self, limit: Duration) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        let (mut cpu, mut changed) = (self.cpu()?, Instant::now());
        while changed.elapsed() < QUIET {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.check()?;
            let now = self.cpu()?;
            // A single tick may come from a timer.
            if now > cpu + 1.5 / f64::from(TICKS) {
                (cpu, changed) = (now, Instant::now());
            }
            ensure!(
                Instant::now() < deadline,
                "`ork controller` still works after {limit:?}:\n{}",
                self.tail()
            );
        }
        Ok(changed)
    }

    /// Sends SIGTERM and waits for an orderly end.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        self.child.signal(Signal::Term)?;
        let status = tokio::task::block_in_place(|| self.child.wait(LIMIT))?;
        ensure!(
            status.success(),
            "after SIGTERM `ork controller` ended with {status}:\n{}",
            self.tail()
        );
        Ok(())
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        tokio::task::block_in_place(|| self.child.kill())
    }
}

/// Returns the seconds of user and system time in a `/proc/PID/stat`.
pub(crate) fn cpu_seconds(stat: &str) -> Result<f64> {
    // The program's name, in parentheses, may contain any character.
    let (_, fields) = stat.rsplit_once(')').context("no /proc/PID/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).context("too short")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / f64::from(TICKS))
}

/// Metrics in Prometheus' text format.
pub(crate) struct Metrics(pub(crate) String);

impl Metrics {
    /// Returns the sum of all series with this name, or 0 if there is none.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.find(name).unwrap_or_default()
    }

    /// Returns the sum of all series with this name.
    pub(crate) fn find(&self, name: &str) -> Option<f64> {
        let values: Vec<f64> = self
            .0
            .lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_up_and_others_with_a_longer_name_are_not() {
        let metrics = Metrics(
            "# HELP a x\na{k=\"1 }\"} 2\na{k=\"2\"} 3.5\na_total{k=\"1\"} 7\nb 4\n".to_owned(),
        );
        assert_eq!(metrics.find("a"), Some(5.5));
        assert_eq!(metrics.find("b"), Some(4.0));
        assert_eq!((metrics.find("c"), metrics.sum("c")), (None, 0.0));
    }

    #[test]
    fn user_and_system_time_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 150 25 3 4 20 0 5 0 99 1 2";
        assert_eq!(format!("{:.2}", cpu_seconds(stat).unwrap()), "1.75");
    }
}
