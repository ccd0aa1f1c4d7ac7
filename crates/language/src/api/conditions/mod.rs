//! Conditions as kstatus reads them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use orkestra_object::value::{Key, Node};

/// Everything is as declared. Always present.
pub const READY: &str = "Ready";
/// The controller is working towards the declared state. Present only while true.
pub const RECONCILING: &str = "Reconciling";
/// Nothing more happens until the input changes. Present only while true.
pub const STALLED: &str = "Stalled";
/// Another manager applies a field that we declare. Present only while true.
pub const FIELD_CONFLICT: &str = "FieldConflict";

/// An autoscaler sets the replicas of a child that the Katalog declares. Present only while true.
pub const AUTOSCALED: &str = "Autoscaled";

/// Fields of the spec are normalized; the reason says whether that is stored. Present only while true.
pub const NORMALIZED: &str = "Normalized";
/// Rules complete the resource in memory. Present only while true.
pub const MUTATED: &str = "Mutated";
/// The resource does not keep a rule that only warns. Present only while true.
pub const VALIDATION_WARNING: &str = "ValidationWarning";

/// A gate of `preReconcile` is closed, so no pass runs. Present only while true.
pub const GATED: &str = "Gated";

/// No pass runs, because the Katalog or the custom resource is suspended. Present only while true.
pub const SUSPENDED: &str = "Suspended";

/// The conditions of `runtime.cleanup` hold. Present only while true; its transition time is the start of `deleteAfter`.
pub const CLEANUP_PENDING: &str = "CleanupPending";

/// Conditions that are there only while they are true.
const ABNORMAL_TRUE: [&str; 13] = [
    RECONCILING,
    STALLED,
    DEGRADED,
    INSTANCES_FAILING,
    NOT_ENFORCED,
    FIELD_CONFLICT,
    AUTOSCALED,
    NORMALIZED,
    MUTATED,
    VALIDATION_WARNING,
    GATED,
    SUSPENDED,
    CLEANUP_PENDING,
];

/// Operators of the Katalog are degraded. Present only while true.
pub const DEGRADED: &str = "Degraded";

/// Custom resources that were ready under an earlier revision fail under the one in force. Present only while true.
pub const INSTANCES_FAILING: &str = "InstancesFailing";

/// Rules, protections or conversions that the Katalog declares are not in place at the API server. Present only while true.
pub const NOT_ENFORCED: &str = "NotEnforced";

pub use orkestra_object::message::{MESSAGE_BYTES, cut, cut_message};

/// Longest note of an Event, in bytes. Source: Kubernetes, validation of events.k8s.io/v1.
pub const EVENT_BYTES: usize = 1024;

/// Longest reason of an Event, in bytes. Source: Kubernetes, validation of events.k8s.io/v1.
pub const EVENT_REASON_BYTES: usize = 128;

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is unknown.
    Unknown,
}

impl ConditionStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One condition of a Katalog or a custom resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// Why, as one word.
    #[serde(default)]
    pub reason: String,
    /// A human-readable message.
    #[serde(default)]
    pub message: String,
    /// The last time that `status` changed, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// The generation that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Fields that other writers of conditions add. They are preserved.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Node>,
}

impl Condition {
    /// The names of its own fields.
    pub const FIELDS: [&'static str; 6] = [
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
        "observedGeneration",
    ];

    /// Reads one, as serde does; none where the node is no condition.
    pub fn read(node: &Node) -> Option<Self> {
        let text = |field: &str| match node.get(field) {
            None => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        let word = node.get("status")?.as_str()?;
        let mut statuses = ConditionStatus::ALL.into_iter();
        let set = |field: &str| node.get(field).filter(|value| **value != Node::Null);
        let last_transition_time = match set("lastTransitionTime") {
            None => None,
            Some(time) => Some(time.as_str()?.to_owned()),
        };
        let observed_generation = match set("observedGeneration") {
            None => None,
            Some(generation) => Some(generation.as_i64()?),
        };
        let fields = node.as_map()?.iter();
        let other = fields.filter(|(name, _)| !Self::FIELDS.contains(&name.as_str()));
        Some(Self {
            type_: node.get("type")?.as_str()?.to_owned(),
            status: statuses.find(|status| status.as_str() == word)?,
            reason: text("reason")?,
            message: text("message")?,
            last_transition_time,
            observed_generation,
            other: other
                .map(|(name, value)| (name.as_str().to_owned(), value.clone()))
                .collect(),
        })
    }

    /// Its fields, as serde writes them.
    pub fn fields(&self) -> impl Iterator<Item = (Key, Node)> {
        let own = [
            Some(Node::from(self.type_.as_str())),
            Some(Node::from(self.status.as_str())),
            Some(Node::from(self.reason.as_str())),
            Some(Node::from(self.message.as_str())),
            self.last_transition_time.as_deref().map(Node::from),
            self.observed_generation.map(Node::Int),
        ];
        let own = Self::FIELDS.into_iter().zip(own);
        let other = self.other.iter();
        own.filter_map(|(name, value)| Some((Key::from(name), value?)))
            .chain(other.map(|(name, value)| (Key::from(&**name), value.clone())))
    }

    /// A condition without a time: [`merge`] sets it. A message that is too long is cut.
    pub fn new(type_: &str, status: ConditionStatus, reason: &str, message: &str) -> Self {
        Condition {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: cut_message(message),
            last_transition_time: None,
            observed_generation: None,
            other: BTreeMap::new(),
        }
    }

    /// The same condition, about `generation`.
    #[must_use]
    pub fn observed(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// What several things have to say in one message of at most so many bytes: all of it where that fits. Where not, each
/// has the same share, and those that come after the last that fits are counted.
pub fn fit(lines: &[String], bytes: usize) -> String {
    let whole = lines.join(SEPARATOR);
    if whole.len() <= bytes {
        return whole;
    }
    let shown = (bytes / SHARE).clamp(1, lines.len());
    let rest = match lines.len() - shown {
        0 => String::new(),
        more => format!("{SEPARATOR}and {more} more"),
    };
    let room = bytes.saturating_sub(rest.len() + SEPARATOR.len() * (shown - 1));
    // The shortest lines first: the bytes of their share that they do not use are available to the others.
    let mut order: Vec<usize> = (0..shown).collect();
    order.sort_by_key(|index| lines[*index].len());
    let (mut left, mut shares) = (room, vec![0; shown]);
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = lines[index].len().min(left / (shown - done));
        left -= shares[index];
    }
    let cut = lines
        .iter()
        .zip(&shares)
        .map(|(line, share)| cut(line, *share));
    cut.collect::<Vec<_>>().join(SEPARATOR) + &rest
}

/// Between the parts of a message.
const SEPARATOR: &str = "; ";
/// Bytes that a part of a message has at least, to say what it is about.
const SHARE: usize = 128;

/// The conditions to write, from those that are there and those that are wanted.
///
/// - `lastTransitionTime` becomes `now` (whole seconds) where `status` changes, and stays elsewhere.
/// - Conditions of other writers stay, in their place and as they are.
/// - Conditions that are there only while they are true go when they are not wanted or wanted as not true.
/// - New conditions come last, in the order they are wanted.
///
/// Source: kstatus (abnormal-true conditions), Kubernetes API conventions (times).
pub fn merge(existing: &[Condition], wanted: &[Condition], now: jiff::Timestamp) -> Vec<Condition> {
    let is_wanted = |c: &&Condition| c.status == ConditionStatus::True || !is_abnormal(&c.type_);
    let mut merged: Vec<Condition> = Vec::with_capacity(existing.len() + wanted.len());
    for old in existing {
        if merged.iter().any(|done| done.type_ == old.type_) {
            continue;
        }
        match wanted
            .iter()
            .filter(is_wanted)
            .find(|new| new.type_ == old.type_)
        {
            Some(new) => merged.push(stamped(new, Some(old), now)),
            None if is_abnormal(&old.type_) => {}
            None => merged.push(old.clone()),
        }
    }
    for new in wanted.iter().filter(is_wanted) {
        if !merged.iter().any(|done| done.type_ == new.type_) {
            merged.push(stamped(new, None, now));
        }
    }
    merged
}

fn is_abnormal(type_: &str) -> bool {
    ABNORMAL_TRUE.contains(&type_)
}

fn stamped(new: &Condition, old: Option<&Condition>, now: jiff::Timestamp) -> Condition {
    let mut condition = new.clone();
    condition.message = cut_message(&condition.message);
    let kept = old.filter(|old| old.status == new.status);
    condition.last_transition_time = kept
        .and_then(|old| old.last_transition_time.clone())
        .or_else(|| Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    condition
}

#[cfg(test)]
mod tests;
