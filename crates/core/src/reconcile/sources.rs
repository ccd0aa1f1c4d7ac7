//! What a pass reads beside the custom resource and its children: it asks, and is called again with the answers.

use std::{collections::BTreeMap, sync::Arc};

use super::record::Observed;
use crate::{
    plan::{ChildKey, Number, OperatorPlan},
    template::Data,
    value::{Key, Node, Path, Step},
};

/// Something that a pass must know and that its records do not tell. Equal reads have one answer in a pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object that somebody else made, whole: what a child copies or refers to.
    Object(ChildKey),
}

/// What came of a read. It is kept for the pass, whatever it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The thing itself.
    Ready(Arc<Node>),
    /// There is none.
    Absent,
    /// It cannot be told whether there is one: why.
    Unavailable(Box<str>),
}

/// How often a pass asks at most; what it asks for then is unavailable.
pub const ROUNDS: usize = 8;

/// The answers of a pass so far.
pub type Answers = BTreeMap<Read, Answer>;

/// What templates and conditions of a pass see beside the custom resource's own fields and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    /// The custom resource as templates see it, where that is not as it was read: normalized and completed.
    pub cr: Option<Node>,
    /// What cannot be read at the moment: the path from the root, such as `cross.db`, and why. A condition that reads it
    /// neither creates nor deletes.
    pub unavailable: Vec<(Path, Box<str>)>,
}

impl Sources {
    /// What a pass of `plan` sees.
    ///
    /// # Errors
    /// The reads that are not answered yet.
    pub(super) fn of(plan: &OperatorPlan, observed: &Observed) -> Result<Self, Vec<Read>> {
        Ok(Self {
            cr: None,
            unavailable: unseen_children(plan, observed),
        })
    }

    /// The roots of the templates, without `.children`.
    pub(super) fn data<'a>(&'a self, observed: &'a Observed) -> Data<'a> {
        Data::of(self.cr.as_ref().unwrap_or(&observed.cr.view))
    }

    /// Why one of `paths` cannot be read, if one of them cannot.
    pub(super) fn why_not<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Option<String> {
        if self.unavailable.is_empty() {
            return None;
        }
        paths.into_iter().find_map(|path| {
            let touches =
                |(gone, _): &&(Path, Box<str>)| path.starts_with(gone) || gone.starts_with(path);
            let (gone, why) = self.unavailable.iter().find(touches)?;
            Some(format!("`.{gone}` cannot be read: {why}"))
        })
    }
}

/// Names below `.children` of kinds that cannot be looked at.
fn unseen_children(plan: &OperatorPlan, observed: &Observed) -> Vec<(Path, Box<str>)> {
    let unseen = plan
        .children_names
        .iter()
        .filter(|alias| observed.unseen.contains(&alias.kind));
    let path = |name: &Key| {
        Path::from_iter([
            Step::Field(Key::from("children")),
            Step::Field(name.clone()),
        ])
    };
    unseen
        .map(|alias| {
            let many = alias.number == Number::Plural;
            let what = if many { "the objects" } else { "the object" };
            let why = format!("{what} of kind {} cannot be looked at", alias.kind);
            (path(&alias.name), why.into())
        })
        .collect()
}
