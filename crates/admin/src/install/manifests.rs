//! Values and the chart to objects.

use orkestra_charts::{
    Budget, Capabilities, Release, merge_values, read_values, render as render_chart,
};
use orkestra_object::value::{Key, Map, Node};

use super::{Error, Inventory, ManifestObject, RELEASE, chart};
use crate::published;

/// What to install.
#[derive(Clone, Debug)]
pub struct ManifestsRequest {
    /// The namespace.
    pub namespace: String,
    /// The values, of which later ones override earlier ones.
    pub values: Vec<Node>,
    /// What the cluster serves.
    pub capabilities: Capabilities,
}

/// The objects of an installation.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The objects in the order in which they are applied: the namespace first, then the inventory.
    pub objects: Vec<ManifestObject>,
    /// The text of the chart's `NOTES.txt`.
    pub notes: String,
}

/// Why an argument of `--set` is refused.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// It has no `=`, or an empty part.
    #[error("{0:?}: expected PATH=VALUE, such as image.tag=1.2.0")]
    Form(String),
    /// The value is not YAML.
    #[error("{0:?}: the value is not valid YAML: {1}")]
    Value(String, orkestra_charts::Error),
}

/// Returns the values of an image, `repository`, `repository:tag` or `repository@digest`.
///
/// # Errors
/// [`ImageError`].
pub fn image_values(reference: &str) -> Result<Node, ImageError> {
    let refused = || ImageError(reference.to_owned());
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    // The colon of a port precedes the last slash.
    let name = rest.rfind('/').map_or(0, |at| at + 1);
    let (repository, tag) = match rest[name..].split_once(':') {
        Some((path, tag)) => (&rest[..name + path.len()], Some(tag)),
        None => (rest, None),
    };
    let is_hex = |digest: &str| {
        let hex = digest.strip_prefix("sha256:");
        hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let is_text = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    let is_valid = is_text(repository)
        && !repository.contains("://")
        && tag.is_none_or(|tag| is_text(tag) && !tag.contains('/'))
        && digest.is_none_or(is_hex);
    if !is_valid {
        return Err(refused());
    }
    let values = [
        ("repository", repository),
        ("tag", tag.unwrap_or_default()),
        ("digest", digest.unwrap_or_default()),
    ];
    let values = values.map(|(key, value)| (key, Node::from(value)));
    Ok(Node::object([("image", Node::object(values))]))
}

/// The text does not name an image.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an image: expected one such as registry.example/orkestra:0.1.0, or registry.example/orkestra@sha256:…"
)]
pub struct ImageError(String);

/// Renders the chart of the binary. The namespace is part of the result unless the values say otherwise.
///
/// # Errors
/// The values are refused, or the cluster is too old.
pub fn render(request: &ManifestsRequest) -> Result<Manifests, Error> {
    let mut values = set("namespace.create", Node::Bool(true)).unwrap_or(Node::Null);
    if let Some(image) = published::IMAGE.and_then(|image| image_values(image).ok()) {
        merge_values(&mut values, &image);
    }
    for layer in &request.values {
        merge_values(&mut values, layer);
    }
    let chart = chart::chart()?;
    let mut release = Release::new(RELEASE);
    release.namespace.clone_from(&request.namespace);
    let rendered = render_chart(
        &chart,
        &values,
        &release,
        &request.capabilities,
        &Budget::default(),
    )
    .map_err(chart::ChartError::from)?;
    let mut objects = Vec::new();
    for document in rendered.documents {
        if document.object != Node::Null {
            objects.push(ManifestObject::read(&document.source, document.object)?);
        }
    }
    let inventory = Inventory::of(&objects).object(&request.namespace);
    let first = objects
        .iter()
        .position(|object| !object.is("", "Namespace"));
    objects.insert(first.unwrap_or(objects.len()), inventory);
    Ok(Manifests {
        objects,
        notes: rendered.notes.unwrap_or_default(),
    })
}

impl ManifestsRequest {
    /// Adds `PATH=VALUE`: the path has dots between its keys (`\.` is a dot in a key), the value is read as in a values file.
    ///
    /// # Errors
    /// It has another form.
    pub fn set(&mut self, argument: &str) -> Result<(), SetError> {
        let form = || SetError::Form(argument.to_owned());
        let (path, value) = argument.split_once('=').ok_or_else(form)?;
        let read = read_values(&format!("value: {value}\n"));
        let read = read.map_err(|error| SetError::Value(argument.to_owned(), error))?;
        let value = read.get("value").cloned().unwrap_or(Node::Null);
        self.values.push(set(path, value).ok_or_else(form)?);
        Ok(())
    }
}

/// Returns values with one value; `None` if a key is empty.
fn set(path: &str, value: Node) -> Option<Node> {
    let mut keys = vec![String::new()];
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        let last = keys.last_mut()?;
        match letter {
            '\\' => last.push(letters.next()?),
            '.' => keys.push(String::new()),
            letter => last.push(letter),
        }
    }
    if keys.iter().any(|key| key.trim().is_empty()) {
        return None;
    }
    Some(keys.iter().rev().fold(value, |inner, key| {
        let mut map = Map::default();
        map.insert(Key::new(key.trim()), inner);
        Node::Map(map)
    }))
}
