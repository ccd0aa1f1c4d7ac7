//! Interleavings: any order of events ends in the declared state, and objects that are created once are created at most once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use orkestra_engine::reconcile::{inventory::Inventory, record::Observed};
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{Pass, World, key},
};

const DECLARED: &str = "onCreate:
  configMaps:
    - { name: seed, when: [{ field: spec.flag, equals: true }], data: { of: '{{ .spec.word }}' } }
    - { name: steady, reconcile: true, data: { of: '{{ .spec.word }}' } }
  custom:
    - apiVersion: batch/v1
      kind: Job
      metadata: { name: 'load-{{ .item }}' }
      forEach: { field: spec.sets }
      spec: { template: {} }
onReconcile:
  when: [{ field: spec.off, notEquals: true }]
  configMaps:
    - name: 'region-{{ .item }}'
      forEach: { field: spec.regions }
      data: { of: '{{ .spec.word }}', region: '{{ .item }}' }
    - { name: flag, when: [{ field: spec.flag, equals: true }], data: { of: '{{ .spec.word }}' } }
    - { name: turn, when: [{ field: spec.flag, equals: true }], data: { of: day } }
    - { name: turn, when: [{ field: spec.flag, notEquals: true }], data: { of: night } }
  secrets:
    - { name: key, data: { of: '{{ .spec.word }}' } }";

static PLAN: LazyLock<Arc<OperatorPlan>> = LazyLock::new(|| operator(DECLARED));

/// An event.
#[derive(Clone, Debug)]
enum Event {
    /// The user changes the spec.
    Spec(Value),
    /// Another client changes the values of a child.
    Edit(usize),
    /// Another client deletes a child.
    Delete(usize),
    /// A complete pass.
    Pass,
    /// A pass that is interrupted after this number of writes.
    Crash(usize),
    /// A pass without the children of one kind.
    Unsynced(bool),
    /// A pass begins. Its observation is kept for later.
    Look,
    /// The pass that began earlier is executed.
    Act,
    /// The process restarts and loses a pass that began earlier.
    Restart,
    /// Time passes.
    Wait(u8),
}

fn spec() -> impl Strategy<Value = Value> {
    let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    let sets = prop::sample::subsequence(vec!["x", "y"], 0..=2);
    let words = prop::sample::select(vec!["carp", "koi"]);
    (any::<bool>(), any::<bool>(), names, sets, words).prop_map(|(flag, off, regions, sets, word)| {
        json!({ "flag": flag, "off": off && flag, "regions": regions, "sets": sets, "word": word })
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => spec().prop_map(Event::Spec),
        2 => any::<usize>().prop_map(Event::Edit),
        2 => any::<usize>().prop_map(Event::Delete),
        3 => Just(Event::Pass),
        2 => (0usize..4).prop_map(Event::Crash),
        1 => any::<bool>().prop_map(Event::Unsynced),
        1 => Just(Event::Look),
        2 => Just(Event::Act),
        1 => Just(Event::Restart),
        1 => any::<u8>().prop_map(Event::Wait),
    ]
}

/// The world, with data that the operator does not have.
struct History {
    world: World,
    begun: Option<Observed>,
    /// The number of times that each child of a create-once entry was created, as far as the operator could know.
    made: BTreeMap<ChildKey, usize>,
}

impl History {
    fn happens(&mut self, event: Event) {
        match event {
            Event::Spec(spec) => self.world.cr["spec"] = spec,
            Event::Edit(which) => {
                if let Some(key) = self.pick(which) {
                    let stored = self.world.objects.get_mut(&key).unwrap();
                    stored.update("kubectl", |leaves| {
                        for (trail, value) in leaves.iter_mut() {
                            if !format!("{trail:?}").contains("metadata") {
                                *value = json!("ZWRpdGVk");
                            }
                        }
                    });
                }
            }
            Event::Delete(which) => {
                if let Some(key) = self.pick(which) {
                    self.world.objects.remove(&key);
                    // Without an entry in the inventory the operator cannot know that the child existed.
                    if !self.inventory().made.contains(&key) {
                        self.made.remove(&key);
                    }
                }
            }
            Event::Pass => self.pass(usize::MAX),
            Event::Crash(writes) => self.pass(writes),
            Event::Unsynced(maps) => {
                let kind = if maps { "ConfigMap" } else { "Secret" };
                self.world.unseen = BTreeSet::from([GroupKind::parse(kind)]);
                let mut seen = self.world.observe();
                seen.children
                    .retain(|child| child.key.kind != GroupKind::parse(kind));
                self.act(&seen, usize::MAX);
                self.world.unseen.clear();
            }
            Event::Look => self.begun = Some(self.world.observe()),
            Event::Act => {
                if let Some(seen) = self.begun.take() {
                    self.act(&seen, usize::MAX);
                }
            }
            Event::Restart => self.begun = None,
            Event::Wait(hours) => {
                let hours = jiff::SignedDuration::from_hours(hours.into());
                self.world.now = self.world.now.checked_add(hours).unwrap();
            }
        }
    }

    fn pick(&self, which: usize) -> Option<ChildKey> {
        let count = self.world.objects.len().max(1);
        self.world.objects.keys().nth(which % count).cloned()
    }

    fn pass(&mut self, writes: usize) {
        let seen = self.world.observe();
        self.act(&seen, writes);
    }

    /// Executes a pass. The write of the metadata fails if they have changed since the observation; then the pass ends.
    fn act(&mut self, seen: &Observed, writes: usize) {
        if *seen.cr.inventory != self.inventory() {
            return;
        }
        let before: BTreeSet<ChildKey> = self.world.objects.keys().cloned().collect();
        let cycle = self.world.decide_on(seen);
        let Pass { written, .. } = self.world.execute(cycle, writes);
        for key in written {
            let is_new = !before.contains(&key) && self.world.objects.contains_key(&key);
            if is_new && is_once(&key) {
                *self.made.entry(key).or_default() += 1;
            }
        }
        // Children that are no longer declared are removed. If they are declared again, they may be created again.
        let declared = self.declared_once();
        self.made.retain(|key, _| declared.contains(key));
    }

    fn inventory(&self) -> Inventory {
        self.world.cr().inventory.as_ref().clone()
    }

    /// Returns the declared children that are created once.
    fn declared_once(&self) -> BTreeSet<ChildKey> {
        let sets = names(&self.world.cr["spec"], "sets");
        let jobs = sets.map(|set| key("Job.batch", &format!("load-{set}")));
        jobs.chain([key("ConfigMap", "seed")]).collect()
    }
}

fn names<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let list = spec[list].as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

fn is_once(key: &ChildKey) -> bool {
    &*key.object.name == "seed" || &*key.kind.kind == "Job"
}

/// Returns the reconciled children with their data.
fn kept(world: &World) -> BTreeMap<ChildKey, Value> {
    let kept = world.objects.iter().filter(|(key, _)| !is_once(key));
    kept.map(|(key, stored)| (key.clone(), stored.object()["data"].clone()))
        .collect()
}

/// Returns the children that must exist, from the spec only.
fn declared(spec: &Value) -> BTreeMap<ChildKey, Value> {
    let map = |name: &str, data: Value| (key("ConfigMap", name), data);
    let word = &spec["word"];
    let mut kept = BTreeMap::from([map("steady", json!({ "of": word }))]);
    if spec["off"] == true {
        return kept;
    }
    for region in names(spec, "regions") {
        let data = json!({ "of": word, "region": region });
        kept.extend([map(&format!("region-{region}"), data)]);
    }
    let flag = spec["flag"] == true;
    kept.extend(flag.then(|| map("flag", json!({ "of": word }))));
    let turn = if flag { "day" } else { "night" };
    kept.extend([map("turn", json!({ "of": turn }))]);
    let encoded = if word == "koi" { "a29p" } else { "Y2FycA==" };
    kept.extend([(key("Secret", "key"), json!({ "of": encoded }))]);
    kept
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_260_301),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_order_of_events_ends_in_what_is_declared(events in prop::collection::vec(event(), 1..12)) {
        let mut history = History {
            world: World::new(&PLAN, pond(&json!({ "regions": ["a"], "word": "carp" }), &json!({}))),
            begun: None,
            made: BTreeMap::new(),
        };
        for event in events {
            history.happens(event);
            for (key, times) in &history.made {
                prop_assert!(*times <= 1, "{key} was made {times} times");
            }
        }
        history.world.settle();
        let spec = history.world.cr["spec"].clone();
        prop_assert_eq!(kept(&history.world), declared(&spec));
        // Each child of a create-once entry was created, if its gate was open.
        let made = history.inventory().made;
        for job in history.declared_once().iter().filter(|key| &*key.kind.kind == "Job") {
            prop_assert!(made.contains(job), "{} was not made", job);
        }
        prop_assert!(spec["flag"] != true || made.contains(&key("ConfigMap", "seed")));
    }
}
