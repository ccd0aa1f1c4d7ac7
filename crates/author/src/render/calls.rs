//! Responses to external calls and hooks, from a file.

use std::{collections::BTreeMap, path::PathBuf};

use orkestra_language::diagnostics::{Code, FieldPath};
use orkestra_object::value::Node;

use super::{Rendered, objects::read_documents};
use orkestra_loader::files::Compiled;

/// Reads the responses by the name of the call or hook; an unknown name is a problem.
pub(crate) fn read_calls(
    paths: &[PathBuf],
    katalogs: &[Compiled],
    rendered: &mut Rendered,
) -> BTreeMap<String, Node> {
    let operators = katalogs.iter().flat_map(|katalog| &katalog.plan.operators);
    let known: Vec<&str> = operators.flat_map(|operator| operator.asked()).collect();
    let mut answers = BTreeMap::new();
    for document in read_documents(paths, rendered) {
        let Node::Map(fields) = &document.node else {
            let message = "expected a map from names of calls and hooks to responses";
            let problem = document.problem(Code::WrongShape, FieldPath::root(), message);
            rendered.problems.push(problem);
            continue;
        };
        for (name, answer) in fields.iter() {
            if !known.contains(&name.as_str()) {
                let message = format!("no operator makes a call or has a hook `{name}`");
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
