//! Literal values with a Kubernetes format: quantities and image references.

use super::amount::explain_amount;
use crate::scope::At;
use orkestra_language::{api::scalar::Text, diagnostics::Code};
use orkestra_object::value::Quantity;
use orkestra_plan::{Coerce, ObjectTree};
use orkestra_template::is_image_reference;

/// Fewer bytes of memory or storage than this indicate a wrong suffix.
const FEW_BYTES: f64 = 1024.0;
/// No node has more CPUs than this.
const MANY_CPUS: f64 = 10_000.0;

/// Compiles the quantity of a resource, such as `cpu` or `memory`.
pub(crate) fn amount(at: &At<'_>, resource: &str, text: &Text) -> Option<ObjectTree> {
    if !text.contains("{{") {
        let literal = text.trim();
        if let Some((message, hint)) = explain_amount(literal) {
            match hint {
                Some(hint) => at.error_hint(Code::WrongValue, message, hint),
                None => at.error(Code::WrongValue, message),
            }
            return None;
        }
        if let Some((message, hint)) = odd(resource, literal) {
            at.warn_hint(Code::OddAmount, message, hint);
        }
    }
    at.value(text, Coerce::OptionalText)
}

/// Returns why a quantity is suspicious, and a suggestion.
fn odd(resource: &str, text: &str) -> Option<(String, String)> {
    let units = text.parse::<Quantity>().ok()?.as_f64();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    // Quotas use names such as `requests.memory`.
    let resource = resource.rsplit('.').next().unwrap_or_default();
    if resource == "cpu" {
        let message = format!("`{text}` is more CPU than a node has");
        let hint =
            format!("write `{number}m` for thousandths of a CPU, or `{number}` for whole ones");
        return (units >= MANY_CPUS).then_some((message, hint));
    }
    let is_bytes = ["memory", "storage", "ephemeral-storage"].contains(&resource);
    if !is_bytes || units <= 0.0 || units >= FEW_BYTES {
        return None;
    }
    let (message, unit) = if text.ends_with('m') {
        (format!("`{text}` is thousandths of a byte"), "Mi")
    } else {
        let unit = if resource.ends_with("storage") {
            "Gi"
        } else {
            "Mi"
        };
        (format!("`{text}` is a number of bytes"), unit)
    };
    Some((message, format!("write `{number}{unit}`")))
}

/// Reports a text that is not a valid image reference.
pub(crate) fn check_image(at: &At<'_>, text: &str) {
    let text = text.trim();
    if text.is_empty()
        || text.contains(['@', '$'])
        || text.contains("{{")
        || is_image_reference(text)
    {
        return;
    }
    let message = format!("`{text}` is not a valid image reference");
    at.warn_hint(Code::BadImage, message, meant(text));
}

/// Suggests an image reference, or describes the format.
fn meant(text: &str) -> String {
    let bare = text.split_once("://").map_or(text, |(_, bare)| bare);
    let bare = bare.trim_end_matches([':', '/']);
    let lower = match bare.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => format!("{}:{tag}", name.to_lowercase()),
        _ => bare.to_lowercase(),
    };
    let joined = lower.split_whitespace().collect::<Vec<_>>().join(":");
    let candidates = [bare.to_owned(), lower, joined];
    match candidates
        .iter()
        .find(|candidate| is_image_reference(candidate))
    {
        Some(meant) => format!("write `{meant}`"),
        None => "an image is `registry/name:tag`, in lower case and without white space".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_another_order_of_magnitude_are_odd() {
        for (resource, text, hint) in [
            ("memory", "512m", "write `512Mi`"),
            ("requests.memory", "128", "write `128Mi`"),
            ("storage", "10", "write `10Gi`"),
            (
                "cpu",
                "500Mi",
                "write `500m` for thousandths of a CPU, or `500` for whole ones",
            ),
            (
                "cpu",
                "2G",
                "write `2m` for thousandths of a CPU, or `2` for whole ones",
            ),
        ] {
            assert_eq!(
                odd(resource, text).map(|(_, hint)| hint).as_deref(),
                Some(hint),
                "{text}"
            );
        }
        for (resource, text) in [
            ("memory", "64Mi"),
            ("memory", "0"),
            ("cpu", "500m"),
            ("cpu", "2"),
            ("cpu", "1k"),
            ("nvidia.com/gpu", "1"),
            ("pods", "10"),
        ] {
            assert_eq!(odd(resource, text), None, "{resource}: {text}");
        }
    }

    #[test]
    fn the_image_that_was_meant_is_a_reference() {
        for (text, hint) in [
            (
                "https://registry.example/web:1",
                "write `registry.example/web:1`",
            ),
            ("Nginx", "write `nginx`"),
            ("nginx:", "write `nginx`"),
            ("nginx 1.29", "write `nginx:1.29`"),
            (
                "docker.io/Library/Web:V1",
                "write `docker.io/library/web:V1`",
            ),
            (
                "--",
                "an image is `registry/name:tag`, in lower case and without white space",
            ),
        ] {
            assert_eq!(meant(text), hint, "{text}");
        }
    }
}
