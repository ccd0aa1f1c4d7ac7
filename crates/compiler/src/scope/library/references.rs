//! References between documents, and the missing ones.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Component, Path},
};

use super::{Content, LibraryDocument, MOST_DOCUMENTS};
use crate::scope::Library;
use orkestra_language::{
    api::{
        KatalogSpec, MotifImport, MotifSpec, OperatorBox, Profiles,
        rules::{Admission, Mutation, Validation},
    },
    diagnostics::{Code, FieldPath},
    tree::Origin,
};

/// The expected content of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A Motif.
    Motif,
    /// A file with `profiles`.
    Profiles,
    /// A file with `status`.
    Status,
    /// A file with `reconciler`.
    Reconciler,
    /// A file with `observe`.
    Observe,
    /// A file with `validation` rules.
    Validation,
    /// A file with `mutation` rules.
    Mutation,
}

impl ReferenceKind {
    /// Returns the noun for the document in messages.
    pub(crate) fn called(self) -> &'static str {
        match self {
            Self::Motif => "Motif",
            Self::Profiles
            | Self::Status
            | Self::Reconciler
            | Self::Observe
            | Self::Validation
            | Self::Mutation => "document",
        }
    }
}

/// A reference from one document to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name of the referring document; `None` is the Katalog.
    pub from: Option<Box<str>>,
    /// The file of that document, as in messages: paths are relative to it.
    pub file: Option<Box<str>>,
    /// The expected content.
    pub part: ReferenceKind,
    /// The path or name, as declared.
    pub text: Box<str>,
}

/// Returns the missing references of the documents that `through` visits.
pub(crate) fn missing<'a>(
    library: &'a Library,
    through: impl FnOnce(&mut ReferenceWalk<'a>),
) -> Vec<Reference> {
    if library.documents.len() >= MOST_DOCUMENTS {
        return Vec::new();
    }
    let mut walk = ReferenceWalk {
        library,
        seen: BTreeSet::new(),
        missing: BTreeSet::new(),
    };
    through(&mut walk);
    walk.missing.into_iter().collect()
}

/// A field with a reference: the document, `None` for the Katalog, and the path.
struct ReferenceField<'o> {
    origin: Option<&'o Origin>,
    path: FieldPath,
}

impl<'o> ReferenceField<'o> {
    fn new(origin: Option<&'o Origin>, path: &FieldPath) -> Self {
        Self {
            origin,
            path: path.clone(),
        }
    }

    fn field(&self, name: &str) -> Self {
        Self::new(self.origin, &self.path.field(name))
    }

    fn index(&self, index: usize) -> Self {
        Self::new(self.origin, &self.path.index(index))
    }
}

/// Follows references from document to document.
pub(crate) struct ReferenceWalk<'a> {
    library: &'a Library,
    /// Motifs already visited.
    seen: BTreeSet<&'a str>,
    missing: BTreeSet<Reference>,
}

impl<'a> ReferenceWalk<'a> {
    pub(crate) fn katalog(&mut self, spec: &KatalogSpec) {
        let root = FieldPath::root().field("spec");
        self.wide(&ReferenceField::new(None, &root), spec);
        for scope in spec.scopes.0.iter() {
            self.wide(
                &ReferenceField::new(Some(&scope.origin), &root),
                &scope.spec,
            );
        }
        let root = root.field("crds");
        for (name, entry) in &spec.crds {
            let origin = spec.scopes.of(name).map(|scope| &*scope.origin);
            let at = ReferenceField::new(origin, &root.field(name));
            self.motifs(&at.field("imports"), &entry.imports);
            self.rules(&at, entry.validation.as_ref(), entry.mutation.as_ref());
            let Some(OperatorBox {
                status,
                reconciler,
                observe,
                ..
            }) = &entry.operator_box
            else {
                continue;
            };
            let status = status.as_ref().and_then(|status| status.include.as_ref());
            let reconciler = reconciler
                .as_ref()
                .and_then(|reconciler| reconciler.include.as_ref());
            let observe = observe
                .as_ref()
                .and_then(|observe| observe.include.as_ref());
            let at = at.field("operatorBox");
            for (part, field, include) in [
                (ReferenceKind::Status, "status", status),
                (ReferenceKind::Reconciler, "reconciler", reconciler),
                (ReferenceKind::Observe, "observe", observe),
            ] {
                if let Some(text) = include {
                    self.ask(&at.field(field).field("include"), part, text);
                }
            }
        }
    }

    /// Visits what the entries of a Katalog share.
    fn wide(&mut self, at: &ReferenceField<'_>, spec: &KatalogSpec) {
        self.motifs(&at.field("imports"), &spec.imports);
        self.profiles(at, spec.profiles.as_ref());
    }

    pub(crate) fn motif(&mut self, from: Option<&Origin>, motif: &MotifSpec) {
        let from = &ReferenceField::new(from, &FieldPath::root().field("spec"));
        self.motifs(&from.field("imports"), &motif.imports);
        self.profiles(from, motif.profiles.as_ref());
        if let Some(Admission {
            validation,
            mutation,
        }) = &motif.admission
        {
            let from = &from.field("admission");
            self.rules(from, validation.as_ref(), mutation.as_ref());
        }
    }

    fn rules(
        &mut self,
        from: &ReferenceField<'_>,
        validation: Option<&Validation>,
        mutation: Option<&Mutation>,
    ) {
        let validation = validation.and_then(|rules| rules.include.as_ref());
        let mutation = mutation.and_then(|rules| rules.include.as_ref());
        for (part, field, include) in [
            (ReferenceKind::Validation, "validation", validation),
            (ReferenceKind::Mutation, "mutation", mutation),
        ] {
            if let Some(text) = include {
                self.ask(&from.field(field).field("include"), part, text);
            }
        }
    }

    fn profiles(&mut self, from: &ReferenceField<'_>, profiles: Option<&Profiles>) {
        if let Some(text) = profiles.and_then(|profiles| profiles.include.as_ref()) {
            let at = from.field("profiles").field("include");
            self.ask(&at, ReferenceKind::Profiles, text);
        }
    }

    fn motifs(&mut self, from: &ReferenceField<'_>, imports: &[MotifImport]) {
        let imports = imports.iter().enumerate();
        for (index, import) in imports.filter(|(_, import)| refusal(import).is_none()) {
            let at = from.index(index).field("motif");
            if let Some(document) = self.ask(&at, ReferenceKind::Motif, &named(import))
                && let Content::Motif(motif) = &document.content
                && self.seen.insert(&document.origin.name)
            {
                self.motif(Some(&*document.origin), motif);
            }
        }
    }

    /// Returns the document, if it is in the library.
    fn ask(
        &mut self,
        at: &ReferenceField<'_>,
        part: ReferenceKind,
        text: &str,
    ) -> Option<&'a LibraryDocument> {
        let reference = Reference {
            from: at.origin.map(|origin| origin.name.clone()),
            file: at.origin.map(|origin| origin.owner(&at.path).0.into()),
            part,
            text: text.into(),
        };
        let Some(answer) = self.library.answers.get(&reference) else {
            self.missing.insert(reference);
            return None;
        };
        let name = answer.as_ref().ok()?;
        let document = self.library.documents.get(&(part, name.clone()))?;
        Some(&**document)
    }
}

/// Returns the path of a file that `document` names as `text`: relative to the folder of `document`, without redundant
/// steps, so that one file has one path.
///
/// ```
/// use orkestra_compiler::scope::beside;
/// assert_eq!(beside("ponds/katalog.yaml", "../motifs/./reeds.yaml"), "motifs/reeds.yaml");
/// assert_eq!(beside("ponds/katalog.yaml", "/motifs/reeds.yaml"), "/motifs/reeds.yaml");
/// ```
pub fn beside(document: &str, text: &str) -> String {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let mut path = folder.to_owned();
    for step in Path::new(text.trim()).components() {
        let last = path.components().next_back();
        match step {
            Component::CurDir => {}
            Component::ParentDir if matches!(last, Some(Component::Normal(_))) => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    path.display().to_string()
}

/// True if the name of a Motif is a reference to an artifact of a registry: `oci://…` or the short `name@version`.
///
/// ```
/// use orkestra_compiler::scope::is_of_registry;
/// assert!(is_of_registry("oci://registry.example/reeds:1") && is_of_registry("reeds@1.2.0"));
/// assert!(!is_of_registry("reeds") && !is_of_registry("motifs/reeds.yaml"));
/// ```
pub fn is_of_registry(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("oci://") || (text.contains('@') && !text.contains('/'))
}

/// Returns the name of a Motif as it is resolved: for a registry, a reference with its version.
pub(crate) fn named(import: &MotifImport) -> Cow<'_, str> {
    let text = import.motif.trim();
    if import.oci != Some(true) && !is_of_registry(text) {
        return Cow::Borrowed(&import.motif);
    }
    let last = text.rsplit('/').next().unwrap_or_default();
    let is_short = !text.contains('/');
    let scheme = if is_short || text.starts_with("oci://") {
        ""
    } else {
        "oci://"
    };
    let version = import.version.as_deref().map(str::trim);
    match version {
        _ if last.contains(['@', ':']) => format!("{scheme}{text}").into(),
        Some(version) if version.starts_with("sha256:") => {
            format!("{scheme}{text}@{version}").into()
        }
        version => {
            let joint = if is_short { '@' } else { ':' };
            format!("{scheme}{text}{joint}{}", version.unwrap_or("latest")).into()
        }
    }
}

/// Returns why an import is of an unsupported kind: the field, the code, the message and the fix.
pub(crate) fn refusal(
    import: &MotifImport,
) -> Option<(&'static str, Code, &'static str, &'static str)> {
    let MotifImport {
        motif,
        version,
        oci,
        auth,
        with: _,
    } = import;
    let text = motif.trim();
    let later = |field, what| {
        let remedy = "copy the Motif beside this file and name the copy, or apply it to the cluster and name it there";
        Some((field, Code::NotSupportedYet, what, remedy))
    };
    if text.is_empty() {
        let remedy = "name a Motif of the cluster, or a file";
        return Some(("motif", Code::Empty, "the value is empty", remedy));
    }
    if text.contains("{{") {
        let remedy = "the Motif is read before any resource exists: write its name out";
        return Some((
            "motif",
            Code::NotATemplate,
            "this cannot be a template",
            remedy,
        ));
    }
    if *oci == Some(true) || is_of_registry(text) {
        auth.as_ref().map(|_| {
            let remedy = "log in with `ork login`: docker's configuration is used";
            let what = "credentials of Motifs are not supported yet";
            ("auth", Code::NotSupportedYet, what, remedy)
        })
    } else if text.contains("://") || text.contains('@') {
        later(
            "motif",
            "Motifs from Git and other servers are not supported yet",
        )
    } else if version.is_some() {
        later("version", "versions of Motifs are not supported yet")
    } else if auth.is_some() {
        later("auth", "Motifs from servers are not supported yet")
    } else {
        None
    }
}
