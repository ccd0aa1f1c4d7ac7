//! What was rendered, as text that kubectl can apply.

use serde_json::{Value, json};

use super::{
    Pass,
    hide::{is_secret, masked},
};

/// What is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Show {
    /// The values of Secrets, and what depends on them; else each is `***`.
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
    passes.iter().any(|pass| {
        let Pass {
            preview, hidden, ..
        } = pass;
        preview.objects.iter().any(is_secret)
            || (&preview.objects, &preview.cr) != (&hidden.objects, &hidden.cr)
    })
}

fn objects(pass: &Pass, show: Show) -> impl Iterator<Item = Value> {
    let preview = if show.secrets {
        &pass.preview
    } else {
        &pass.hidden
    };
    let status = show.status.then_some(&preview.cr);
    let objects = preview.objects.iter().chain(status);
    objects.map(move |object| {
        if is_secret(object) && !show.secrets {
            masked(object).to_json()
        } else {
            object.to_json()
        }
    })
}

/// A comment of one line, whatever the text holds.
fn comment(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("# {line}\n")
}
