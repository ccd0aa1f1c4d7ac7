//! Conditions that a Katalog declares, and the requirements of `Ready`.

use crate::reconcile::{
    reason::Reason,
    render::{RenderError, Renderer},
};
use orkestra_language::api::conditions::{Condition, ConditionStatus};
use orkestra_plan::{OwnCondition, is_reason, read_status};

/// Evaluates a declared condition; none if it stays as it is.
pub(crate) fn condition(
    renderer: &mut Renderer<'_, '_>,
    declared: &OwnCondition,
) -> Result<Option<Condition>, RenderError> {
    let open = renderer.gate(&declared.gate)?;
    let status = match &declared.status {
        None if open => ConditionStatus::True,
        None => ConditionStatus::False,
        Some(_) if !open => return Ok(None),
        Some(leaf) => {
            let text = renderer.text(leaf)?;
            let wrong = || wrong(&leaf.path, leaf.template.source(), "True, False or Unknown");
            read_status(&text).ok_or_else(wrong)?
        }
    };
    let text = |leaf: &Option<orkestra_plan::Leaf>, renderer: &mut Renderer<'_, '_>| match leaf {
        Some(leaf) => renderer.text(leaf),
        None => Ok(String::new()),
    };
    let message = text(&declared.message, renderer)?;
    let given = text(&declared.reason, renderer)?;
    let reason = if given.is_empty() {
        default_reason(&declared.name, status)
    } else if is_reason(&given) {
        given
    } else {
        let leaf = declared.reason.as_ref();
        let source = leaf.map_or("", |leaf| leaf.template.source());
        return Err(wrong(&declared.path, source, "one word, the reason"));
    };
    Ok(Some(Condition::new(
        &declared.name,
        status,
        &reason,
        &message,
    )))
}

/// Converts the type to a reason, which has only letters and digits.
fn default_reason(name: &str, status: ConditionStatus) -> String {
    let word = name.rsplit('/').next().unwrap_or(name);
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let before = match status {
        ConditionStatus::True if word.starts_with(|c: char| c.is_ascii_digit()) => "Is",
        ConditionStatus::True => "",
        ConditionStatus::False => "Not",
        ConditionStatus::Unknown => return "Unknown".to_owned(),
    };
    format!("{before}{word}")
}

fn wrong(path: &str, source: &str, wanted: &str) -> RenderError {
    RenderError {
        path: path.into(),
        message: format!("`{source}` must return {wanted}"),
        reason: Reason::WrongType,
    }
}
