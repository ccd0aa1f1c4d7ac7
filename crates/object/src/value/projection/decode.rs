//! Decodes partly unreadable objects: the other parts are read, and the tree marks the unreadable ones.
//!
//! ```text
//!  text ── read ── whole ──────────────────────────────► tree
//!            │ fails
//!            └──► its fields, one by one ── each read ─► tree of the rest, marked with a Fault for each failure
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeSeed as _;
use smallvec::SmallVec;

use super::{Branch, Parts, Projection};
use crate::value::{
    Cause, Fault, Key, Map, Node, Path, PathStep,
    node::serde::{USUAL, list_of},
    scan,
};

/// The depth to which an unreadable part is located if everything is kept: to the fields of an entry of `metadata.managedFields`.
const LEVELS: usize = 4;

impl Projection {
    /// Decodes one JSON object. If [`Projection::read`] fails, the tree has the readable parts, and [`Fault::all_of`] lists the
    /// others.
    ///
    /// A duplicate key makes only its own value unreadable. A truncated text is read up to its end. A projection that keeps everything
    /// locates unreadable parts down to a few levels.
    pub fn decode(&self, json: &[u8]) -> Node {
        let levels = if self.0.0.is_none() { LEVELS } else { 0 };
        if let Ok(tree) = self.read(json) {
            return tree;
        }
        let mut reader = Reader {
            faults: Vec::new(),
            path: Vec::new(),
        };
        let tree = reader.part(&self.0, json, levels);
        let mut tree = tree.unwrap_or_default();
        Fault::mark(&mut tree, &reader.faults);
        tree
    }

    /// Decodes the beginning of an object that is too large.
    pub fn decode_beginning(&self, json: &[u8]) -> Node {
        let mut tree = self.decode(json);
        let too_large = Fault {
            path: Path::root(),
            cause: Cause::TooLarge,
        };
        Fault::mark(&mut tree, &[too_large]);
        tree
    }

    /// True if anything at, above or below a path is kept.
    pub fn touches(&self, path: &Path) -> bool {
        self.0.touches(path.steps())
    }
}

impl Branch {
    fn touches(&self, steps: &[PathStep]) -> bool {
        let (Some(parts), Some((step, rest))) = (&self.0, steps.split_first()) else {
            return true;
        };
        let field = match step {
            PathStep::Field(key) => parts.find(key).map(|at| &parts.fields[at].1),
            PathStep::Index(_) => None,
        };
        let item = step.index().and_then(|index| parts.find_item(index));
        let each = step.index().and(parts.each.as_ref());
        let mut branches = [field, item, each].into_iter().flatten();
        branches.any(|branch| branch.touches(rest))
    }
}

/// Reads a value part by part.
struct Reader {
    faults: Vec<Fault>,
    /// The path of the current part.
    path: Vec<PathStep>,
}

impl Reader {
    /// Returns the parts of a value that `branch` keeps; `None` if there are none.
    fn part(&mut self, branch: &Branch, json: &[u8], levels: usize) -> Option<Node> {
        let error = match branch.read(json) {
            Ok(part) => return part,
            Err(error) => error,
        };
        match &branch.0 {
            Some(parts) if scan::is_map(json) => Some(self.map(parts, json, levels)),
            Some(parts) if scan::is_list(json) => self.list(parts, json, levels),
            None if levels > 0 && scan::is_map(json) => Some(self.whole_map(json, levels - 1)),
            None if levels > 0 && scan::is_list(json) => Some(self.whole_list(json, levels - 1)),
            _ => {
                self.fault(Cause::of(&error));
                None
            }
        }
    }

    fn fault(&mut self, cause: Cause) {
        if self.faults.len() > Fault::MOST {
            return;
        }
        let path = self.path.iter().cloned().collect();
        self.faults.push(Fault { path, cause });
    }

    /// The same, one step deeper.
    fn at(&mut self, step: PathStep, branch: &Branch, json: &[u8], levels: usize) -> Option<Node> {
        self.path.push(step);
        let part = self.part(branch, json, levels);
        self.path.pop();
        part
    }

    fn map(&mut self, parts: &Parts, json: &[u8], levels: usize) -> Node {
        let mut counts = vec![0_usize; parts.fields.len()];
        let mut entries = Vec::new();
        for (name, value) in scan::fields(json) {
            let Some(at) = parts.find(&name) else {
                continue;
            };
            let (key, branch) = &parts.fields[at];
            counts[at] += 1;
            if counts[at] == 1 {
                let part = self.at(PathStep::Field(key.clone()), branch, value, levels);
                entries.extend(part.map(|part| (at, part)));
            }
        }
        let keys = parts.fields.iter().zip(&counts);
        for ((key, _), _) in keys.filter(|(_, count)| **count > 1) {
            self.twice(key.clone());
        }
        entries.retain(|(at, _)| counts[*at] == 1);
        let named = |(at, part): (usize, Node)| (parts.fields[at].0.clone(), part);
        Node::Map(entries.into_iter().map(named).collect())
    }

    /// Records a duplicate key: neither value is used.
    fn twice(&mut self, key: Key) {
        self.path.push(PathStep::Field(key));
        self.fault(Cause::Duplicate);
        self.path.pop();
    }

    fn whole_map(&mut self, json: &[u8], levels: usize) -> Node {
        let mut entries: BTreeMap<Key, Option<Node>> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for (name, value) in scan::fields(json) {
            let key = Key::new(&name);
            if entries.contains_key(&key) {
                twice.insert(key);
                continue;
            }
            let part = self.at(PathStep::Field(key.clone()), &Branch::WHOLE, value, levels);
            entries.insert(key, part);
        }
        for key in twice {
            entries.remove(&key);
            self.twice(key);
        }
        let read = entries
            .into_iter()
            .filter_map(|(key, part)| Some((key, part?)));
        Node::Map(read.collect::<Map>())
    }

    fn list(&mut self, parts: &Parts, json: &[u8], levels: usize) -> Option<Node> {
        let mut kept = SmallVec::<[Node; USUAL]>::new();
        for (index, value) in scan::items(json).enumerate() {
            let mut branch = parts.find_item(index).cloned();
            if let Some(each) = &parts.each {
                match &mut branch {
                    Some(branch) => branch.merge(each),
                    None => branch = Some(each.clone()),
                }
            }
            let Some(branch) = branch else { continue };
            let part = self.at(PathStep::Index(index), &branch, value, levels);
            let part = part.or_else(|| parts.each.as_ref().map(|_| Node::Null));
            if let Some(part) = part {
                kept.resize(index, Node::Null);
                kept.push(part);
            }
        }
        (!kept.is_empty()).then(|| list_of(kept))
    }

    fn whole_list(&mut self, json: &[u8], levels: usize) -> Node {
        let items = scan::items(json).enumerate();
        let mut kept = SmallVec::<[Node; USUAL]>::new();
        for (index, value) in items {
            let part = self.at(PathStep::Index(index), &Branch::WHOLE, value, levels);
            kept.push(part.unwrap_or_default());
        }
        list_of(kept)
    }
}

impl Branch {
    /// Reads one value; `None` if nothing of it is kept.
    fn read(&self, json: &[u8]) -> serde_json::Result<Option<Node>> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let part = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(part)
    }
}
