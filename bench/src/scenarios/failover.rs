//! Two controllers. The leader is ended, and the follower takes over.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::{
    Figures,
    population::{LIMIT, Population},
    spec_patch,
};
use crate::api::{self, Write};
use crate::options::Sizes;
use crate::report::{Goal, Row};
use crate::shop::{BLOCKS, Kind, NAMESPACE, Tuning, children_path, katalog, resource_name};
use crate::site::Site;
use crate::stats::Percentiles;
use crate::watch::{ObjectChange, Watch};

/// The number of custom resources that exist during the scenario.
const RESOURCES: usize = 20;
/// The time that a new follower gets to fill its caches and to see the leader renew its lease.
const WARM: Duration = Duration::from_secs(5);

/// The way in which the leader is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum End {
    /// SIGTERM, as in a rolling update.
    Terminated,
    /// SIGKILL, as after the loss of its node.
    Killed,
}

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failover {
    /// The way in which the leader was ended.
    end: End,
    /// From the signal until the follower handles a change that was made after the leader was gone, in milliseconds; none if this
    /// `ork` has no leader election.
    took: Option<Percentiles>,
    /// The number of samples.
    samples: usize,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes, end: End) -> Result<Failover> {
    let site = Site::start(program).await?;
    let samples = sizes.failovers;
    if !site.has_leader_election()? {
        return Ok(Failover {
            end,
            took: None,
            samples,
        });
    }
    let population = Population {
        kinds: Kind::some(1),
        per_kind: RESOURCES,
        children: BLOCKS.len(),
    };
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = [katalog("shops", &population.kinds, &tuning)?];
    site.install(&population.kinds).await?;
    site.grant(&katalogs, &population.kinds).await?;
    let mut leader = site.replica().await?;
    site.apply_katalogs(&katalogs).await?;
    site.until_running(&mut leader, &katalogs).await?;
    population.create(&site, &mut leader).await?;

    let mut took = Vec::new();
    for sample in 0..samples {
        let mut follower = site.replica().await?;
        follower.until_still(LIMIT).await?;
        tokio::time::sleep(WARM).await;
        let mut watch = Watch::open(&site.client, &children_path("configmaps", NAMESPACE)).await?;
        let (name, message) = (
            resource_name(sample % RESOURCES),
            format!("message {sample}"),
        );
        let path = format!("{}/{name}", population.kinds[0].path(NAMESPACE));
        let change = Write::merge(&path, &spec_patch("message", &message));

        let started = Instant::now();
        match end {
            End::Terminated => leader.terminate()?,
            End::Killed => leader.kill()?,
        }
        change.send(&site.client).await?;
        let is_it = |seen: &ObjectChange| matches!(seen, ObjectChange::Put(object) if api::name(object) == name && api::text(object, "/data/message") == message);
        let seen = watch
            .until("the follower handles a change", LIMIT, is_it)
            .await?;
        took.push(seen.duration_since(started));
        follower.check()?;
        leader = follower;
    }
    Ok(Failover {
        end,
        took: Percentiles::of(took),
        samples,
    })
}

impl Figures for Failover {
    fn title(&self) -> String {
        let how = match self.end {
            End::Terminated => "SIGTERM to",
            End::Killed => "SIGKILL of",
        };
        format!("{how} the leader of two, {} times", self.samples)
    }

    fn rows(&self) -> Vec<Row> {
        let goal = match self.end {
            End::Terminated => 1.0,
            End::Killed => 11.0,
        };
        let Some(took) = self.took else {
            return Vec::new();
        };
        vec![
            Row::new("until the next change is handled, p50", "s", took.p50 / 1e3),
            Row::new(
                "until the next change is handled, the slowest",
                "s",
                took.max / 1e3,
            )
            .goal(Goal::AtMost(goal)),
        ]
    }

    fn not_measured(&self) -> Option<String> {
        self.took
            .is_none()
            .then(|| "this ork has no --leader-elect".to_owned())
    }
}
