//! A pass without a cluster: its results for a custom resource, from assumed inputs.
//!
//! ```text
//!  custom resource, live children ── assume ──► Observed ── step ──► Cycle ──► objects, and why others are left out
//!                                                  │ with the created objects      │
//!                                                  └──────────── status ◄──────────┘
//! ```
//!
//! The pass is the same as on a cluster; only its inputs are assumed.

pub(crate) mod assume;
mod condition_text;
mod left_out;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

pub use left_out::LeftOut;

use self::assume::Owner;
use super::{
    children::DeclaredOrder,
    crd_status::CrdStatus,
    cycle::{Cycle, Intent},
    data_source::Given,
    failure::Failure,
    metadata::{Malformed, group_kind},
    record::{ChildRecord, CrRecord, Observed, ObservedChild, kept_paths},
    render::Setting,
    sources::{Answer, Answers, Read},
    status::{gated, reported, status, written_paths},
    step::{ServedScopes, decided},
    verdict::{Action, Done, Executed},
};
use orkestra_object::value::{Map, Node, set};
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan, definitions::CrdVersion};
use orkestra_template::Entropy;

/// Converts an object into another one.
pub type Change = fn(&Node) -> Node;

/// The assumed environment.
#[derive(Clone, Debug)]
pub struct Assumptions<'a> {
    /// The custom resource, with `apiVersion`, `kind` and `metadata.name`.
    pub cr: Node,
    /// Existing objects: children of the custom resource, and objects that it reads. Its children are those that an owner
    /// reference, a label or an annotation of ours assigns to it, and those without such metadata that have the kind and the
    /// name of a declared child.
    pub children: &'a [Node],
    /// Custom resources of other operators.
    pub cross: &'a [Node],
    /// The version of its CRD; without it no defaults are set and its status accepts anything.
    pub version: Option<&'a CrdVersion>,
    /// Answers to calls, by the call's name; a call without one fails.
    pub calls: &'a BTreeMap<String, Node>,
    /// Whether kinds are namespaced, in addition to what the plan knows; other kinds are assumed to be.
    pub scopes: &'a BTreeMap<GroupKind, bool>,
    /// The present time.
    pub now: Timestamp,
    /// Converts created objects for the templates of the status; none leaves them unchanged. It reveals which fields depend
    /// on which objects.
    pub seen_as: Option<Change>,
}

/// The result of a pass.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The custom resource as the pass sees it: with defaults, normalized and completed, and with the status that the pass
    /// would write.
    pub cr: Node,
    /// The objects that would be applied or created, in full, in the order of their creation.
    pub objects: Vec<Node>,
    /// Declared objects that are not among them, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Live children that would be deleted.
    pub deleted: Vec<ChildKey>,
    /// Decisions that failed.
    pub failures: Vec<Failure>,
    /// Kinds that were assumed to be namespaced because that is unknown.
    pub guessed: Vec<GroupKind>,
    /// Objects that the pass read and that are not among the given ones; it treated them as absent.
    pub asked: BTreeSet<ChildKey>,
}

/// Runs one pass over the assumed inputs.
///
/// Equal input gives equal output: random notes draw from a seed derived from the custom resource's kind, namespace and name.
/// If it has no uid, fields that contain the uid are omitted from the objects: owner references, the owner's label, the hash.
///
/// # Errors
/// [`Malformed`] if the custom resource or a child has no name, kind or version.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use orkestra_compiler::{compile, scope::Library};
/// use orkestra_plan::{definitions::Schemas, KatalogRef};
/// use orkestra_language::{document::read_stream};
/// use orkestra_engine::{reconcile::preview::{Assumptions, preview}};
/// use orkestra_object::value::Node;
///
/// let text = "
/// apiVersion: orkestra.orkspace.io/v1
/// kind: Katalog
/// metadata: { name: ponds }
/// spec:
///   crds:
///     pond:
///       apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
///       operatorBox:
///         onReconcile:
///           configMaps: [{ data: { depth: '{{ .spec.depth }}' } }]
/// ";
/// let (documents, _) = read_stream("katalog.yaml", text)?;
/// let reference = KatalogRef::new("default".to_owned(), "ponds".to_owned());
/// let spec = &documents.katalogs[0].spec;
/// let (plan, _) = compile::katalog(&reference, spec, &Schemas::default(), &Library::default())?;
/// let plan = &plan.operators[0];
/// let pond = Node::from(&serde_json::json!({
///     "apiVersion": "water.example/v1", "kind": "Pond",
///     "metadata": { "name": "north", "namespace": "default", "uid": "u1" }, "spec": { "depth": 3 },
/// }));
/// let assumed = Assumptions {
///     cr: pond,
///     children: &[],
///     cross: &[],
///     version: None,
///     calls: &BTreeMap::new(),
///     scopes: &BTreeMap::new(),
///     now: jiff::Timestamp::UNIX_EPOCH,
///     seen_as: None,
/// };
/// let preview = preview(plan, assumed)?;
/// assert_eq!(preview.objects[0].to_json()["data"]["depth"], "3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn preview(plan: &OperatorPlan, assumed: Assumptions<'_>) -> Result<Preview, Malformed> {
    passed(plan, assumed).map(|(preview, ..)| preview)
}

/// Runs the pass; returns its result, what it saw and what it decided.
// Over 60 lines: inputs and results, a line for each.
pub(crate) fn passed(
    plan: &OperatorPlan,
    assumed: Assumptions<'_>,
) -> Result<(Preview, Observed, Cycle), Malformed> {
    let (scopes, guessed) = scopes(plan, assumed.scopes);
    let namespaced = plan.resource.namespaced.unwrap_or(true);
    let mut cr = assumed.cr;
    if let Some(version) = assumed.version {
        version.set_defaults(&mut cr);
    }
    let nameless = assume::custom_resource(&mut cr, namespaced, assumed.now);
    let crd = CrdStatus::assumed(namespaced, assumed.version);
    let paths = kept_paths(&plan.reads.cr, written_paths(plan).into_iter());
    let record = Arc::new(CrRecord::read(&cr, &paths)?);
    let (children, unmarked) = children(plan, assumed.children, &record, nameless)?;
    let mut observed = Observed {
        inventory: record.inventory.clone(),
        orphans: Vec::new(),
        children,
        unseen: BTreeSet::new(),
        reported: reported(plan, &crd, &record),
        answers: Answers::new(),
        cr: record,
    };
    let entropy = assume::entropy(plan, &observed.cr.id.key);
    let given = (assumed.children, assumed.cross, assumed.calls);
    let mut asked = BTreeSet::new();
    let mut decide = |observed: &mut Observed| {
        decide(
            plan,
            &scopes,
            (observed, &mut asked),
            (assumed.now, given),
            &entropy,
        )
    };
    let mut cycle = decide(&mut observed);
    let declared = declared(plan, &observed, &cycle);
    let is_foreign =
        |key: &ChildKey| unmarked.contains(key) && !declared.has(&key.kind, &key.object.name);
    if observed.children.iter().any(|child| is_foreign(&child.key)) {
        observed.children.retain(|child| !is_foreign(&child.key));
        cycle = decide(&mut observed);
    }
    let left_out = left_out::left_out(plan, &observed, &cycle, assumed.now);
    let (after, mut executed) = done(plan, &observed, &cycle, (assumed.now, assumed.seen_as))?;
    let now = assumed.now;
    let patch = match cycle.held_back {
        Some(held) => gated(plan, &crd, &observed, (held, cycle.unmet.as_deref()), now),
        None => status(plan, &crd, &after, &cycle.sources, &mut executed, now),
    };
    write(&mut cr, &cycle, patch.as_ref().map(|patch| &patch.body));
    assume::forget(&mut cr, nameless);
    let preview = Preview {
        cr,
        objects: objects(&cycle, nameless),
        left_out,
        deleted: deleted(&cycle),
        failures: executed.failures,
        guessed,
        asked,
    };
    Ok((preview, observed, cycle))
}

/// Writes into the custom resource what the pass changes in it, and its status.
fn write(cr: &mut Node, cycle: &Cycle, status: Option<&Node>) {
    for (path, value) in &cycle.sources.prepared.changes {
        set(cr, path, value.clone());
    }
    if let Some(status) = status {
        merge(cr, status);
    }
}

/// Returns the children that the pass deletes.
fn deleted(cycle: &Cycle) -> Vec<ChildKey> {
    let deleted = cycle.intents.iter().filter_map(|intent| match intent {
        Intent::Delete(deletion) => Some(deletion.key.clone()),
        _ => None,
    });
    deleted.collect()
}

/// Returns the objects that the pass writes; of a custom resource without a uid, without the fields that contain it.
fn objects(cycle: &Cycle, nameless: bool) -> Vec<Node> {
    let objects = cycle.intents.iter().filter_map(|intent| match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) => Some(rendered.object.clone()),
        Intent::Keep(_) | Intent::Unlink(_) | Intent::Delete(_) => None,
    });
    let mut objects: Vec<Node> = objects.collect();
    for object in &mut objects {
        assume::unmark(object, nameless);
    }
    objects
}

/// Returns the given objects, sorted, and the keys of those without a known owner.
fn children(
    plan: &OperatorPlan,
    given: &[Node],
    cr: &CrRecord,
    nameless: bool,
) -> Result<(Vec<ObservedChild>, BTreeSet<ChildKey>), Malformed> {
    let (mut children, mut unmarked) = (Vec::new(), BTreeSet::new());
    for child in given {
        let owner = assume::owner(child, plan, cr, nameless);
        let (is_own, long_ago) = (owner != Owner::Other, Timestamp::UNIX_EPOCH);
        let child = assume::child(child.clone(), plan, cr, is_own, long_ago)?;
        let child = observe(plan, &child)?;
        if owner == Owner::Unknown {
            unmarked.insert(child.key.clone());
        }
        children.push(child);
    }
    children.sort_by(|a, b| a.key.cmp(&b.key));
    Ok((children, unmarked))
}

/// Returns the names that entries declare, with open or closed gates.
fn declared(plan: &OperatorPlan, observed: &Observed, cycle: &Cycle) -> DeclaredOrder {
    let setting = Setting::of(plan, observed);
    DeclaredOrder::of(plan, observed, setting.frame(&cycle.sources))
}

/// Children, custom resources of other operators, and answers to calls.
type PreviewData<'a> = (&'a [Node], &'a [Node], &'a BTreeMap<String, Node>);

/// Runs the pass; objects it reads beyond the assumed ones are absent.
fn decide(
    plan: &OperatorPlan,
    scopes: &dyn ServedScopes,
    (observed, asked): (&mut Observed, &mut BTreeSet<ChildKey>),
    (now, (objects, others, calls)): (Timestamp, PreviewData<'_>),
    entropy: &Entropy,
) -> Cycle {
    let others: Vec<&Node> = others.iter().collect();
    decided(plan, scopes, observed, (now, entropy), |read| {
        let given = Given {
            plan,
            others: &others,
        };
        let answer = assume::answer(read, (objects, calls), given);
        if let (Read::Object(key), Answer::Absent) = (read, &answer) {
            asked.insert(key.clone());
        }
        answer
    })
}

/// Returns the scopes of the declared kinds, and the kinds whose scope was guessed.
pub(crate) fn scopes(
    plan: &OperatorPlan,
    known: &BTreeMap<GroupKind, bool>,
) -> (BTreeMap<GroupKind, bool>, Vec<GroupKind>) {
    let (mut scopes, mut guessed) = (BTreeMap::new(), Vec::new());
    for declared in plan.kinds() {
        let kind = declared.group_kind();
        let namespaced = declared.namespaced.or_else(|| known.get(&kind).copied());
        if namespaced.is_none() && !guessed.contains(&kind) {
            guessed.push(kind.clone());
        }
        scopes.insert(kind, namespaced.unwrap_or(true));
    }
    (scopes, guessed)
}

fn observe(plan: &OperatorPlan, object: &Node) -> Result<ObservedChild, Malformed> {
    let kind = group_kind(object)?;
    let reads = plan
        .reads
        .children
        .get(&kind)
        .map_or(&[][..], Vec::as_slice);
    let record = Arc::new(ChildRecord::read(&kind, object, reads)?);
    Ok(ObservedChild {
        key: ChildKey {
            kind,
            object: record.id.key.clone(),
        },
        record,
    })
}

/// Returns the state after the cycle, and what was done: all writes succeed immediately, and no object becomes ready.
fn done(
    plan: &OperatorPlan,
    before: &Observed,
    cycle: &Cycle,
    (now, seen_as): (Timestamp, Option<Change>),
) -> Result<(Observed, Executed), Malformed> {
    let mut after = before.clone();
    let mut executed = Executed {
        failures: cycle.failures.clone(),
        ..Executed::default()
    };
    for intent in &cycle.intents {
        let (key, action) = match intent {
            Intent::Keep(key) | Intent::Unlink(key) => (key, Action::Unchanged),
            Intent::Delete(deletion) => {
                after.children.retain(|child| child.key != deletion.key);
                (&deletion.key, Action::Deleted)
            }
            Intent::Apply(rendered) | Intent::Create(rendered) => {
                if before.child(&rendered.key).is_some() {
                    (&rendered.key, Action::Unchanged)
                } else {
                    let object = match seen_as {
                        Some(change) => change(&rendered.object),
                        None => rendered.object.clone(),
                    };
                    let object = assume::child(object, plan, &before.cr, true, now)?;
                    after.children.push(observe(plan, &object)?);
                    (&rendered.key, Action::Created)
                }
            }
        };
        executed.done.push(Done {
            key: key.clone(),
            action,
        });
    }
    after.children.sort_by(|a, b| a.key.cmp(&b.key));
    Ok((after, executed))
}

/// Applies a JSON merge patch. Source: RFC 7396.
pub(crate) fn merge(node: &mut Node, patch: &Node) {
    let Node::Map(changes) = patch else {
        *node = patch.clone();
        return;
    };
    if !matches!(node, Node::Map(_)) {
        *node = Node::Map(Map::default());
    }
    let Node::Map(map) = node else { return };
    for (key, change) in changes.iter() {
        if *change == Node::Null {
            map.remove(key);
        } else {
            merge(map.entry(key), change);
        }
    }
}
