//! Whether what a gate asks holds.

use std::cell::Cell;

use jiff::Timestamp;

use super::{
    reason::Reason,
    render::{RenderError, Renderer},
};
use crate::{
    plan::{Coerce, Condition, Gate, Leaf, Operand, Test},
    template::Data,
    value::{Node, Path, Step},
};

/// The moment at which the first of the conditions that ask for the time, as far as a pass has asked, gives another answer.
#[derive(Debug, Default)]
pub struct Turns(Cell<Option<Timestamp>>);

impl Turns {
    /// Something changes at that moment.
    pub fn at(&self, moment: Timestamp) {
        let first = self.0.get().map_or(moment, |known| known.min(moment));
        self.0.set(Some(first));
    }

    /// The first of all.
    pub fn first(&self) -> Option<Timestamp> {
        self.0.get()
    }
}

impl Renderer<'_, '_> {
    /// Whether the gate is open.
    ///
    /// # Errors
    /// That of an operand that cannot be rendered, or reads what is unavailable, unless the gate is closed whatever it is.
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

    /// Whether one condition holds.
    ///
    /// # Errors
    /// As [`Renderer::gate`].
    pub fn holds(&mut self, condition: &Condition) -> Result<bool, RenderError> {
        let operand = self.operand(condition)?;
        Ok(match &condition.test {
            Test::Equals(leaf) => operand == self.text(leaf)?,
            Test::NotEquals(leaf) => operand != self.text(leaf)?,
            Test::Exists => !operand.is_empty(),
            Test::NotExists => operand.is_empty(),
        })
    }

    fn operand(&mut self, condition: &Condition) -> Result<String, RenderError> {
        match &condition.operand {
            Operand::Path(path) => {
                if let Some(message) = self.frame.sources.why_not([path]) {
                    return Err(RenderError {
                        path: condition.path.clone(),
                        message,
                        reason: Reason::Unavailable,
                    });
                }
                Ok(at(self.data, path)
                    .map(|node| node.to_text().trim().to_owned())
                    .unwrap_or_default())
            }
            Operand::Template(template) => self.text(&Leaf {
                template: template.clone(),
                coerce: Coerce::Text,
                path: condition.path.clone(),
            }),
        }
    }
}

/// The node at a path that starts with a root's name.
fn at<'d>(data: &Data<'d>, path: &Path) -> Option<&'d Node> {
    let (Step::Field(root), rest) = path.steps().split_first()? else {
        return None;
    };
    data.get(root)?.at(&rest.iter().cloned().collect::<Path>())
}
