//! Deprecation of artifacts: the annotations, and the stage on a given day.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use jiff::civil::Date;
use serde::Serialize;

const DEPRECATED: &str = "io.orkestra.deprecated";
const MESSAGE: &str = "io.orkestra.deprecated.message";
const MIGRATED_TO: &str = "io.orkestra.katalog.deprecated.migrated_to";
const FROM: &str = "io.orkestra.katalog.deprecated.timeline_from";
const TO: &str = "io.orkestra.katalog.deprecated.timeline_to";

/// The deprecation of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The reason.
    pub message: String,
    /// The replacement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrated_to: Option<String>,
    /// The first day of the transition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Date>,
    /// The last day of the transition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Date>,
}

/// The stage of an artifact in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Deprecated, without an end date or before the transition.
    Deprecated,
    /// The number of days until the end.
    Ending(i32),
    /// Past its end.
    EndOfLife,
}

impl Lifecycle {
    /// Reads annotations; `None` if the artifact is not deprecated. An invalid date is ignored.
    pub fn of(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let text = |key: &str| {
            annotations
                .get(key)
                .map(|text| crate::manifest::short(text))
        };
        if text(DEPRECATED)? != "true" {
            return None;
        }
        let date = |key: &str| annotations.get(key)?.parse().ok();
        Some(Self {
            message: text(MESSAGE).unwrap_or_default(),
            migrated_to: text(MIGRATED_TO),
            from: date(FROM),
            to: date(TO),
        })
    }

    /// Returns the annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let Self {
            message,
            migrated_to,
            from,
            to,
        } = self;
        let mut all = BTreeMap::from([
            (DEPRECATED.to_owned(), "true".to_owned()),
            (MESSAGE.to_owned(), message.clone()),
        ]);
        let optional = [
            (MIGRATED_TO, migrated_to.clone()),
            (FROM, from.map(|date| date.to_string())),
            (TO, to.map(|date| date.to_string())),
        ];
        all.extend(
            optional
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?))),
        );
        all
    }

    /// Returns the stage on this day.
    pub fn stage(&self, today: Date) -> Stage {
        match (self.from, self.to) {
            (_, Some(to)) if today >= to => Stage::EndOfLife,
            (from, Some(to)) if from.is_none_or(|from| today >= from) => {
                // Two dates are at most 20,000 years apart.
                let left = today.until(to).map_or(0, |span| span.get_days());
                Stage::Ending(left)
            }
            _ => Stage::Deprecated,
        }
    }

    /// Returns a sentence for this day.
    pub fn sentence(&self, today: Date) -> String {
        let mut text = match self.stage(today) {
            Stage::Deprecated => "deprecated".to_owned(),
            Stage::Ending(1) => "deprecated, ends in 1 day".to_owned(),
            Stage::Ending(days) => format!("deprecated, ends in {days} days"),
            Stage::EndOfLife => "end of life".to_owned(),
        };
        // Writing to a String cannot fail.
        if let Some(to) = self.to {
            let _ = write!(text, " ({to})");
        }
        if !self.message.is_empty() {
            let _ = write!(text, ": {}", self.message);
        }
        if let Some(instead) = &self.migrated_to {
            let _ = write!(text, "; use {instead} instead");
        }
        text
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deprecated => "deprecated",
            Self::Ending(_) => "ending",
            Self::EndOfLife => "end of life",
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_lifecycle_reads_as_it_is_written_and_counts_days() {
        let lifecycle = Lifecycle {
            message: "replaced".to_owned(),
            migrated_to: Some("ghcr.io/a/b:2".to_owned()),
            from: Some(date(2026, 1, 1)),
            to: Some(date(2026, 3, 1)),
        };
        assert_eq!(
            Lifecycle::of(&lifecycle.annotations()),
            Some(lifecycle.clone())
        );
        for (day, stage) in [
            (date(2025, 12, 31), Stage::Deprecated),
            (date(2026, 1, 1), Stage::Ending(59)),
            (date(2026, 2, 28), Stage::Ending(1)),
            (date(2026, 3, 1), Stage::EndOfLife),
        ] {
            assert_eq!(lifecycle.stage(day), stage, "{day}");
        }
        assert_eq!(
            lifecycle.sentence(date(2026, 2, 28)),
            "deprecated, ends in 1 day (2026-03-01): replaced; use ghcr.io/a/b:2 instead"
        );
    }

    #[test]
    fn without_the_annotation_nothing_is_deprecated_and_odd_dates_are_left_out() {
        let mut annotations = BTreeMap::from([(MESSAGE.to_owned(), "x".to_owned())]);
        assert_eq!(Lifecycle::of(&annotations), None);
        annotations.insert(DEPRECATED.to_owned(), "true".to_owned());
        annotations.insert(TO.to_owned(), "tomorrow".to_owned());
        let lifecycle = Lifecycle::of(&annotations).unwrap();
        assert_eq!(lifecycle.stage(date(2026, 1, 1)), Stage::Deprecated);
    }
}
