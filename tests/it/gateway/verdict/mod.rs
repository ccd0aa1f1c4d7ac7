//! Equal verdicts: policies of a real API server, the function of the webhook, and reconcile passes evaluate random rule sets for
//! random objects.
//!
//! ```text
//!  rule set ─ compile ─┬─ policies ─► API server ◄─ dry run of each object        its first denial, its warnings
//!                      ├─ admit  ──────────────────────────────────────────────► all denials and warnings of those rules
//!                      └─ step   ──────────────────────────────────────────────► the same, of rules that passes apply
//! ```
//!
//! `RULE_SETS=10000` sets the number of rule sets. All objects are in one namespace: the binding of each policy selects its
//! objects by name.

mod judged;
mod served;

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use http::Method;
use orkestra_engine::admission::{Operation, PolicyOptions, policies};
use orkestra_object::value::Node;
use orkestra_plan::{OperatorPlan, Plan};
use serde_json::{Value, json};
use testbed::eventually;

use self::{
    judged::{Outcome, by_pass, by_webhook, compiled, one_line},
    served::{Served, send},
};
use crate::{
    generate,
    scenario::{LIMIT, Scenario},
};

/// The number of rule sets in a batch; their policies exist at the same time.
const BATCH: u64 = 200;
/// The number of objects for each rule set; half of them are updates.
const OBJECTS: u64 = 8;
/// The number of concurrent requests.
const AT_ONCE: usize = 16;
/// The number of different stored objects that updates start from.
const STORED: u64 = 20;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A rule set under test.
struct RuleSet {
    seed: u64,
    katalog: Value,
    plan: Plan,
}

impl RuleSet {
    fn operator(&self) -> &Arc<OperatorPlan> {
        &self.plan.operators[0]
    }

    /// Returns the name of the object that is created under this rule set.
    fn created(&self) -> String {
        format!("new-{}", self.seed)
    }

    /// Returns the name of the stored object that is updated under the rule set in a slot: bindings select objects by name.
    fn updated(slot: u64) -> String {
        format!("old-{slot}")
    }
}

/// The scenario of the test, and the CRD of its objects.
struct Place {
    scenario: Scenario,
    definition: Value,
}

impl Place {
    async fn new() -> Result<Self> {
        let scenario = Scenario::new("verdict").await?;
        let group = scenario.group.clone();
        let definition = served::of_group(&generate::definition(), &group, "ponds");
        scenario.install(&definition.to_string()).await?;
        Ok(Self {
            scenario,
            definition,
        })
    }

    fn path(&self) -> String {
        let (group, namespace) = (&self.scenario.group, &self.scenario.namespace);
        format!("/apis/{group}/v1/namespaces/{namespace}/ponds")
    }

    /// Returns the object that a seed generates, under another name.
    fn object(&self, seed: u64, name: &str) -> Value {
        let mut object = generate::object(seed);
        object["apiVersion"] = json!(format!("{}/v1", self.scenario.group));
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(self.scenario.namespace);
        object
    }

    fn rule_set(&self, seed: u64) -> Option<RuleSet> {
        let mut katalog = generate::katalog(seed, seed % 4 == 3);
        katalog["metadata"]["name"] = json!(format!("waters-{seed}"));
        katalog["spec"]["crds"]["pond"]["apiTypes"]["group"] = json!(self.scenario.group);
        // Some generated combinations do not compile.
        let plan = compiled(&katalog.to_string(), std::slice::from_ref(&self.definition)).ok()?;
        Some(RuleSet {
            seed,
            katalog,
            plan,
        })
    }

    /// Writes the policies of rule sets, whose bindings select their objects by name, and a last one whose denials show that all
    /// are in force.
    async fn write_policies(&self, sets: &[(u64, RuleSet)]) -> Result<Vec<(String, Value)>> {
        let mut written = Vec::new();
        for (slot, set) in sets {
            let names = [set.created(), RuleSet::updated(*slot)];
            for node in policies(&set.plan, &PolicyOptions::default()) {
                written.push(self.selecting(node.to_json(), &names));
            }
        }
        let batch = sets.first().map_or(0, |(_, set)| set.seed);
        let (last, probe) = (format!("last-{batch}.{}", self.scenario.group), "probe");
        let rules = json!([{ "apiGroups": [self.scenario.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["ponds"] }]);
        let meta = json!({ "name": last });
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta,
            "spec": { "matchConstraints": { "resourceRules": rules }, "validations": [{ "expression": "false", "message": last }] },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta,
            "spec": { "policyName": last, "validationActions": ["Deny"] },
        });
        let client = &self.scenario.client;
        // The last policy and its binding are written at the end: the API server watches policies and bindings separately.
        for (path, kind) in [
            (POLICIES, "ValidatingAdmissionPolicy"),
            (BINDINGS, "ValidatingAdmissionPolicyBinding"),
        ] {
            let of_kind = written.iter().filter(|(_, object)| object["kind"] == kind);
            let writes = of_kind.map(|(_, object)| async move {
                let served = send(client, Method::POST, path, Some(object)).await?;
                ensure!(served.code == 201, "{served:?}\n{object:#}");
                Ok(())
            });
            let mut writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
            while let Some(done) = writes.next().await {
                done?;
            }
        }
        for object in [policy, binding] {
            let (path, object) = self.selecting(object, &[probe.to_owned()]);
            send(client, Method::POST, &path, Some(&object)).await?;
            written.push((path, object));
        }
        let object = self.object(0, probe);
        eventually("the policies are in force", LIMIT, async || {
            let served = self.dry(Method::POST, "", &object).await?;
            Ok(served.message.contains(&last).then_some(()))
        })
        .await?;
        Ok(written)
    }

    /// Returns a policy or binding with the path to create it at. A binding is limited to objects with the names.
    fn selecting(&self, mut object: Value, names: &[String]) -> (String, Value) {
        if object["kind"] == "ValidatingAdmissionPolicy" {
            return (POLICIES.to_owned(), object);
        }
        object["spec"]["matchResources"] = json!({ "resourceRules": [{
            "apiGroups": [self.scenario.group], "apiVersions": ["*"], "operations": ["*"], "resources": ["ponds"],
            "resourceNames": names,
        }] });
        (BINDINGS.to_owned(), object)
    }

    async fn remove_policies(&self, written: Vec<(String, Value)>) -> Result<()> {
        let deletions = written.iter().map(|(path, object)| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{path}/{name}");
            async move { send(&self.scenario.client, Method::DELETE, &path, None).await }
        });
        let mut deletions = futures::stream::iter(deletions).buffer_unordered(AT_ONCE);
        while let Some(done) = deletions.next().await {
            done?;
        }
        Ok(())
    }

    async fn dry(&self, method: Method, name: &str, object: &Value) -> Result<Served> {
        let path = format!("{}{name}?dryRun=All", self.path());
        send(&self.scenario.client, method, &path, Some(object)).await
    }

    /// Compares the verdicts about one object. The API server may enforce a policy a moment after the one that was written last, so
    /// a difference counts only if it persists.
    async fn compare(&self, set: (u64, &RuleSet), stored: &[Value], at: u64) -> Result<usize> {
        eventually("the verdicts agree", LIMIT, async || {
            self.compare_once(set, stored, at).await.map(Some)
        })
        .await
    }

    /// Compares the verdicts; returns the number of denials and warnings.
    async fn compare_once(
        &self,
        (slot, set): (u64, &RuleSet),
        stored: &[Value],
        at: u64,
    ) -> Result<usize> {
        let seed = set.seed * 1000 + at;
        let is_update = at % 2 == 1;
        let name = if is_update {
            RuleSet::updated(slot)
        } else {
            set.created()
        };
        let mut object = self.object(seed, &name);
        let (operation, old) = if is_update {
            let old = &stored[usize::try_from(slot)?];
            object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            (Operation::Update, old.clone())
        } else {
            (Operation::Create, Value::Null)
        };
        let served = if is_update {
            self.dry(Method::PUT, &format!("/{name}"), &object).await?
        } else {
            self.dry(Method::POST, "", &object).await?
        };
        let (plan, about) = (set.operator(), (operation, &object, &old));
        let webhook = by_webhook(plan, about)?;
        compare_with_server(plan, &served, &webhook)
            .and_then(|()| compare_with_pass(plan, &by_pass(plan, &object)?, &webhook))
            .with_context(|| {
                let policies = policies(&set.plan, &PolicyOptions::default());
                let policies: Vec<Value> = policies.iter().map(Node::to_json).collect();
                format!("{:#}\n{object:#}\n{old:#}\n{policies:#?}", set.katalog)
            })?;
        Ok(webhook.denials.len() + webhook.warnings.len())
    }
}

/// Returns the labels of the rules for which `is_meant` returns true.
fn labels(
    plan: &OperatorPlan,
    is_meant: impl Fn(&orkestra_plan::ValidationRulePlan) -> bool,
) -> BTreeSet<&str> {
    let rules = plan.rules.validation.iter();
    rules
        .filter(|rule| is_meant(rule))
        .map(|rule| &*rule.label)
        .collect()
}

/// Compares the verdicts of API server and webhook. The API server reports the first denial of the policies, and all warnings.
fn compare_with_server(plan: &OperatorPlan, served: &Served, webhook: &Outcome) -> Result<()> {
    let webhook = webhook.of(&labels(plan, |rule| rule.cel.is_ok()));
    let is_same = |expected: &str, found: &str| {
        // The message of a policy has `…` for a part that CEL cannot express.
        one_line(found).contains(&one_line(expected)) || found.contains('…')
    };
    match webhook.denials.first() {
        None => ensure!(served.is_accepted(), "the webhook accepts: {served:?}"),
        Some(first) => ensure!(
            served.code == 422 && is_same(first, &served.message),
            "the webhook denies with {first:?}, the API server returned {served:?}"
        ),
    }
    let (expected, found) = (&webhook.warnings, &served.warnings);
    ensure!(
        expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| is_same(a, b)),
        "the webhook warns {expected:?}, the API server {found:?}"
    );
    Ok(())
}

/// Compares the verdicts of reconcile pass and webhook: both report all denials and warnings.
fn compare_with_pass(plan: &OperatorPlan, pass: &Outcome, webhook: &Outcome) -> Result<()> {
    let both = labels(plan, |rule| {
        let moments = &rule.moments;
        moments.not_in_passes.is_none() && moments.not_at_admission.is_none()
    });
    let (pass, webhook) = (pass.of(&both), webhook.of(&both));
    ensure!(
        pass == webhook,
        "the reconcile pass reports {pass:?}, the webhook {webhook:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn policies_of_the_api_server_the_webhook_and_passes_have_one_verdict() -> Result<()> {
    let rule_sets: u64 = std::env::var("RULE_SETS").map_or(Ok(BATCH), |text| text.parse())?;
    let place = Place::new().await?;
    let client = &place.scenario.client;
    let mut stored = Vec::new();
    for slot in 0..BATCH {
        let object = place.object(slot % STORED + 7_000_000, &RuleSet::updated(slot));
        let served = send(client, Method::POST, &place.path(), Some(&object)).await?;
        ensure!(served.code == 201, "{served:?}");
        stored.push(served.body);
    }
    let (mut judged, mut sets_judged, mut reported) = (0_u64, 0, 0);
    let mut differences = Vec::new();
    for batch in 0..rule_sets.div_ceil(BATCH) {
        let seeds = batch * BATCH..rule_sets.min((batch + 1) * BATCH);
        let sets = seeds.filter_map(|seed| place.rule_set(seed));
        let sets: Vec<(u64, RuleSet)> = (0..).zip(sets).collect();
        let written = place.write_policies(&sets).await?;
        let (place, stored) = (&place, &stored);
        let comparisons = sets.iter().flat_map(|(slot, set)| {
            (0..OBJECTS).map(move |at| place.compare((*slot, set), stored, at))
        });
        let mut comparisons = futures::stream::iter(comparisons).buffer_unordered(AT_ONCE);
        while let Some(compared) = comparisons.next().await {
            judged += 1;
            match compared {
                Ok(count) => reported += count,
                Err(difference) => differences.push(format!("{difference:#}")),
            }
        }
        sets_judged += sets.len();
        place.remove_policies(written).await?;
        if differences.len() > 3 {
            break;
        }
    }
    println!(
        "{sets_judged} rule sets, {judged} objects, {reported} denials and warnings, {} differences",
        differences.len()
    );
    if let Some(first) = differences.first() {
        bail!("{} of {judged} differ: {first}", differences.len());
    }
    ensure!(
        judged > rule_sets * OBJECTS / 2 && u64::try_from(reported)? > judged / 10,
        "{judged} objects, {reported} denials and warnings"
    );
    Ok(())
}
