//! The files of a commit below a path.
//!
//! One tree may be in many places of another, so that a few objects can describe billions of files. The walk therefore counts what
//! it reads, and not what there is.

use gix_object::{CommitRefIter, TagRefIter, TreeRefIter, tree::EntryRef};

use super::{
    Blob,
    object::{Object, ObjectId, ObjectKind, Objects, SHA1},
};

/// The most tags that lead to one another.
const MOST_TAGS: usize = 8;
/// The most nested folders.
const MOST_DEPTH: usize = 32;
/// The most bytes of a path.
const MOST_PATH: usize = 4096;

/// Limits of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkLimits {
    /// The most files.
    pub(crate) files: usize,
    /// The most bytes of one file.
    pub(crate) file: usize,
    /// The most bytes of all files.
    pub(crate) bytes: usize,
    /// The most bytes of folders and paths that are read, also of files that are not accepted.
    pub(crate) folders: usize,
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

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Folder,
    File,
    /// A symbolic link or a submodule, which is not followed.
    Other,
}

impl EntryKind {
    fn of(entry: &EntryRef<'_>) -> Self {
        if entry.mode.is_tree() {
            Self::Folder
        } else if entry.mode.is_blob() {
            Self::File
        } else {
            Self::Other
        }
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
    let mut walk = Walk {
        objects,
        accept,
        most,
        left: most.bytes,
        folders_left: most.folders,
        found: Vec::new(),
        folders: 0,
    };
    let (mut kind, mut id) = (EntryKind::Folder, walk.root(commit)?);
    let mut name = "";
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if kind != EntryKind::Folder {
            return Err(WalkError::Missing);
        }
        (kind, id) = walk.entry(id, part)?.ok_or(WalkError::Missing)?;
        name = part;
    }
    match kind {
        EntryKind::File => walk.take(name.as_bytes().to_vec(), id)?,
        EntryKind::Folder => walk.folder(&[], id, 0)?,
        EntryKind::Other => {
            return Err(WalkError::Failed(format!(
                "{path} is a link or a submodule, which is not followed"
            )));
        }
    }
    let mut found = walk.found;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    if let Some(twice) = found.windows(2).find(|two| two[0].path == two[1].path) {
        let path = &twice[0].path;
        return Err(WalkError::Failed(format!("the path {path} is a duplicate")));
    }
    Ok(found)
}

struct Walk<'a, O, F> {
    objects: &'a mut O,
    accept: F,
    most: WalkLimits,
    left: usize,
    folders_left: usize,
    found: Vec<Blob>,
    /// Folders that were read.
    folders: usize,
}

impl<O: Objects, F: Fn(&str) -> bool> Walk<'_, O, F> {
    /// Returns the root folder of a commit, or of the commit that a tag is for.
    fn root(&mut self, id: ObjectId) -> Result<ObjectId, String> {
        let mut next = id;
        for _ in 0..MOST_TAGS {
            let Object { kind, data } = self.objects.object(next)?;
            match kind {
                ObjectKind::Commit => {
                    let tree = CommitRefIter::from_bytes(&data, SHA1).tree_id();
                    return tree.map_err(|_| "a commit has no tree".to_owned());
                }
                ObjectKind::Tag => {
                    let target = TagRefIter::from_bytes(&data, SHA1).target_id();
                    next = target.map_err(|_| "a tag has no object".to_owned())?;
                }
                other => return Err(format!("{id} is a {other}, expected a commit")),
            }
        }
        Err("a tag refers to a chain of too many others".to_owned())
    }

    /// Returns a folder.
    fn tree(&mut self, id: ObjectId) -> Result<Object, String> {
        let object = self.objects.object(id)?;
        if object.kind != ObjectKind::Tree {
            return Err(format!("{id} is a {}, expected a tree", object.kind));
        }
        self.charge(object.data.len())?;
        Ok(object)
    }

    /// Returns the entry of a folder with that name.
    fn entry(&mut self, id: ObjectId, name: &str) -> Result<Option<(EntryKind, ObjectId)>, String> {
        let folder = self.tree(id)?;
        for entry in TreeRefIter::from_bytes(&folder.data, SHA1) {
            let entry = checked(entry)?;
            if entry.filename == name {
                return Ok(Some((EntryKind::of(&entry), entry.oid.to_owned())));
            }
        }
        Ok(None)
    }

    fn folder(&mut self, prefix: &[u8], id: ObjectId, depth: usize) -> Result<(), String> {
        self.folders += 1;
        if depth > MOST_DEPTH || self.folders > 10 * self.most.files {
            return Err(too_many());
        }
        let folder = self.tree(id)?;
        for entry in TreeRefIter::from_bytes(&folder.data, SHA1) {
            let entry = checked(entry)?;
            let length = prefix.len() + entry.filename.len() + 1;
            if length > MOST_PATH {
                return Err(format!("a path has more than {MOST_PATH} bytes"));
            }
            self.charge(length)?;
            let mut path = Vec::with_capacity(length);
            path.extend_from_slice(prefix);
            path.extend_from_slice(entry.filename);
            match EntryKind::of(&entry) {
                EntryKind::Folder => {
                    path.push(b'/');
                    self.folder(&path, entry.oid.to_owned(), depth + 1)?;
                }
                EntryKind::File if (self.accept)(&String::from_utf8_lossy(&path)) => {
                    self.take(path, entry.oid.to_owned())?;
                }
                EntryKind::File | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, path: Vec<u8>, id: ObjectId) -> Result<(), String> {
        let path = plain(path)?;
        let object = self.objects.object(id)?;
        if object.kind != ObjectKind::Blob {
            return Err(format!("{id} is a {}, expected a file", object.kind));
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
            data: object.data.into(),
        });
        Ok(())
    }

    /// Takes bytes from those of folders and paths that may be read.
    fn charge(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.folders_left.checked_sub(bytes);
        self.folders_left = left.ok_or_else(too_many)?;
        Ok(())
    }
}

fn too_many() -> String {
    "the folders are too many, or nested too deeply".to_owned()
}

/// Checks an entry. A name that could lead out of a folder makes the folder invalid.
fn checked(entry: gix_error::Result<EntryRef<'_>>) -> Result<EntryRef<'_>, String> {
    let entry = entry.map_err(|_| "a tree is malformed".to_owned())?;
    let name = entry.filename;
    let is_good = !name.is_empty()
        && ![&b"."[..], b"..", b".git"].contains(&&**name)
        && !name.iter().any(|byte| b"/\\".contains(byte));
    if is_good {
        return Ok(entry);
    }
    Err(format!(
        "a tree has the entry {:?}, which is not a file name",
        shown(name)
    ))
}

/// Returns the path of a file that is read. It stands for the file in digests and messages, so it must mean the same to everyone.
fn plain(path: Vec<u8>) -> Result<String, String> {
    let path = String::from_utf8(path).map_err(|error| {
        let path = shown(error.as_bytes());
        format!("the file name {path:?} is not UTF-8")
    })?;
    if path.chars().any(char::is_control) {
        let path = shown(path.as_bytes());
        return Err(format!("the file name {path:?} has a control character"));
    }
    Ok(path)
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(100).collect()
}
