//! Objects from files.

use std::path::PathBuf;

use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{Source, Tree, TreeValue, parse_stream},
};
use orkestra_object::value::Node;

use super::Rendered;
use orkestra_loader::files::find;

/// An object of a file.
#[derive(Debug)]
pub(crate) struct FileObject {
    pub(crate) node: Node,
    file: Option<String>,
    /// Its values with their positions; none if it is not from a file.
    tree: Option<Tree>,
}

impl FileObject {
    fn of(tree: &Tree, file: Option<&String>) -> Self {
        Self {
            node: Node::from(&tree.to_json()),
            file: file.cloned(),
            tree: Some(tree.clone()),
        }
    }

    /// An object that is not from a file.
    pub(crate) fn live(node: Node) -> Self {
        Self {
            node,
            file: None,
            tree: None,
        }
    }

    /// Sets the positions of problems of the object's fields.
    pub(crate) fn locate(&self, problems: &mut Diagnostics) {
        if let Some(tree) = &self.tree {
            problems.locate(tree, self.file.as_deref());
        }
    }

    /// A problem of the object.
    pub(crate) fn problem(
        &self,
        code: Code,
        path: FieldPath,
        message: impl Into<String>,
    ) -> Diagnostic {
        let span = self.tree.as_ref().and_then(|tree| tree.locate(&path));
        let mut problem = Diagnostic::error(code, path, message).at(span);
        problem.file.clone_from(&self.file);
        problem
    }

    /// Returns a text field.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.node
            .get(field)
            .and_then(Node::as_str)
            .unwrap_or_default()
    }

    /// True if the object is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.node.meta("deletionTimestamp").is_some()
    }

    /// Returns the API group and the version.
    pub(crate) fn group_version(&self) -> (&str, &str) {
        let version = self.text("apiVersion");
        version.split_once('/').unwrap_or(("", version))
    }
}

/// Reads the objects of files, with the items of a `List` as separate objects; each has `apiVersion`, `kind` and a name.
pub(crate) fn read_objects(paths: &[PathBuf], rendered: &mut Rendered) -> Vec<FileObject> {
    let documents = read_documents(paths, rendered);
    let mut objects = Vec::new();
    for document in documents {
        let items = document.tree.as_ref().and_then(|tree| tree.get("items"));
        match items.map(|items| &items.value) {
            Some(TreeValue::List(items)) if document.text("kind").ends_with("List") => {
                let items = items.iter();
                objects.extend(items.map(|item| FileObject::of(item, document.file.as_ref())));
            }
            _ => objects.push(document),
        }
    }
    for object in &objects {
        if let Some(problem) = incomplete(object) {
            rendered.problems.push(problem);
        }
    }
    objects
}

fn incomplete(object: &FileObject) -> Option<Diagnostic> {
    let name = object.node.meta_text("name");
    let fields = [
        ("apiVersion", object.text("apiVersion")),
        ("kind", object.text("kind")),
        ("metadata.name", name.unwrap_or_default()),
    ];
    let (missing, _) = fields.iter().find(|(_, text)| text.is_empty())?;
    let message = format!("the object has no `{missing}`");
    Some(object.problem(Code::Missing, FieldPath::parse(missing), message))
}

/// Reads the documents of files; a file without documents is a problem.
pub(crate) fn read_documents(paths: &[PathBuf], rendered: &mut Rendered) -> Vec<FileObject> {
    let mut documents = Vec::new();
    for path in paths {
        for file in find(path, &mut std::collections::BTreeSet::new()) {
            let file = match file {
                Ok(file) => file,
                Err(problem) => {
                    rendered.problems.push(*problem);
                    continue;
                }
            };
            let stream = parse_stream(&file.name, &file.text);
            if stream.sources.is_empty() && stream.problems.is_empty() {
                let message = "the file has no object";
                let mut problem = Diagnostic::error(Code::NoDocument, FieldPath::root(), message);
                problem.file = Some(file.name.clone());
                rendered.problems.push(problem);
            }
            rendered.problems.extend(stream.problems);
            let of = |source: &Source| FileObject::of(&source.tree, source.file.as_ref());
            documents.extend(stream.sources.iter().map(of));
            rendered.texts.insert(file.name, file.text);
        }
    }
    documents
}

/// Returns the status of a document: its `status` field, or the complete document.
pub(crate) fn status_of(document: &Node) -> Node {
    document.get("status").unwrap_or(document).clone()
}
