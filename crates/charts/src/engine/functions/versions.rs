//! Versions and version constraints.

use std::rc::Rc;

use orkestra_template::go::{EvalFailure, parse_version, satisfies};

use super::{Function, function, string};
use crate::value::Object;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("semver", 1, |_, args| {
        let text = string(&args[0])?;
        let version = version(&text)?;
        Ok(Value::Object(Object::Version(Rc::new((
            version,
            (&*text).into(),
        )))))
    }),
    function("semverCompare", 2, |engine, args| {
        let (constraint, text) = (string(&args[0])?, string(&args[1])?);
        engine.steps(8 + constraint.len() as u64)?;
        let version = version(&text)?;
        let holds = satisfies(&constraint, &version);
        let malformed = || EvalFailure::refused(format!("improper constraint: {constraint}"));
        holds.map(Value::Bool).ok_or_else(malformed)
    }),
];

fn version(text: &str) -> Result<semver::Version, EvalFailure> {
    parse_version(text).ok_or_else(|| EvalFailure::refused("invalid semantic version"))
}
