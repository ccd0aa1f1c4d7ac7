//! `docs/reference/profiles.md`: the built-in profiles.

use std::fmt::Write as _;

use super::built_in_profiles;
use orkestra_language::api::Profiles;

/// Returns the built-in profiles in Markdown, a table for each class.
pub fn profiles_markdown() -> String {
    let mut out = "<!-- Generated from crates/compiler/src/scope/profiles.yaml: UPDATE=1 cargo test -p orkestra-compiler --lib profiles -->\n\
         # Built-in profiles\n\n\
         A `profile` sets the fields that are listed here. A profile and its fields are mutually exclusive, except for those of a \
         reconciler and the numbers of an `hpa`: there, explicit fields take precedence. A name is looked up in the `profiles` of the \
         Katalog and of the Motifs that it imports, then in these tables. Names are not case-sensitive.\n"
        .to_owned();
    let all = serde_json::to_value(built_in_profiles()).unwrap_or_default();
    for (class, field) in Profiles::CLASSES {
        let Some(profiles) = all[class].as_array() else {
            continue;
        };
        let _ = write!(
            out,
            "\n## {class}\n\nFor `{field}`.\n\n| Name | Fields | |\n| --- | --- | --- |\n"
        );
        for profile in profiles {
            let fields = profile.as_object().into_iter().flatten();
            let fields: Vec<String> = fields
                .filter(|(key, _)| !matches!(key.as_str(), "name" | "description"))
                .map(|(key, value)| format!("`{key}: {}`", flow_style(value)))
                .collect();
            let text = |key: &str| profile[key].as_str().unwrap_or_default();
            let (name, description) = (text("name"), text("description"));
            let _ = writeln!(
                out,
                "| `{name}` | {} | {description} |",
                fields.join("<br>")
            );
        }
    }
    out
}

/// Formats a value in YAML's flow style, without quotes.
fn flow_style(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow_style).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key}: {}", flow_style(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_document_is_current() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/reference/profiles.md");
        let expected = profiles_markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == expected,
            "docs/reference/profiles.md is stale; run the test again with UPDATE=1"
        );
    }
}
