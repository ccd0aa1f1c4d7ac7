//! Figures, goals and their output: a table for the terminal, JSON for a file, a table for `docs/develop/performance.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::Machine;

/// The goal for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Goal {
    /// At most this value.
    AtMost(f64),
    /// At most this many times the value of `bare`.
    TimesBare(f64),
    /// At most the value of `bare` plus this value.
    OverBare(f64),
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The name of the figure.
    pub(crate) name: String,
    /// The unit; empty for a plain number.
    pub(crate) unit: String,
    /// The figure of `ork`.
    pub(crate) ork: f64,
    /// The figure of the same writes by the harness, without a controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bare: Option<f64>,
    /// The goal of the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<Goal>,
    /// The figure meets its goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
}

impl Row {
    /// Returns a figure without a goal.
    pub(crate) fn new(name: impl Into<String>, unit: &str, ork: f64) -> Self {
        Self {
            name: name.into(),
            unit: unit.to_owned(),
            ork,
            bare: None,
            goal: None,
            met: None,
        }
    }

    /// Adds the value of `bare`.
    pub(crate) fn beside(mut self, bare: f64) -> Self {
        self.bare = Some(bare);
        self.judged()
    }

    /// Adds a goal.
    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self.judged()
    }

    fn judged(mut self) -> Self {
        self.met = self.goal.and_then(|goal| match goal {
            Goal::AtMost(most) => Some(self.ork <= most),
            Goal::TimesBare(times) => self.bare.map(|bare| self.ork <= bare * times),
            Goal::OverBare(more) => self.bare.map(|bare| self.ork <= bare + more),
        });
        self
    }

    fn cells(&self) -> [String; 6] {
        let figure = |value: f64| {
            let space = if self.unit.is_empty() { "" } else { " " };
            format!("{}{space}{}", digits(value), self.unit)
        };
        let goal = self.goal.map(|goal| match goal {
            Goal::AtMost(most) => format!("≤ {}", figure(most)),
            Goal::TimesBare(times) => format!("≤ {} × bare", digits(times)),
            Goal::OverBare(more) => format!("≤ bare + {}", figure(more)),
        });
        let ratio = self
            .bare
            .filter(|bare| *bare > 0.0)
            .map(|bare| digits(self.ork / bare));
        let met = self
            .met
            .map(|met| if met { "yes" } else { "no" }.to_owned());
        [
            self.name.clone(),
            figure(self.ork),
            self.bare.map(figure).unwrap_or_default(),
            ratio.unwrap_or_default(),
            goal.unwrap_or_default(),
            met.unwrap_or_default(),
        ]
    }
}

/// Formats a number with three significant digits and without unnecessary zeros.
fn digits(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if size >= 99.95 || (value.fract() == 0.0) => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The result of one scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Section {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// A description of the scenario, with its sizes.
    pub(crate) title: String,
    /// The scenario's lines of the table.
    pub(crate) rows: Vec<Row>,
    /// All figures of the scenario.
    pub(crate) figures: Value,
    /// Broken guarantees. They do not depend on the machine's speed.
    pub(crate) broken: Vec<String>,
    /// The reason for which there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_measured: Option<String>,
}

/// The result of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The machine of the run.
    pub(crate) machine: Machine,
    /// The sizes of the run.
    pub(crate) sizes: BTreeMap<String, Value>,
    /// The scenarios, in the order in which they ran.
    pub(crate) sections: Vec<Section>,
}

const HEAD: [&str; 6] = ["", "ork", "bare", "ratio", "goal", "met"];

impl Section {
    /// Formats the section for a terminal.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![HEAD.map(str::to_owned)];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max();
        let widths: [usize; 6] = std::array::from_fn(|at| width(at).unwrap_or_default());
        let mut text = format!("{}: {}\n", self.scenario, self.title);
        if let Some(why) = &self.not_measured {
            let _ = writeln!(text, "  not measured: {why}");
            return text;
        }
        for line in &lines {
            text.push(' ');
            for (at, cell) in line.iter().enumerate() {
                let fill = " ".repeat(widths[at] - cell.chars().count());
                // Text is aligned to the left, figures to the right.
                let _ = if at == 0 {
                    write!(text, " {cell}{fill}")
                } else {
                    write!(text, "  {fill}{cell}")
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        for broken in &self.broken {
            let _ = writeln!(text, "  BROKEN: {broken}");
        }
        text
    }
}

impl Report {
    /// Returns the table of `docs/develop/performance.md`.
    pub(crate) fn markdown(&self) -> String {
        let Machine {
            cores,
            cpu,
            memory_mib,
            kernel,
            kubernetes,
            ork,
            profile,
            at,
        } = &self.machine;
        let mut text = format!(
            "Measured on {} with {ork} ({profile} build) and {kubernetes}, on {cores} cores ({cpu}), {} GB, Linux {kernel}.\n\n",
            at.strftime("%Y-%m-%d"),
            memory_mib / 1000,
        );
        text.push_str(
            "| | ork | bare | ratio | goal | met |\n| --- | ---: | ---: | ---: | --- | --- |\n",
        );
        for section in &self.sections {
            let _ = writeln!(
                text,
                "| **{}**: {} | | | | | |",
                section.scenario, section.title
            );
            if let Some(why) = &section.not_measured {
                let _ = writeln!(text, "| not measured: {why} | | | | | |");
            }
            for row in &section.rows {
                let _ = writeln!(text, "| {} |", row.cells().join(" | "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_beside_bare_is_judged_once_both_are_known() {
        let row = Row::new("seconds", "s", 12.0);
        assert_eq!(row.clone().goal(Goal::TimesBare(1.2)).met, None);
        assert_eq!(
            row.clone().goal(Goal::TimesBare(1.2)).beside(10.0).met,
            Some(true)
        );
        assert_eq!(
            row.clone().beside(9.9).goal(Goal::TimesBare(1.2)).met,
            Some(false)
        );
        assert_eq!(
            row.clone().beside(9.0).goal(Goal::OverBare(3.0)).met,
            Some(true)
        );
        assert_eq!(row.goal(Goal::AtMost(11.9)).met, Some(false));
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let shown = [0.0, 1.0, 1.5, 8.456, 12.34, 123.4, 0.026_04, 3255.0].map(digits);
        assert_eq!(
            shown,
            ["0", "1", "1.5", "8.46", "12.3", "123", "0.026", "3255"]
        );
    }
}
