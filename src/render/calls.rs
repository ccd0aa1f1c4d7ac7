//! Responses to external calls, from a file.

use std::{collections::BTreeMap, path::PathBuf};

use orkestra_core::{
    diagnostics::{Code, FieldPath},
    value::Node,
};

use super::{Rendered, objects::read_documents};
use crate::files::Compiled;

/// Reads the responses by the name of the call; an unknown name is a problem.
pub(crate) fn read_calls(
    paths: &[PathBuf],
    katalogs: &[Compiled],
    rendered: &mut Rendered,
) -> BTreeMap<String, Node> {
    let operators = katalogs.iter().flat_map(|katalog| &katalog.plan.operators);
    let calls = operators.flat_map(|operator| &operator.calls);
    let known: Vec<&str> = calls.map(|call| &*call.name).collect();
    let mut answers = BTreeMap::new();
    for document in read_documents(paths, rendered) {
        let Node::Map(fields) = &document.node else {
            let message = "expected a map from call names to responses";
            let problem = document.problem(Code::WrongShape, FieldPath::root(), message);
            rendered.problems.push(problem);
            continue;
        };
        for (name, answer) in fields.iter() {
            if !known.contains(&name.as_str()) {
                let message = format!("no operator makes a call `{name}`");
                let path = FieldPath::parse(name);
                rendered
                    .problems
                    .push(document.problem(Code::UnknownData, path, message));
            }
            answers.insert(name.to_string(), answer.clone());
        }
    }
    answers
}
