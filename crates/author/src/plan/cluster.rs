//! Forecasts a pass over each custom resource.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    forecast::{PlannedAction, PlannedWrite, forecast},
    preview::{Assumptions, Preview},
};
use orkestra_language::diagnostics::{Code, Diagnostic, FieldPath};
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, ObjectKey, OperatorPlan};

use super::{Planned, group::Instance};
use crate::{
    live::{Error, LiveCluster, Subject},
    render::Picked,
};
use orkestra_loader::files::Compiled;

/// The input of all forecasts.
pub(crate) struct Survey<'a> {
    pub(crate) cluster: LiveCluster,
    /// The custom resources.
    pub(crate) of: Selection<'a>,
    /// Answers to external calls and hooks.
    pub(crate) calls: &'a BTreeMap<String, Node>,
    /// The present time for templates.
    pub(crate) now: Timestamp,
}

/// Custom resources of an operator.
#[derive(Clone, Copy)]
pub(crate) enum Selection<'a> {
    /// All of them, in this namespace or in all.
    Namespace(Option<&'a str>),
    /// The one of this key.
    One(&'a ObjectKey),
}

/// Custom resources, everything that their passes read, and the passes.
pub(crate) struct Surveyed {
    pub(crate) subjects: Vec<Subject>,
    /// The number of their children.
    pub(crate) children: usize,
    /// Custom resources of other operators.
    pub(crate) cross: Vec<Node>,
    /// A pass over each subject.
    pub(crate) forecasts: Vec<Forecast>,
}

/// A pass, and what it would write.
pub(crate) type Forecast = Result<(Preview, Vec<PlannedWrite>), String>;

impl Survey<'_> {
    /// Returns what a pass of the operator would do to each of its custom resources.
    pub(crate) async fn instances(
        &self,
        katalog: &Compiled,
        operator: &OperatorPlan,
        planned: &mut Planned,
    ) -> Result<Vec<Instance>, Error> {
        let surveyed = self.survey(&Picked { katalog, operator }).await?;
        planned.children += surveyed.children;
        let mut instances = Vec::with_capacity(surveyed.subjects.len());
        for (subject, forecast) in surveyed.subjects.iter().zip(surveyed.forecasts) {
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

    /// Reads the custom resources and what their passes read, and runs the passes.
    pub(crate) async fn survey(&self, picked: &Picked<'_>) -> Result<Surveyed, Error> {
        let operator = picked.operator;
        let crs = match self.of {
            Selection::Namespace(namespace) => self.cluster.resources(operator, namespace).await?,
            Selection::One(key) => self
                .cluster
                .resource(operator, key)
                .await?
                .into_iter()
                .collect(),
        };
        let mut subjects = self.cluster.with_children(operator, crs).await?;
        let children = subjects.iter().map(|one| one.children.len()).sum();
        let cross = self.cross(picked.katalog, operator, &subjects).await?;
        let scaled = self.cluster.scaled(operator).await?;
        let scopes = picked.scopes();
        let run = |_: usize, subject: &Subject| -> Forecast {
            let assumed = self.assumed(picked, subject, &cross, &scopes);
            forecast(operator, assumed, &scaled).map_err(|why| why.to_string())
        };
        let asked = |one: &Forecast| match one {
            Ok((preview, _)) => preview.asked.clone(),
            Err(_) => BTreeSet::new(),
        };
        let settling = self.cluster.settled(operator, &mut subjects, run, asked);
        let mut forecasts = settling.await?;
        self.check_names(operator, &mut forecasts).await?;
        Ok(Surveyed {
            subjects,
            children,
            cross,
            forecasts,
        })
    }

    /// Returns what a pass over a custom resource assumes.
    pub(crate) fn assumed<'a>(
        &'a self,
        picked: &Picked<'a>,
        subject: &'a Subject,
        cross: &'a [Node],
        scopes: &'a BTreeMap<GroupKind, bool>,
    ) -> Assumptions<'a> {
        Assumptions {
            cr: subject.cr.clone(),
            children: &subject.children,
            cross,
            calls: self.calls,
            version: picked.version(),
            scopes,
            now: self.now,
            seen_as: None,
        }
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
        let found = self.cluster.look_up(operator, &created).await?;
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
}

/// Returns the name of a custom resource for messages: `Shop default/north`.
fn name_of(operator: &OperatorPlan, cr: &Node) -> String {
    format!("{} {}", operator.resource.kind, ObjectKey::of(cr))
}
