//! Reads below `.cross`.

use super::{PlanReads, ReadPosition, ReadScope, children::KnownChildren, without_covered};
use crate::{
    diagnostics::{Code, nearest},
    plan::{
        CROSS, EXTERNAL, Leaf,
        cross::{CrossPlan, FOUND, HEALTH, METRICS},
        roots::CR_ROOTS,
    },
    value::{Path, PathStep},
};

/// Fields below `.cross.<as>`: the resource and the facts about it.
const ROOTS: [&str; 8] = {
    let [api_version, kind, metadata, spec, status] = CR_ROOTS;
    [
        api_version,
        kind,
        metadata,
        spec,
        status,
        FOUND,
        HEALTH,
        METRICS,
    ]
};

const CHILDREN: &str = "children";

impl PlanReads {
    /// Checks a selector of a resource: it may read the custom resource and earlier entries.
    pub(super) fn choice(&mut self, leaf: &Leaf, around: ReadScope<'_>) {
        let place = ReadPosition {
            field: &leaf.path,
            source: Some(leaf.template.source()),
        };
        for path in leaf.template.reads() {
            match path.steps().first() {
                Some(PathStep::Field(root)) if [CHILDREN, EXTERNAL].contains(&&**root) => {
                    let message = format!("`.{root}` is read after this");
                    let hint = "`.metadata`, `.spec`, `.status`, and entries of `cross` above this one can be read here";
                    self.unreadable(
                        Code::UnknownData,
                        place,
                        root,
                        message,
                        Some(hint.to_owned()),
                    );
                }
                // Compilation already checked that the entry is declared earlier.
                Some(PathStep::Field(root))
                    if &**root == CROSS && !around.known.has_cross(&path.steps()[1..]) => {}
                _ => self.add(path, place, around),
            }
        }
    }

    /// Handles `.cross` as a whole.
    pub(super) fn all_cross(&mut self, known: &KnownChildren) {
        for name in &known.cross {
            self.cross
                .entry(name.clone())
                .or_default()
                .push(Path::root());
        }
    }

    pub(super) fn cross(
        &mut self,
        below: &[PathStep],
        place: ReadPosition<'_>,
        known: &KnownChildren,
    ) {
        let Some((name, rest)) = below.split_first() else {
            return self.all_cross(known);
        };
        let name = match name {
            PathStep::Field(name) => name.clone(),
            PathStep::Index(index) => index.to_string().into(),
        };
        if !known.cross.contains(&name) {
            if known.all {
                self.unknown(&name, place, known);
            }
            return;
        }
        if let Some(PathStep::Field(root)) = rest.first()
            && !ROOTS.contains(&&**root)
        {
            let hint = match nearest(root, ROOTS) {
                Some(near) => format!("did you mean `.{CROSS}.{name}.{near}`?"),
                None => format!("there is {}", ROOTS.join(", ")),
            };
            let message = format!("there is no `{root}` in `.{CROSS}.{name}`");
            return self.unreadable(Code::UnknownData, place, root, message, Some(hint));
        }
        let read = rest.iter().cloned().collect();
        self.cross.entry(name).or_default().push(read);
    }

    fn unknown(&mut self, name: &str, place: ReadPosition<'_>, known: &KnownChildren) {
        let names = || known.cross.iter().map(|name| &**name);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `.{CROSS}.{near}`?"),
            None if known.cross.is_empty() => "the operatorBox declares no `cross`".to_owned(),
            None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("no entry of `cross` is called `{name}`");
        let read = format!("{CROSS}.{name}");
        self.unreadable(Code::UnknownCross, place, &read, message, Some(hint));
    }

    /// Sets the reads of the entries.
    pub(crate) fn report_cross(&mut self, entries: &mut [CrossPlan]) {
        for entry in entries {
            let read = self.cross.remove(&entry.name).unwrap_or_default();
            let whole = read.iter().any(Path::is_empty);
            let starts_with = |path: &Path, name: &str| matches!(path.steps().first(), Some(PathStep::Field(root)) if &**root == name);
            entry.reads_health = whole || read.iter().any(|path| starts_with(path, HEALTH));
            entry.reads_metrics = whole || read.iter().any(|path| starts_with(path, METRICS));
            let is_fact = |path: &Path| {
                [FOUND, HEALTH, METRICS]
                    .iter()
                    .any(|field| starts_with(path, field))
            };
            let of_resource = read.into_iter().filter(|path| !is_fact(path));
            // The whole resource counts as its known parts: nothing else can be kept of it.
            let of_resource = of_resource.flat_map(|path| {
                if path.is_empty() {
                    CR_ROOTS
                        .map(|root| Path::from_iter([PathStep::Field(root.into())]))
                        .to_vec()
                } else {
                    vec![path]
                }
            });
            entry.reads = without_covered(of_resource.collect());
        }
    }
}
