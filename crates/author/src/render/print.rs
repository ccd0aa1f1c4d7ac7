//! Prints rendered objects as text that kubectl can apply.

use serde_json::{Value, json};

use super::{
    RenderedPass,
    hide::{is_secret, masked},
};

/// What is printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Show {
    /// The values of Secrets, and everything that depends on them. Otherwise each is `***`, and an object that contains one is
    /// printed as a comment: if it were applied, it would overwrite the value.
    pub secrets: bool,
    /// Each custom resource itself after its objects, with the status that the pass would write.
    pub status: bool,
}

/// Prints a YAML stream: for each custom resource its objects in the order of creation, with comments for omitted ones.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn to_yaml(passes: &[RenderedPass], show: Show) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for pass in passes {
        text.push_str(&comment(&pass.resource));
        for child in &pass.preview.left_out {
            text.push_str(&comment(&format!("left out: {child}")));
        }
        for key in &pass.preview.deleted {
            text.push_str(&comment(&format!("deleted: {key}")));
        }
        for shown in objects(pass, show) {
            let yaml = serde_saphyr::to_string(&shown.object)?;
            if shown.is_whole {
                text.push_str("---\n");
                text.push_str(&yaml);
            } else {
                let why =
                    "not printed as an object, because values are hidden; use `--show-secrets`";
                text.push_str(&comment(&format!("{}: {why}", shown.name())));
                yaml.lines().for_each(|line| text.push_str(&comment(line)));
            }
        }
    }
    Ok(text)
}

/// Returns a `List` of the same objects, without those that are comments in YAML.
pub fn to_json(passes: &[RenderedPass], show: Show) -> Value {
    let all = passes.iter().flat_map(|pass| objects(pass, show));
    let items: Vec<Value> = all
        .filter(|shown| shown.is_whole)
        .map(|shown| shown.object)
        .collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Returns the names of objects that are printed as comments because they contain values that [`Show::secrets`] would show:
/// `Secret shop/login`.
pub fn masked_objects(passes: &[RenderedPass], show: Show) -> Vec<String> {
    let all = passes.iter().flat_map(|pass| objects(pass, show));
    all.filter(|shown| !shown.is_whole)
        .map(|shown| shown.name())
        .collect()
}

/// An object as it is printed.
struct PrintedObject {
    object: Value,
    /// Whether nothing in it is hidden.
    is_whole: bool,
}

impl PrintedObject {
    fn name(&self) -> String {
        let text = |field| self.object.pointer(field).and_then(Value::as_str);
        let kind = text("/kind").unwrap_or_default();
        let name = text("/metadata/name").unwrap_or_default();
        match text("/metadata/namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    }
}

fn objects(pass: &RenderedPass, show: Show) -> impl Iterator<Item = PrintedObject> {
    let RenderedPass {
        preview, hidden, ..
    } = pass;
    let status = show.status.then_some((&preview.cr, &hidden.cr));
    let objects = preview.objects.iter().zip(&hidden.objects).chain(status);
    objects.map(move |(object, hidden)| {
        if show.secrets {
            return PrintedObject {
                object: object.to_json(),
                is_whole: true,
            };
        }
        let shown = if is_secret(hidden) {
            masked(hidden)
        } else {
            hidden.clone()
        };
        PrintedObject {
            is_whole: shown == *object,
            object: shown.to_json(),
        }
    })
}

/// Formats text as a comment of one line, whatever it contains.
fn comment(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("# {line}\n")
}
