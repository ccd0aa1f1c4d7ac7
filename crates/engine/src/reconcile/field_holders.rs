//! Other owners of the custom resource's fields that `normalize` would change.
//!
//! The operator does not write a field that another client declares: `kubectl apply`, the apply of another field manager, and
//! `GitOps` tools restore their declared value, so that both would write the field again and again.

use super::{
    metadata::in_metadata,
    owned::{OwnValues, Ownership, PathElement},
};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};

/// The prefixes of labels and annotations by which `GitOps` tools track objects, with the tool.
///
/// Source: Argo CD, "Resource Tracking"; Flux, labels of the Kustomization and `HelmRelease` controllers.
const MARKS: [(&str, &str); 3] = [
    ("argocd.argoproj.io/", "Argo CD"),
    ("kustomize.toolkit.fluxcd.io/", "Flux"),
    ("helm.toolkit.fluxcd.io/", "Flux"),
];

/// A label by which Argo CD tracks objects, and which others use as well: its writer decides.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The annotation in which client-side `kubectl apply` keeps the last applied object, as JSON.
///
/// Source: Kubernetes, "Declarative Management of Kubernetes Objects Using Configuration Files".
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The prefix of Argo CD's field managers.
const ARGO: &str = "argocd";

/// The reasons why fields of a custom resource must not be written, for requested fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// The tool or controller that manages the whole object, as text.
    pub object: Option<Box<str>>,
    /// The holders of single fields, as text.
    pub fields: Box<[(Path, Box<str>)]>,
}

/// The root of paths that request the holder of a field. No object has it, so it adds nothing to the record's view.
const ROOT: &str = "$holds";

/// Returns the path that requests the holder of the field at `path`.
pub fn request_path(path: &Path) -> Path {
    std::iter::once(PathStep::Field(Key::from(ROOT)))
        .chain(path.steps().iter().cloned())
        .collect()
}

/// Returns the path of the field in such a request.
fn requested_path(path: &Path) -> Option<Path> {
    let root = request_path(&Path::root());
    let rest = path.steps().get(root.steps().len()..)?;
    (path.starts_with(&root) && !rest.is_empty()).then(|| rest.iter().cloned().collect())
}

/// True if any of the paths requests the holder of a field.
pub(crate) fn is_asked(paths: &[Path]) -> bool {
    paths.iter().any(|path| requested_path(path).is_some())
}

/// Returns the fields that [`Holds::read`] reads beside the managed fields. For a requested field this is the whole tree
/// around it: a value in place of a map holds the field.
pub(crate) fn read_paths(paths: &[Path]) -> Vec<Path> {
    let asked = paths.iter().filter_map(requested_path);
    let mut roots: Vec<Path> = asked
        .map(|path| path.steps().iter().take(1).cloned().collect())
        .collect();
    if !roots.is_empty() {
        roots.extend(
            ["labels", "annotations", "ownerReferences"].map(|field| in_metadata(&[field])),
        );
    }
    roots
}

impl Holds {
    /// Reads the holders of the fields of `object` that `paths` request, see [`request_path`]; none if nothing is requested.
    pub(crate) fn read(object: &Node, paths: &[Path]) -> Option<Box<Self>> {
        let mut asked: Vec<Path> = paths.iter().filter_map(requested_path).collect();
        if asked.is_empty() {
            return None;
        }
        asked.sort();
        let managed = object.meta("managedFields");
        let ownership = Ownership::read(
            managed,
            OwnValues {
                name: "",
                owner: None,
            },
        );
        let applied = last_applied(object);
        let fields = asked.into_iter().filter_map(|path| {
            let declared = || {
                let applied = applied.as_ref()?;
                declares(applied, &path).then(|| "`kubectl apply` declares it".to_owned())
            };
            let why = why_held(object, &ownership, &path).or_else(declared)?;
            Some((path, why.into()))
        });
        Some(Box::new(Self {
            object: looked_after(object).map(Box::from),
            fields: fields.collect(),
        }))
    }

    /// Returns the bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let fields = self.fields.iter();
        let fields = fields.map(|(path, why)| {
            size_of::<(Path, Box<str>)>() + size_of_val(path.steps()) + why.len()
        });
        size_of::<Self>() + self.object.as_deref().map_or(0, str::len) + fields.sum::<usize>()
    }

    /// Returns the holder of the field at `path`.
    pub fn of(&self, path: &Path) -> Option<&str> {
        let field = self.fields.iter().find(|(held, _)| held == path);
        let field = field.map(|(_, why)| &**why);
        field.or(self.object.as_deref())
    }
}

/// Returns why the field at `path` cannot be written.
fn why_held(object: &Node, ownership: &Ownership, path: &Path) -> Option<String> {
    let keys: Vec<&Key> = path
        .steps()
        .iter()
        .filter_map(|step| match step {
            PathStep::Field(key) => Some(key),
            PathStep::Index(_) => None,
        })
        .collect();
    let mut node = Some(object);
    for (depth, key) in keys.iter().enumerate() {
        if let Some(parent) = node.filter(|parent| !matches!(parent, Node::Map(_) | Node::Null)) {
            let parents: Path = path.steps().iter().take(depth).cloned().collect();
            return Some(format!("`{parents}` is {}", called(parent)));
        }
        node = node.and_then(|node| node.get(key));
    }
    let trail: Vec<PathElement<'_>> = keys.into_iter().map(PathElement::Field).collect();
    let own = OwnValues {
        name: "",
        owner: None,
    };
    let manager = ownership.applier(&trail, own)?;
    Some(format!("`{manager}` applies it"))
}

/// Returns what client-side `kubectl apply` applied last; none if that is unknown or unreadable.
fn last_applied(object: &Node) -> Option<Node> {
    serde_json::from_str(object.annotation(LAST_APPLIED)?).ok()
}

/// True if `applied` has a value at `path`, or a value that is not a map on the way.
fn declares(applied: &Node, path: &Path) -> bool {
    let mut node = applied;
    for step in path.steps() {
        let PathStep::Field(key) = step else {
            return true;
        };
        match node {
            Node::Map(map) => match map.get(key) {
                Some(below) => node = below,
                None => return false,
            },
            _ => return true,
        }
    }
    true
}

fn called(node: &Node) -> &'static str {
    if matches!(node, Node::List(_)) {
        "a list"
    } else {
        "a value"
    }
}

/// Returns the tool or controller that restores the object to its declared state.
fn looked_after(object: &Node) -> Option<String> {
    let meta = object.get("metadata")?;
    let marks = ["labels", "annotations"].into_iter().filter_map(|kind| {
        let mut keys = meta.get(kind)?.as_map()?.keys();
        keys.find_map(|key| {
            let (_, tool) = MARKS.iter().find(|(mark, _)| key.starts_with(mark))?;
            Some(format!("{tool} tracks the resource (`{key}`)"))
        })
    });
    marks
        .into_iter()
        .next()
        .or_else(|| argo_instance(meta))
        .or_else(|| controller(meta))
}

/// Returns Argo CD, if it wrote the label by which it tracks objects.
fn argo_instance(meta: &Node) -> Option<String> {
    meta.get("labels")?.get(INSTANCE)?;
    let entries = meta.get("managedFields")?.as_list()?.iter();
    let wrote = |entry: &&Node| {
        let manager = entry.get("manager").and_then(Node::as_str);
        let labels = entry
            .get("fieldsV1")
            .and_then(|fields| fields.get("f:metadata")?.get("f:labels")?.as_map())
            .is_some_and(|labels: &Map| labels.get(&format!("f:{INSTANCE}")).is_some());
        manager.is_some_and(|manager| manager.starts_with(ARGO)) && labels
    };
    let entry = entries.into_iter().find(wrote)?;
    let manager = entry.get("manager")?.as_str()?;
    Some(format!(
        "Argo CD tracks the resource (`{INSTANCE}`, written by `{manager}`)"
    ))
}

/// Returns the controller that created the custom resource for its own owner.
fn controller(meta: &Node) -> Option<String> {
    let owners = meta.get("ownerReferences")?.as_list()?;
    let is_controller =
        |owner: &&Node| owner.get("controller").and_then(Node::as_bool) == Some(true);
    let owner = owners.iter().find(is_controller)?;
    let text = |field| owner.get(field).and_then(Node::as_str).unwrap_or_default();
    Some(format!(
        "{} {} controls the resource",
        text("kind"),
        text("name")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn holds(metadata: &Value) -> Holds {
        let object = json!({ "metadata": metadata, "spec": { "a": { "b": "x" }, "list": [1], "text": "t" } });
        let paths = ["spec.a.b", "spec.list.x", "spec.new.field"]
            .map(|path| request_path(&Path::parse(path).unwrap()));
        *Holds::read(&Node::from(&object), &paths).unwrap()
    }

    fn of<'a>(holds: &'a Holds, path: &str) -> Option<&'a str> {
        holds.of(&Path::parse(path).unwrap())
    }

    #[test]
    fn nobody_is_asked_for_nothing() {
        let paths = [
            Path::parse("spec.a").unwrap(),
            Path::parse("metadata.name").unwrap(),
        ];
        assert_eq!(Holds::read(&Node::object([]), &paths), None);
    }

    #[test]
    fn a_list_or_a_value_on_the_way_is_left_alone() {
        let holds = holds(&json!({}));
        assert_eq!(of(&holds, "spec.list.x"), Some("`spec.list` is a list"));
        assert_eq!(of(&holds, "spec.a.b"), None);
        assert_eq!(of(&holds, "spec.new.field"), None);
    }

    #[test]
    fn an_applier_holds_what_it_applies_and_a_writer_does_not() {
        let entry = |manager: &str, operation: &str, subresource: &str| {
            json!({
                "manager": manager, "operation": operation, "subresource": subresource,
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:a": { "f:b": {} } } },
            })
        };
        let by = |entry: Value| holds(&json!({ "managedFields": [entry] }));
        let applied = by(entry("kubectl", "Apply", ""));
        assert_eq!(of(&applied, "spec.a.b"), Some("`kubectl` applies it"));
        assert_eq!(of(&applied, "spec.new.field"), None);
        let other_operator = by(entry("orkestra/lakes.water.example", "Apply", ""));
        assert_eq!(
            of(&other_operator, "spec.a.b"),
            Some("`orkestra/lakes.water.example` applies it")
        );
        assert_eq!(
            of(&by(entry("kubectl-edit", "Update", "")), "spec.a.b"),
            None
        );
    }

    #[test]
    fn kubectl_apply_holds_what_its_last_configuration_declares() {
        let by = |applied: &str| holds(&json!({ "annotations": { LAST_APPLIED: applied } }));
        let why = Some("`kubectl apply` declares it");
        let applied = by(r#"{"spec":{"a":{"b":"X"},"new":null}}"#);
        assert_eq!(of(&applied, "spec.a.b"), why);
        assert_eq!(of(&applied, "spec.new.field"), why, "null above it");
        assert_eq!(of(&by(r#"{"spec":{"a":{"c":1}}}"#), "spec.a.b"), None);
        assert_eq!(of(&by("{"), "spec.a.b"), None);
    }

    #[test]
    fn gitops_tools_and_controllers_look_after_the_whole_resource() {
        let argo_wrote = json!([{ "manager": "argocd-controller", "operation": "Update",
            "fieldsV1": { "f:metadata": { "f:labels": { "f:app.kubernetes.io/instance": {} } } } }]);
        let cases = [
            (
                json!({ "annotations": { "argocd.argoproj.io/tracking-id": "x" } }),
                "Argo CD tracks the resource (`argocd.argoproj.io/tracking-id`)",
            ),
            (
                json!({ "labels": { "kustomize.toolkit.fluxcd.io/name": "x" } }),
                "Flux tracks the resource (`kustomize.toolkit.fluxcd.io/name`)",
            ),
            (
                json!({ "labels": { "helm.toolkit.fluxcd.io/name": "x" } }),
                "Flux tracks the resource (`helm.toolkit.fluxcd.io/name`)",
            ),
            (
                json!({ "labels": { "app.kubernetes.io/instance": "x" }, "managedFields": argo_wrote }),
                "Argo CD tracks the resource (`app.kubernetes.io/instance`, written by `argocd-controller`)",
            ),
            (
                json!({ "ownerReferences": [{ "kind": "Shop", "name": "books", "controller": true }] }),
                "Shop books controls the resource",
            ),
        ];
        for (metadata, reported) in cases {
            let holds = holds(&metadata);
            assert_eq!(of(&holds, "spec.a.b"), Some(reported));
            assert_eq!(
                of(&holds, "spec.list.x"),
                Some("`spec.list` is a list"),
                "a list takes precedence"
            );
        }
        let chart = json!({ "labels": { "app.kubernetes.io/instance": "x" }, "ownerReferences": [{ "kind": "Shop", "name": "books" }] });
        assert_eq!(of(&holds(&chart), "spec.a.b"), None);
    }
}
