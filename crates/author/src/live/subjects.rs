//! Custom resources with the objects that their passes read: one list for each kind of child, and then, in rounds, what else the passes
//! ask for.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan, kinds};

use super::{Error, LiveCluster, child_kinds};

/// The most concurrent requests.
const SIDE_BY_SIDE: usize = 8;
/// The most rounds in which passes request further objects.
const ROUNDS: usize = 8;
/// More objects of a kind than this are looked up in a list of all of them, and not one by one.
const MOST_LOOKED_UP: usize = 100;

/// A custom resource with what is known about it.
pub(crate) struct Subject {
    pub(crate) cr: Node,
    /// Its children, and objects that its pass reads.
    pub(crate) children: Vec<Node>,
}

impl LiveCluster {
    /// Reads the children of the custom resources: of the kinds that the operator declares, and of those of which they still have some.
    pub(crate) async fn with_children(
        &self,
        operator: &OperatorPlan,
        crs: Vec<Node>,
    ) -> Result<Vec<Subject>, Error> {
        let label = match &crs[..] {
            [cr] => {
                let uid = cr.meta_text("uid").unwrap_or_default();
                format!("{}={uid}", names::LABEL_OWNER_UID)
            }
            _ => names::LABEL_OWNER_UID.to_owned(),
        };
        let mut by_owner: BTreeMap<String, Vec<Node>> = BTreeMap::new();
        if crs.iter().any(|cr| cr.meta_text("uid").is_some()) {
            for kind in child_kinds(operator, &crs) {
                let served = self.kind(&kind).await?;
                for child in self.list(&served, None, &label).await? {
                    let owner = child.label(names::LABEL_OWNER_UID).unwrap_or_default();
                    by_owner.entry(owner.to_owned()).or_default().push(child);
                }
            }
        }
        let subject = |cr: Node| {
            let children = cr.meta_text("uid").and_then(|uid| by_owner.remove(uid));
            Subject {
                children: children.unwrap_or_default(),
                cr,
            }
        };
        Ok(crs.into_iter().map(subject).collect())
    }

    /// Runs a pass over each custom resource, and again with the objects that passes ask for, until they ask for nothing more. Returns
    /// the last passes.
    pub(crate) async fn settled<T>(
        &self,
        operator: &OperatorPlan,
        subjects: &mut [Subject],
        run: impl Fn(usize, &Subject) -> T,
        asked: impl Fn(&T) -> BTreeSet<ChildKey>,
    ) -> Result<Vec<T>, Error> {
        let all = |subjects: &[Subject]| -> Vec<T> {
            let passes = subjects.iter().enumerate();
            passes.map(|(index, subject)| run(index, subject)).collect()
        };
        let mut passes = all(subjects);
        let mut known: BTreeSet<ChildKey> = BTreeSet::new();
        for _ in 1..ROUNDS {
            let asked: Vec<BTreeSet<ChildKey>> = passes.iter().map(&asked).collect();
            let new: BTreeSet<ChildKey> = asked.iter().flatten().cloned().collect();
            let new: BTreeSet<ChildKey> = new.difference(&known).cloned().collect();
            let found = self.look_up(operator, &new).await?;
            known.extend(new);
            for (subject, asked) in subjects.iter_mut().zip(&asked) {
                let objects = asked.iter().filter_map(|key| found.get(key));
                subject.children.extend(objects.cloned());
            }
            if found.is_empty() {
                break;
            }
            passes = all(subjects);
        }
        Ok(passes)
    }

    /// Returns the objects of those that exist.
    pub(crate) async fn look_up(
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
                let served = self.kind(&resource).await?;
                for object in self.list(&served, None, "").await? {
                    if let Some(key) = ChildKey::of(&object).filter(|key| wanted.contains(key)) {
                        found.insert(key, object);
                    }
                }
                continue;
            }
            let gets = keys.into_iter().map(async |key| {
                let object = self.object(operator, key).await?;
                Ok::<_, Error>(object.map(|object| (key.clone(), object)))
            });
            let gets = stream::iter(gets).buffered(SIDE_BY_SIDE);
            let all: Vec<Option<(ChildKey, Node)>> = gets.try_collect().await?;
            found.extend(all.into_iter().flatten());
        }
        Ok(found)
    }
}
