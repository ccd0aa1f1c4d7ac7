//! Evaluates gates.

mod relate;

use std::borrow::Cow;

pub(crate) use self::relate::is_given;
use super::{
    reason::Reason,
    render::{RenderError, Renderer},
};
use orkestra_language::{
    cron::Schedule,
    window::{self, Daily, WindowState, time_of_day},
};
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{Coerce, ConditionPlan, Gate, Leaf, Operand, Question, Test, Window};
use orkestra_template::Data;

impl<'d> Renderer<'_, 'd> {
    /// True if the gate is open.
    ///
    /// # Errors
    /// An operand cannot be rendered, or reads unavailable data, unless the gate is closed regardless of it.
    pub fn gate(&mut self, gate: &Gate) -> Result<bool, RenderError> {
        let mut open = Ok(true);
        for condition in &gate.all {
            match self.holds(condition) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => open = open.and(Err(error)),
            }
        }
        if gate.any.is_empty() {
            return open;
        }
        let mut any = Ok(false);
        for condition in &gate.any {
            match self.holds(condition) {
                Ok(true) => return open,
                Ok(false) => {}
                Err(error) => any = any.and(Err(error)),
            }
        }
        match any {
            Ok(_) => Ok(false),
            Err(error) => open.and(Err(error)),
        }
    }

    /// Returns the path of the first condition of the gate that does not hold, if any.
    ///
    /// # Errors
    /// As [`Renderer::gate`].
    pub(crate) fn unmet(&mut self, gate: &Gate) -> Result<Option<Box<str>>, RenderError> {
        for condition in gate.iter() {
            if !self.holds(condition)? {
                return Ok(Some(condition.path.clone().into()));
            }
        }
        Ok(None)
    }

    /// True if one condition holds.
    ///
    /// # Errors
    /// As [`Renderer::gate`].
    pub fn holds(&mut self, condition: &ConditionPlan) -> Result<bool, RenderError> {
        let holds = match &condition.asks {
            Question::Value(operand, tests) => self.all_hold(condition, operand, tests)?,
            Question::Time(windows) => self.is_time(condition, windows)?,
        };
        Ok(holds != condition.negate)
    }

    fn all_hold(
        &mut self,
        condition: &ConditionPlan,
        operand: &Operand,
        tests: &[Test],
    ) -> Result<bool, RenderError> {
        let operand = self.operand(condition, operand)?;
        for test in tests {
            if !self.test(condition, &operand, test)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the left side with its type; a template that is not a single expression gives text.
    pub(crate) fn operand(
        &mut self,
        condition: &ConditionPlan,
        operand: &Operand,
    ) -> Result<Cow<'d, Node>, RenderError> {
        match operand {
            Operand::Path(path) => {
                if let Some(message) = self.frame.sources.why_not([path]) {
                    return Err(RenderError {
                        path: condition.path.clone().into(),
                        message,
                        reason: Reason::Unavailable,
                    });
                }
                Ok(at(self.data, path).map_or_else(Cow::default, Cow::Borrowed))
            }
            Operand::Template(template) => {
                let leaf = Leaf {
                    template: template.clone(),
                    coerce: Coerce::Native,
                    path: condition.path.clone(),
                };
                Ok(Cow::Owned(self.leaf(&leaf)?.unwrap_or_default()))
            }
        }
    }

    /// True if the current time is within the windows. Each evaluated window records when its result changes; one closed
    /// window is enough.
    fn is_time(
        &mut self,
        condition: &ConditionPlan,
        windows: &[Window],
    ) -> Result<bool, RenderError> {
        for window in windows {
            let WindowState { holds, until } = self.look(condition, window)?;
            if let Some(moment) = until {
                self.frame.effects.at(moment);
            }
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn look(
        &mut self,
        condition: &ConditionPlan,
        window: &Window,
    ) -> Result<WindowState, RenderError> {
        let now = self.data.now();
        Ok(match window {
            Window::Daily(daily) => daily.look(now),
            Window::Rendered(after, before) => Daily {
                after: self.time(after.as_ref())?,
                before: self.time(before.as_ref())?,
            }
            .look(now),
            Window::Days(days) => days.look(now),
            Window::Cron(schedule, length) => {
                let text = self.text(schedule)?;
                let parsed = Schedule::parse(&text).map_err(|error| RenderError {
                    path: condition.path.clone().into(),
                    message: error.to_string(),
                    reason: Reason::WrongType,
                })?;
                window::after_each(&parsed, *length, now)
            }
        })
    }

    /// Returns a time of the day; none if it is not given.
    fn time(&mut self, leaf: Option<&Leaf>) -> Result<Option<jiff::civil::Time>, RenderError> {
        let Some(leaf) = leaf else {
            return Ok(None);
        };
        let text = self.text(leaf)?;
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || RenderError {
            path: leaf.path.clone().into(),
            message: format!(
                "`{}` must return a time of the day, `HH:MM`",
                leaf.template.source()
            ),
            reason: Reason::WrongType,
        };
        time_of_day(&text).map(Some).ok_or_else(wrong)
    }
}

/// Returns the node at a path that starts with the name of a root.
pub(crate) fn at<'d>(data: &Data<'d>, path: &Path) -> Option<&'d Node> {
    let (PathStep::Field(root), rest) = path.steps().split_first()? else {
        return None;
    };
    data.get(root)?.at(&rest.iter().cloned().collect::<Path>())
}

/// Returns the text of a value, trimmed.
fn trimmed(node: &Node) -> Cow<'_, str> {
    match node.to_text() {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}
