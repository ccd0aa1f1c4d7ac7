//! `schema` of an entry: the problems of the definition that it declares.

use crate::scope::At;
use orkestra_language::{
    api::CrdEntry,
    diagnostics::{Code, Segment},
};
use orkestra_plan::definitions::schema_problems;

/// Reports the problems of the `schema` of the entry at `at`.
pub(crate) fn check(at: &At<'_>, entry: &CrdEntry) {
    if entry.schema.is_none() {
        return;
    }
    if entry.crd_file.is_some() {
        let message = "`schema` and `crdFile` are mutually exclusive";
        at.field("schema").error(Code::Exclusive, message);
        return;
    }
    for problem in schema_problems(entry) {
        let segments = problem.path.segments().iter();
        let at = segments.fold(at.clone(), |at, segment| match segment {
            Segment::Field(name) => at.field(name),
            Segment::Index(index) => at.index(*index),
        });
        match problem.hint {
            Some(hint) => at.error_hint(Code::BadSchema, problem.message, hint),
            None => at.error(Code::BadSchema, problem.message),
        }
    }
}
