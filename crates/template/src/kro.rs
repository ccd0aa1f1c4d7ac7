//! Detects expressions of kro, `${schema.spec.name}`, which are plain text here.
//!
//! Only forms that neither a shell nor a configuration file uses for `${…}` are recognized: a path of the instance
//! (`schema`) or of a resource's `metadata`, `spec`, `status` or `data`.
//!
//! Source: kro, "CEL expressions": `${resourceId.path}` and `${schema.path}`.

use super::TemplateError;
use orkestra_language::diagnostics::Code;

/// kro's name for the instance of a graph.
const INSTANCE: &str = "schema";
/// The fields of Kubernetes objects that expressions read.
const PARTS: [&str; 4] = ["metadata", "spec", "status", "data"];

/// Finds the first expression of kro in a text and reports it with a replacement.
pub fn expression(text: &str) -> Option<TemplateError> {
    let mut starts = text.match_indices("${").map(|(at, _)| at);
    starts.find_map(|at| {
        let (inside, _) = text[at + 2..].split_once('}')?;
        let instead = instead(inside.trim())?;
        Some(TemplateError {
            offset: at,
            len: inside.len() + 3,
            code: Code::OtherLanguage,
            message: format!("`${{{inside}}}` is an expression of kro; here it stays text"),
            hint: Some(format!("write {instead}")),
        })
    })
}

/// Returns the replacement for an expression of kro; `None` for other text in braces.
fn instead(inside: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let root_end = inside.find(|c| !is_name(c)).unwrap_or(inside.len());
    let (root, rest) = inside.split_at(root_end);
    let below = rest.strip_prefix('.')?;
    let part_end = below.find(|c| !is_name(c)).unwrap_or(below.len());
    let (part, behind) = below.split_at(part_end);
    let is_expression = PARTS.contains(&part)
        && !root.is_empty()
        && (root == INSTANCE || behind.starts_with(['.', '?', '[']));
    if !is_expression {
        return None;
    }
    // kro marks optional paths; here every path is optional.
    let path = below.replace('?', "");
    let is_path = path.chars().all(|c| is_name(c) || c == '.');
    Some(match (is_path, root == INSTANCE) {
        (true, true) => format!("`{{{{ .{path} }}}}`"),
        (true, false) => {
            format!("`{{{{ .children.KIND.{path} }}}}`, with the kind of the child, such as `deployment`")
        }
        (false, _) => "a template, `{{ … }}`: the custom resource is `.spec`, `.metadata` and `.status`, children are `.children`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_kro_are_recognised_and_translated() {
        for (text, hint) in [
            ("${schema.spec.name}", "write `{{ .spec.name }}`"),
            (
                "a-${ schema.metadata.name }-b",
                "write `{{ .metadata.name }}`",
            ),
            (
                "${deployment.status.?availableReplicas}",
                "write `{{ .children.KIND.status.availableReplicas }}`, with the kind of the child, such as `deployment`",
            ),
        ] {
            assert_eq!(
                expression(text).unwrap().hint.as_deref(),
                Some(hint),
                "{text}"
            );
        }
        let complex = expression("${schema.spec.replicas > 3 ? 1 : 2}").unwrap();
        assert!(complex.hint.unwrap().starts_with("write a template"));
        assert_eq!(expression("x ${y} ${schema.spec.z}").unwrap().offset, 7);
    }

    #[test]
    fn variables_of_shells_and_configuration_files_are_no_expressions() {
        for text in [
            "${HOME}",
            "${HOME:-/root}",
            "${var.region}",
            "${project.version}",
            "${a.data}",
            "${arr[0].spec}",
            "${schema.sql}",
            "$${x}",
            "${schema.spec",
        ] {
            assert_eq!(expression(text), None, "{text}");
        }
    }
}
