//! Deletion of a Katalog, its CRDs and their custom resources in random orders: no object is stuck (G19).

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::scenario::{LIMIT, Objects, Scenario, code, input};
use crate::waters;

/// The number of orders that are tried. `ORDERS=…` overrides it, and `ORDERS_SEED=…` sets the first seed.
const ORDERS: u64 = 12;

/// A pseudo-random sequence that a seed determines (Numerical Recipes' linear congruential generator).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The objects that are deleted, by plural and name.
const TARGETS: [(&str, &str); 7] = [
    ("katalogs", "waters"),
    ("customresourcedefinitions", "ponds"),
    ("customresourcedefinitions", "lakes"),
    ("ponds", "north"),
    ("ponds", "south"),
    ("lakes", "deep"),
    ("configmaps", "north-pond"),
];

fn place(scenario: &Scenario, plural: &str, name: &str) -> (Objects, String) {
    if plural == "customresourcedefinitions" {
        let crds = Objects::of_cluster(&scenario.client, plural);
        (crds, format!("{name}.{}", scenario.group))
    } else {
        (scenario.objects(plural), name.to_owned())
    }
}

/// Deletes an object that may not exist any more.
async fn delete(objects: &Objects, name: &str) -> Result<()> {
    match objects.delete(name).await {
        Err(error) if code(&error) != Some(404) => Err(error),
        _ => Ok(()),
    }
}

async fn try_order(scenario: &mut Scenario, katalog: &str, seed: u64) -> Result<()> {
    let mut draws = Draws(seed);
    scenario.install(&waters::crds()?).await?;
    scenario.apply(katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    for (kind, name) in [("Pond", "north"), ("Pond", "south"), ("Lake", "deep")] {
        let plural = format!("{}s", kind.to_lowercase());
        let resource = waters::resource(scenario, kind, name, &json!({ "colour": "green" }));
        let objects = scenario.objects(&plural);
        objects.create(&resource).await?;
        // Some resources are not waited for, and deleted before they are ready.
        if draws.below(2) == 0 {
            objects.until_ready(name).await?;
        }
    }
    let mut targets = TARGETS;
    draws.shuffle(&mut targets);
    for (plural, name) in targets {
        let (objects, name) = place(scenario, plural, name);
        delete(&objects, &name).await?;
        match draws.below(5) {
            // Wait until this object is gone before the next deletion. A child may be created again, so it is not waited for.
            0 if plural != "configmaps" && plural != "katalogs" => {
                objects.until_gone(&name, LIMIT).await?;
            }
            1 => {
                scenario.kill9()?;
                scenario.start().await?;
            }
            _ => {}
        }
    }
    for (plural, name) in targets.iter().filter(|(plural, _)| *plural != "configmaps") {
        let (objects, name) = place(scenario, plural, name);
        objects
            .until_gone(&name, LIMIT)
            .await
            .with_context(|| format!("{targets:?}"))?;
    }
    let maps = waters::managed(scenario.objects("configmaps").list().await?);
    for map in maps {
        ensure!(map["metadata"].get("finalizers").is_none(), "{map}");
        let (maps, name) = place(scenario, "configmaps", waters::text(&map, "/metadata/name"));
        delete(&maps, &name).await?;
    }
    scenario.check_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_deleted_first_nothing_is_stuck() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, orders) = (
        number("ORDERS_SEED").unwrap_or(1),
        number("ORDERS").unwrap_or(ORDERS),
    );
    let mut scenario = Scenario::new("orders").await?;
    let katalogs = ["keep", "delete"].map(|policy| {
        let text = input("rollout/katalog.yaml")?;
        anyhow::Ok(text.replace(
            "\nspec:\n",
            &format!("\nspec:\n  deletionPolicy: {policy}\n"),
        ))
    });
    let [keep, delete] = katalogs;
    let katalogs = [keep?, delete?];
    ensure!(katalogs[0] != katalogs[1], "the policy is not set");
    scenario.grant(&katalogs[0]).await?;
    scenario.start().await?;
    for seed in first..first + orders {
        let katalog = &katalogs[usize::from(seed.is_multiple_of(2))];
        let tried = try_order(&mut scenario, katalog, seed).await;
        tried.with_context(|| format!("ORDERS_SEED={seed} ORDERS=1"))?;
    }
    Ok(())
}
