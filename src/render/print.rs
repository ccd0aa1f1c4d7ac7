//! What was rendered, as text that kubectl can apply.

use orkestra_core::value::{Key, Map, Node};
use serde_json::{Value, json};

use super::Pass;

/// What stands for the value of a Secret. It is no base64, so that no API server takes it for one.
const MASK: &str = "***";

/// What is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Show {
    /// The values of Secrets; else each is `***`.
    pub secrets: bool,
    /// After the objects of each custom resource itself, with the status that the pass would write.
    pub status: bool,
}

/// A YAML stream: of each custom resource the objects in the order of their creation, and comments on what is left out.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn to_yaml(passes: &[Pass], show: Show) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for pass in passes {
        text.push_str(&comment(&pass.resource));
        for child in &pass.preview.left_out {
            text.push_str(&comment(&format!("left out: {child}")));
        }
        for key in &pass.preview.deleted {
            text.push_str(&comment(&format!("deleted: {key}")));
        }
        for object in objects(pass, show) {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(&object)?);
        }
    }
    Ok(text)
}

/// A `List` of the same objects.
pub fn to_json(passes: &[Pass], show: Show) -> Value {
    let items: Vec<Value> = passes.iter().flat_map(|pass| objects(pass, show)).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Whether anything is hidden that [`Show::secrets`] shows.
pub fn hides(passes: &[Pass]) -> bool {
    let mut objects = passes.iter().flat_map(|pass| &pass.preview.objects);
    objects.any(is_secret)
}

fn objects(pass: &Pass, show: Show) -> impl Iterator<Item = Value> {
    let status = show.status.then_some(&pass.preview.cr);
    let objects = pass.preview.objects.iter().chain(status);
    objects.map(move |object| {
        if is_secret(object) && !show.secrets {
            masked(object).to_json()
        } else {
            object.to_json()
        }
    })
}

fn is_secret(object: &Node) -> bool {
    let is = |field, wanted| object.get(field).and_then(Node::as_str) == Some(wanted);
    is("apiVersion", "v1") && is("kind", "Secret")
}

/// A Secret without its values.
fn masked(secret: &Node) -> Node {
    let mask = |(key, value): (&Key, &Node)| {
        let hidden = matches!(key.as_str(), "data" | "stringData");
        let value = match value {
            Node::Map(values) if hidden => values
                .keys()
                .map(|key| (key.clone(), Node::from(MASK)))
                .collect::<Map>()
                .into(),
            _ if hidden => Node::from(MASK),
            value => value.clone(),
        };
        (key.clone(), value)
    };
    match secret {
        Node::Map(map) => Node::Map(map.iter().map(mask).collect()),
        other => other.clone(),
    }
}

/// A comment of one line, whatever the text holds.
fn comment(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("# {line}\n")
}
