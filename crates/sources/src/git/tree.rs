//! The files of a commit below a path.

use super::{
    Blob,
    object::{Entry, EntryKind, Object, ObjectId, ObjectKind, Objects, entries, header},
};

/// The most tags that lead to one another.
const MOST_TAGS: usize = 8;
/// The most nested folders.
const MOST_DEPTH: usize = 32;

/// Limits of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkLimits {
    /// The most files.
    pub(crate) files: usize,
    /// The most bytes of one file.
    pub(crate) file: usize,
    /// The most bytes of all files.
    pub(crate) bytes: usize,
}

/// The reason why there are no files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WalkError {
    /// The path does not exist.
    Missing,
    /// The repository is malformed, or a limit is exceeded.
    Failed(String),
}

impl From<String> for WalkError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Returns the files of a commit at `path`: the file, or the accepted files of the folder and those below it. The path is relative,
/// with `/` between its parts; empty for the root. Files are sorted by path.
pub(crate) fn files(
    objects: &mut impl Objects,
    commit: ObjectId,
    path: &str,
    accept: impl Fn(&str) -> bool,
    most: WalkLimits,
) -> Result<Vec<Blob>, WalkError> {
    let commit = peeled(objects, commit)?;
    let root = header(&commit.data, "tree").ok_or_else(|| "a commit has no tree".to_owned())?;
    let mut entry = Entry {
        name: String::new(),
        kind: EntryKind::Folder,
        id: root,
    };
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if entry.kind != EntryKind::Folder {
            return Err(WalkError::Missing);
        }
        let all = folder(objects, entry.id)?;
        let found = all.into_iter().find(|entry| entry.name == part);
        entry = found.ok_or(WalkError::Missing)?;
    }
    let mut walk = Walk {
        accept,
        most,
        left: most.bytes,
        found: Vec::new(),
        folders: 0,
    };
    match entry.kind {
        EntryKind::File => walk.take(objects, entry.name.clone(), entry.id)?,
        EntryKind::Folder => walk.folder(objects, "", entry.id, 0)?,
        EntryKind::Other => {
            return Err(WalkError::Failed(format!(
                "{path} is a link or a submodule, which is not followed"
            )));
        }
    }
    walk.found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(walk.found)
}

/// Follows tags to their commit.
fn peeled(objects: &mut impl Objects, id: ObjectId) -> Result<Object, String> {
    let mut next = id;
    for _ in 0..MOST_TAGS {
        let object = objects.object(next)?;
        match object.kind {
            ObjectKind::Commit => return Ok(object),
            ObjectKind::Tag => {
                next = header(&object.data, "object")
                    .ok_or_else(|| "a tag has no object".to_owned())?;
            }
            other => return Err(format!("{id} is a {}, expected a commit", other.name())),
        }
    }
    Err("a tag refers to a chain of too many others".to_owned())
}

fn folder(objects: &mut impl Objects, id: ObjectId) -> Result<Vec<Entry>, String> {
    let object = objects.object(id)?;
    if object.kind != ObjectKind::Tree {
        return Err(format!("{id} is a {}, expected a tree", object.kind.name()));
    }
    entries(&object.data)
}

struct Walk<F> {
    accept: F,
    most: WalkLimits,
    left: usize,
    found: Vec<Blob>,
    /// Folders that were read: one tree may be in many places.
    folders: usize,
}

impl<F: Fn(&str) -> bool> Walk<F> {
    fn folder(
        &mut self,
        objects: &mut impl Objects,
        prefix: &str,
        id: ObjectId,
        depth: usize,
    ) -> Result<(), String> {
        self.folders += 1;
        if depth > MOST_DEPTH || self.folders > 10 * self.most.files {
            return Err("the folders are too many, or nested too deeply".to_owned());
        }
        for entry in folder(objects, id)? {
            let path = format!("{prefix}{}", entry.name);
            match entry.kind {
                EntryKind::Folder => {
                    self.folder(objects, &format!("{path}/"), entry.id, depth + 1)?;
                }
                EntryKind::File if (self.accept)(&path) => self.take(objects, path, entry.id)?,
                EntryKind::File | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        objects: &mut impl Objects,
        path: String,
        id: ObjectId,
    ) -> Result<(), String> {
        let object = objects.object(id)?;
        if object.kind != ObjectKind::Blob {
            return Err(format!("{id} is a {}, expected a file", object.kind.name()));
        }
        let size = object.data.len();
        if size > self.most.file {
            let most = self.most.file;
            return Err(format!("{path} has {size} bytes, more than {most}"));
        }
        if self.found.len() == self.most.files || size > self.left {
            return Err(format!(
                "the folder has more than {} files or {} bytes",
                self.most.files, self.most.bytes
            ));
        }
        self.left -= size;
        self.found.push(Blob {
            path,
            data: object.data,
        });
        Ok(())
    }
}
