//! Moves old spellings of an E2E to their present place.

use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use crate::tree::{Tree, TreeKey, TreeValue};

/// Moves old spellings to their present place, with warnings.
pub(crate) fn old_spellings(root: &mut Tree, found: &mut Diagnostics) {
    let at = FieldPath::root().field("spec");
    let Some(spec) = root.get_mut("spec") else {
        return;
    };
    custom_operator(spec, &at.field("customOperator"), found);
    old_calls(spec, &at, found);
}

/// `customOperator: true` is `custom.target: kubernetes`.
fn custom_operator(spec: &mut Tree, at: &FieldPath, found: &mut Diagnostics) {
    let Some(TreeValue::Bool(is_custom)) = spec.get("customOperator").map(|tree| &tree.value)
    else {
        return;
    };
    let is_custom = *is_custom;
    if spec.get("custom").is_some() {
        let message = "`customOperator` and `custom` mean the same";
        let problem = Diagnostic::error(Code::TwoSpellings, at.clone(), message);
        found.push(problem.hint("keep `custom`"));
        spec.take(&["customOperator"]);
        return;
    }
    let Some((key, value)) = spec.take(&["customOperator"]) else {
        return;
    };
    let message = "`customOperator` is an old spelling";
    let warning = Diagnostic::warning(Code::OtherSpelling, at.clone(), message);
    let hint = if is_custom {
        "write `custom: { target: kubernetes }`"
    } else {
        "remove it"
    };
    found.push(warning.hint(hint).at(key.span));
    if is_custom {
        let target = Tree {
            span: value.span,
            ..Tree::new(TreeValue::Str("kubernetes".to_owned()))
        };
        // Cannot fail: `custom` does not exist.
        let _ = spec.put(&["custom", "target"], key, target);
    }
}

/// Moves old spellings in the calls below `parent`, which holds `expect` and `onFailure`.
pub fn old_calls(parent: &mut Tree, at: &FieldPath, found: &mut Diagnostics) {
    on_failure(parent, at, found);
    let Some(TreeValue::List(items)) = parent.get_mut("expect").map(|tree| &mut tree.value) else {
        return;
    };
    for (index, item) in items.iter_mut().enumerate() {
        let at = at.field("expect").index(index);
        port_forward(item, &at, found);
        on_failure(item, &at, found);
    }
}

fn on_failure(parent: &mut Tree, at: &FieldPath, found: &mut Diagnostics) {
    if let Some(block) = parent.get_mut("onFailure") {
        port_forward(block, &at.field("onFailure"), found);
    }
}

/// The key `port-forward` of a `kubectl` block is now `portForward`.
fn port_forward(parent: &mut Tree, at: &FieldPath, found: &mut Diagnostics) {
    let Some(block) = parent.get_mut("kubectl") else {
        return;
    };
    let at = at.field("kubectl").field("port-forward");
    if block.get("port-forward").is_none() {
        return;
    }
    if block.get("portForward").is_some() {
        let message = "`port-forward` and `portForward` mean the same";
        let problem = Diagnostic::error(Code::TwoSpellings, at, message);
        found.push(problem.hint("keep `portForward`"));
        block.take(&["port-forward"]);
    } else if let Some((key, value)) = block.take(&["port-forward"]) {
        let message = "`port-forward` is another spelling of `portForward`";
        found.push(Diagnostic::warning(Code::OtherSpelling, at, message).at(key.span));
        let key = TreeKey {
            name: "portForward".to_owned(),
            span: key.span,
        };
        // Cannot fail: the key does not exist.
        let _ = block.put(&["portForward"], key, value);
    }
}
