//! Explains texts that are not quantities: the API server answers an invalid quantity like an internal error.
//!
//! Source: Kubernetes, "Resource units in Kubernetes"; k8s.io/apimachinery, `resource.ParseQuantity`.

use orkestra_object::value::{Node, Quantity, QuantityError};

/// Returns why a literal is not a quantity, and a suggestion.
pub(crate) fn explain_amount(text: &str) -> Option<(String, Option<String>)> {
    explain(&Node::from(text))
}

/// Returns why a value is not a quantity, and a suggestion; `None` if it is valid, or left out because it is empty. A
/// quantity that is too large is valid to the API server, which caps it.
pub(crate) fn explain(node: &Node) -> Option<(String, Option<String>)> {
    let text = node.to_text();
    let text = text.trim();
    if text.is_empty() || matches!(node, Node::List(_) | Node::Map(_)) {
        return None;
    }
    let error = match text.parse::<Quantity>() {
        Ok(_) | Err(QuantityError::TooLarge) => return None,
        Err(error) => error,
    };
    let message = format!("`{}` is not a quantity: {error}", shortened(text));
    Some((message, meant(text)))
}

/// Suggests quantities for a text with the suffixes of other programs: `5GB`, `512mb`, `1 Gi`.
fn meant(text: &str) -> Option<String> {
    let (number, suffix) = text.split_at(text.find(|one: char| one.is_ascii_alphabetic())?);
    let mut letters = suffix.trim().chars();
    let power = letters.next()?.to_ascii_uppercase();
    let is_binary = match letters.as_str() {
        "" | "b" | "B" => false,
        "i" | "ib" | "iB" | "I" | "IB" => true,
        _ => return None,
    };
    let written = |suffix: String| {
        let text = format!("{}{suffix}", number.trim());
        text.parse::<Quantity>().is_ok().then_some(text)
    };
    let binary = written(format!("{power}i"))?;
    if is_binary {
        return Some(format!("write `{binary}`"));
    }
    let decimal = written(match power {
        'K' => "k".to_owned(),
        power => power.to_string(),
    })?;
    Some(format!(
        "write `{decimal}`, in powers of 10, or `{binary}`, in powers of 2"
    ))
}

/// Truncates a text.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_other_programs_are_explained() {
        for (text, hint) in [
            (
                "5GB",
                Some("write `5G`, in powers of 10, or `5Gi`, in powers of 2"),
            ),
            (
                "512mb",
                Some("write `512M`, in powers of 10, or `512Mi`, in powers of 2"),
            ),
            (
                "64KB",
                Some("write `64k`, in powers of 10, or `64Ki`, in powers of 2"),
            ),
            ("1.5 GiB", Some("write `1.5Gi`")),
            ("2gi", Some("write `2Gi`")),
            ("5 cores", None),
            ("much", None),
            ("-", None),
        ] {
            let (message, found) = explain(&Node::from(text)).unwrap();
            assert!(message.contains(text), "{message}");
            assert_eq!(found.as_deref(), hint, "{text}");
        }
    }

    #[test]
    fn what_the_api_server_takes_is_no_problem() {
        for text in ["5G", "250m", "1e3", "0.5", "2Ei", "+3", "", "  ", "1e40"] {
            assert_eq!(explain(&Node::from(text)), None, "{text}");
        }
        assert_eq!(explain(&Node::Int(2)), None);
    }
}
