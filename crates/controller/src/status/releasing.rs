//! Describes the progress of the release of kinds that a Katalog operated: pure.

use std::collections::BTreeMap;

use orkestra_language::api::OperatedKind;

/// The progress of the release of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Releasing {
    /// The last problem that prevented it.
    pub(crate) problem: Option<String>,
    /// Custom resources that still have our metadata, and how many had it; none before they were listed.
    pub(crate) left: Option<(usize, usize)>,
}

/// Returns the message of a condition about these releases.
pub(crate) fn message(releasing: &BTreeMap<OperatedKind, Releasing>) -> String {
    if releasing.is_empty() {
        return "everything is released".to_owned();
    }
    let lines = releasing.iter().map(|(kind, release)| {
        let how = match release {
            Releasing {
                problem: Some(problem),
                ..
            } => format!(": {problem}"),
            Releasing {
                left: Some((left, all)),
                ..
            } => format!(": {left} of {all} custom resources left"),
            Releasing { .. } => String::new(),
        };
        format!("releasing {}.{}{how}", kind.plural, kind.group)
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_says_how_many_are_left_or_what_prevents_its_release() {
        let kind = |plural: &str| OperatedKind {
            group: "water.example".to_owned(),
            plural: plural.to_owned(),
            ..OperatedKind::default()
        };
        let all = [
            ("lakes", None, None),
            ("ponds", None, Some((7, 1200))),
            ("rivers", Some("no"), Some((1, 2))),
        ];
        let all = all.map(|(plural, problem, left)| {
            let problem = problem.map(str::to_owned);
            (kind(plural), Releasing { problem, left })
        });
        assert_eq!(
            message(&BTreeMap::from(all)),
            "releasing lakes.water.example; releasing ponds.water.example: 7 of 1200 custom resources left; \
             releasing rivers.water.example: no"
        );
        assert_eq!(message(&BTreeMap::new()), "everything is released");
    }
}
