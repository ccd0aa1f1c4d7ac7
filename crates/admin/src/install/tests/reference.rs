//! Generates the page of the chart's values from the comments in `values.yaml`.

use std::fmt::Write as _;

use serde_json::Value;

/// A value of the chart.
pub(crate) struct Row {
    /// Its path: the keys, separated by dots.
    pub(crate) path: String,
    /// Its default, as YAML in one line.
    pub(crate) default: String,
    /// Its comment.
    pub(crate) description: String,
}

/// Returns the values that have a comment, and the values of maps without a comment.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let values: Value = serde_saphyr::from_str(text).unwrap();
    let mut rows: Vec<Row> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    // The indentation of a map whose lines are skipped, since its comment describes it as a whole.
    let mut whole: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let content = line.trim();
        if content.is_empty() || whole.is_some_and(|whole| indent > whole) {
            continue;
        }
        whole = None;
        if let Some(words) = content.strip_prefix('#') {
            comment.push(words.trim());
            continue;
        }
        let key = content.split(':').next().unwrap().trim();
        above.retain(|(at, _)| *at < indent);
        above.push((indent, key.to_owned()));
        let keys: Vec<&str> = above.iter().map(|(_, key)| key.as_str()).collect();
        let value = keys.iter().fold(&values, |value, key| &value[*key]);
        if comment.is_empty() && value.is_object() {
            continue;
        }
        whole = Some(indent);
        rows.push(Row {
            path: keys.join("."),
            default: value.to_string(),
            description: std::mem::take(&mut comment).join(" "),
        });
    }
    rows
}

/// Returns true if the schema describes the value at `path`.
pub(crate) fn is_in(schema: &Value, path: &str) -> bool {
    let found = path
        .split('.')
        .try_fold(schema, |schema, key| schema["properties"].get(key));
    found.is_some()
}

/// Returns the paths that the schema describes.
pub(crate) fn paths(schema: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let below = paths(inner);
        if below.is_empty() {
            all.push(key.clone());
        }
        all.extend(below.iter().map(|path| format!("{key}.{path}")));
    }
    all
}

/// Returns the page as Markdown.
pub(crate) fn page(rows: &[Row]) -> String {
    let mut page = String::from(
        "<!-- Generated from values.yaml: UPDATE=1 cargo test -p orkestra-admin --lib install -->\n# Chart `orkestra`\n\n\
         Installs Orkestra. [docs/operate/install.md](../../docs/operate/install.md) describes installation, upgrade and removal, with this chart and\n\
         by other ways, and how to push an image.\n\n\
         ```sh\nhelm upgrade --install orkestra charts/orkestra --namespace orkestra-system --create-namespace --set image.repository=registry.example/orkestra\n```\n\n\
         ## Values\n\n| Value | Default | Description |\n| --- | --- | --- |\n",
    );
    for Row {
        path,
        default,
        description,
    } in rows
    {
        let default = default.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{path}` | `{default}` | {} |",
            description.replace('|', "\\|")
        );
    }
    page
}
