//! Reads custom resources and their children, one list for each kind, and forecasts a pass over each.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use orkestra_cluster::requests::Cluster;
use orkestra_engine::reconcile::{
    forecast::{PlannedAction, PlannedWrite, forecast},
    preview::{Assumptions, Preview},
};
use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, FieldPath},
};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, OperatorPlan, kinds};

use super::{PlanRequest, Planned, group::Instance};
use crate::{
    diff::{Error, LiveCluster, child_kinds},
    render::Picked,
};
use orkestra_loader::files::Compiled;

/// The most concurrent requests.
const SIDE_BY_SIDE: usize = 8;
/// The most rounds in which passes request further objects.
const ROUNDS: usize = 8;
/// More objects of a kind than this are looked up in a list of all of them, and not one by one.
const MOST_LOOKED_UP: usize = 100;

/// The input of all forecasts.
pub(crate) struct Survey<'a> {
    cluster: LiveCluster,
    request: &'a PlanRequest,
    calls: &'a BTreeMap<String, Node>,
}

/// A custom resource with what is known about it.
struct Subject {
    cr: Node,
    children: Vec<Node>,
}

type Forecast = Result<(Preview, Vec<PlannedWrite>), String>;

impl<'a> Survey<'a> {
    pub(crate) fn new(
        cluster: &Cluster,
        request: &'a PlanRequest,
        calls: &'a BTreeMap<String, Node>,
    ) -> Self {
        Self {
            cluster: LiveCluster::new(cluster.clone()),
            request,
            calls,
        }
    }

    /// Returns what a pass of the operator would do to each of its custom resources.
    pub(crate) async fn instances(
        &self,
        katalog: &Compiled,
        operator: &OperatorPlan,
        planned: &mut Planned,
    ) -> Result<Vec<Instance>, Error> {
        let mut subjects = self.subjects(operator).await?;
        planned.children += subjects.iter().map(|one| one.children.len()).sum::<usize>();
        let cross = self.cross(katalog, operator, &subjects).await?;
        let scaled = self.cluster.scaled(operator).await?;
        let picked = Picked { katalog, operator };
        let mut absent = BTreeSet::new();
        let mut forecasts = self.forecast(&picked, &subjects, &cross, &scaled);
        for _ in 1..ROUNDS {
            let asked = forecasts.iter().map(|one| match one {
                Ok((preview, _)) => preview.asked.iter().cloned().collect(),
                Err(_) => BTreeSet::new(),
            });
            let asked: Vec<BTreeSet<ChildKey>> = asked.collect();
            let all: BTreeSet<ChildKey> = asked.iter().flatten().cloned().collect();
            let new: BTreeSet<ChildKey> = all.difference(&absent).cloned().collect();
            if new.is_empty() {
                break;
            }
            let found = self.look_up(operator, &new).await?;
            absent.extend(new.into_iter().filter(|key| !found.contains_key(key)));
            for (subject, asked) in subjects.iter_mut().zip(&asked) {
                let objects = asked.iter().filter_map(|key| found.get(key));
                subject.children.extend(objects.cloned());
            }
            if found.is_empty() {
                break;
            }
            forecasts = self.forecast(&picked, &subjects, &cross, &scaled);
        }
        self.check_names(operator, &mut forecasts).await?;
        let mut instances = Vec::with_capacity(subjects.len());
        for (subject, forecast) in subjects.iter().zip(forecasts) {
            let name = name_of(operator, &subject.cr);
            match forecast {
                Ok((preview, writes)) => {
                    for failure in &preview.failures {
                        let path = FieldPath::parse(&failure.at);
                        let message = format!("{name}: {}", failure.message);
                        planned
                            .problems
                            .push(Diagnostic::error(Code::CannotRender, path, message));
                    }
                    instances.push(Instance::new(operator, &subject.cr, name, writes));
                }
                Err(why) => {
                    let message = format!("{name}: {why}");
                    let problem = Diagnostic::error(Code::CannotRender, FieldPath::root(), message);
                    planned.problems.push(problem);
                }
            }
        }
        Ok(instances)
    }

    /// Reads the custom resources of the operator, and their children: of the kinds that it declares, and of those of which they
    /// still have some.
    async fn subjects(&self, operator: &OperatorPlan) -> Result<Vec<Subject>, Error> {
        let namespace = self.request.namespace.as_deref();
        let crs = self.cluster.resources(operator, namespace).await?;
        let mut by_owner: BTreeMap<String, Vec<Node>> = BTreeMap::new();
        for kind in child_kinds(operator, &crs) {
            let served = self.cluster.kind(&kind).await?;
            for child in self
                .cluster
                .list(&served, None, names::LABEL_OWNER_UID)
                .await?
            {
                let owner = child.label(names::LABEL_OWNER_UID).unwrap_or_default();
                by_owner.entry(owner.to_owned()).or_default().push(child);
            }
        }
        let subject = |cr: Node| Subject {
            children: by_owner
                .remove(cr.meta_text("uid").unwrap_or_default())
                .unwrap_or_default(),
            cr,
        };
        Ok(crs.into_iter().map(subject).collect())
    }

    /// Returns the objects that `cross` may read.
    async fn cross(
        &self,
        katalog: &Compiled,
        operator: &OperatorPlan,
        subjects: &[Subject],
    ) -> Result<Vec<Node>, Error> {
        let mut all = Vec::new();
        if operator.cross.is_empty() {
            return Ok(all);
        }
        all.extend(subjects.iter().map(|one| one.cr.clone()));
        for other in &katalog.plan.operators {
            if other.name != operator.name {
                let served = self.cluster.kind(&other.resource).await?;
                all.extend(self.cluster.list(&served, None, "").await?);
            }
        }
        Ok(all)
    }

    /// Forecasts a pass over each subject.
    fn forecast(
        &self,
        picked: &Picked<'_>,
        subjects: &[Subject],
        cross: &[Node],
        scaled: &BTreeSet<ChildKey>,
    ) -> Vec<Forecast> {
        let scopes = picked.scopes();
        let one = |subject: &Subject| {
            let assumed = Assumptions {
                cr: subject.cr.clone(),
                children: &subject.children,
                cross,
                calls: self.calls,
                version: picked.version(),
                scopes: &scopes,
                now: self.request.now,
                seen_as: None,
            };
            forecast(picked.operator, assumed, scaled).map_err(|why| why.to_string())
        };
        subjects.iter().map(one).collect()
    }

    /// Turns creations into refusals or adoptions where an object of that name exists.
    async fn check_names(
        &self,
        operator: &OperatorPlan,
        forecasts: &mut [Forecast],
    ) -> Result<(), Error> {
        let mut created = BTreeSet::new();
        for (_, writes) in forecasts.iter().flatten() {
            let new = writes
                .iter()
                .filter(|one| one.action == PlannedAction::Create);
            created.extend(new.map(|one| one.key.clone()));
        }
        let found = self.look_up(operator, &created).await?;
        for (_, writes) in forecasts.iter_mut().flatten() {
            for write in writes
                .iter_mut()
                .filter(|one| one.action == PlannedAction::Create)
            {
                if let Some(object) = found.get(&write.key) {
                    write.action =
                        PlannedAction::of_stranger(operator, write.declared.as_deref(), object);
                }
            }
        }
        Ok(())
    }

    /// Returns the objects of those that exist.
    async fn look_up(
        &self,
        operator: &OperatorPlan,
        wanted: &BTreeSet<ChildKey>,
    ) -> Result<BTreeMap<ChildKey, Node>, Error> {
        let mut found = BTreeMap::new();
        let mut by_kind: BTreeMap<&GroupKind, Vec<&ChildKey>> = BTreeMap::new();
        for key in wanted {
            by_kind.entry(&key.kind).or_default().push(key);
        }
        for (kind, keys) in by_kind {
            if keys.len() > MOST_LOOKED_UP {
                let known = operator.kinds().find(|known| known.group_kind() == *kind);
                let known = known.cloned();
                let resource =
                    known.unwrap_or_else(|| kinds::resource(&kind.group, "v1", &kind.kind));
                let served = self.cluster.kind(&resource).await?;
                for object in self.cluster.list(&served, None, "").await? {
                    let key = ChildKey {
                        kind: kind.clone(),
                        object: ObjectKey::of(&object),
                    };
                    if wanted.contains(&key) {
                        found.insert(key, object);
                    }
                }
                continue;
            }
            let gets = keys.into_iter().map(async |key| {
                let object = self.cluster.object(operator, key).await?;
                Ok::<_, Error>(object.map(|object| (key.clone(), object)))
            });
            let gets = stream::iter(gets).buffered(SIDE_BY_SIDE);
            let all: Vec<Option<(ChildKey, Node)>> = gets.try_collect().await?;
            found.extend(all.into_iter().flatten());
        }
        Ok(found)
    }
}

/// Returns the name of a custom resource for messages: `Shop default/north`.
fn name_of(operator: &OperatorPlan, cr: &Node) -> String {
    format!("{} {}", operator.resource.kind, ObjectKey::of(cr))
}
