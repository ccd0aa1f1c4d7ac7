//! Reads a repository in a folder of this machine, without the program `git`.
//!
//! Source: gitrepository-layout(5).

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use gix_odb::store::init::Options;
use gix_ref::{FullName, Target, file::Store};

use super::{
    Tip, candidates,
    object::{Object, ObjectId, Objects, SHA1, id_of},
};
use crate::{Error, Limits};

/// The most symbolic references that lead to one another.
const MOST_LEVELS: usize = 5;
/// The most bytes of a text file.
const MOST_TEXT: u64 = 16 << 20;

/// A repository.
pub(crate) struct Local {
    folder: PathBuf,
    references: Store,
    objects: gix_odb::Handle,
    /// The most bytes of an object.
    most: usize,
}

impl Local {
    /// Opens a repository: a bare one, or the folder of a working tree.
    pub(crate) fn open(folder: &Path, limits: &Limits) -> Result<Self, Error> {
        let what = folder.display().to_string();
        let folder = git_folder(folder)
            .ok_or_else(|| Error::NotFound(format!("a Git repository in the folder {what}")))?;
        let config = read(&folder.join("config")).unwrap_or_default();
        let is_other = |format: &str| config.to_lowercase().replace(' ', "").contains(format);
        if is_other("objectformat=sha256") || is_other("refstorage=reftable") {
            let why =
                "the repository has SHA-256 identifiers or a reftable, which are not supported";
            return Err(Error::Unsupported(format!("{what}: {why}")));
        }
        let options = Options {
            alloc_limit_bytes: Some(limits.objects),
            ..Options::default()
        };
        let objects = gix_odb::at_opts(folder.join("objects"), SHA1, None, options);
        let objects = objects.map_err(|source| Error::Local {
            what: format!("the packs of {what}"),
            source,
        })?;
        Ok(Self {
            references: Store::at(folder.clone(), SHA1),
            objects,
            folder,
            most: limits.objects,
        })
    }

    /// Returns the commit of a branch, a tag or another reference.
    pub(crate) fn tip(&self, name: &str) -> Result<Tip, Error> {
        let unreadable = |error: gix_error::Error| Error::Local {
            what: format!("the references of {}", self.folder.display()),
            source: io::Error::other(error.to_string()),
        };
        for candidate in candidates(name) {
            // A name that Git does not permit exists nowhere.
            let Ok(name) = FullName::try_from(candidate) else {
                continue;
            };
            if let Some(commit) = self.reference(name).map_err(unreadable)? {
                return Ok(Tip { commit });
            }
        }
        let folder = self.folder.display();
        Err(Error::NotFound(format!(
            "the branch or tag {name} of {folder}"
        )))
    }

    /// Follows a reference to the object that it is for.
    fn reference(&self, name: FullName) -> gix_error::Result<Option<ObjectId>> {
        let mut next = name;
        for _ in 0..=MOST_LEVELS {
            let found = self.references.try_find(next.as_ref())?;
            // The look-up also tries the name below `refs/heads`; here it is complete.
            let Some(found) = found.filter(|found| found.name == next) else {
                return Ok(None);
            };
            match found.target {
                Target::Object(id) => return Ok(Some(id)),
                Target::Symbolic(name) => next = name,
            }
        }
        Ok(None)
    }
}

impl Objects for Local {
    fn object(&mut self, id: ObjectId) -> Result<Object, String> {
        let too_large = || format!("an object has more than {} bytes", self.most);
        let mut data = Vec::new();
        let found = gix_object::Find::try_find(&self.objects, &id, &mut data);
        let kind = match found {
            Ok(Some(found)) => found.kind,
            Ok(None) => return Err(format!("the object {id} is missing")),
            Err(error) if error.is_resource_exhausted() => return Err(too_large()),
            Err(error) => return Err(format!("the object {id} cannot be read: {error}")),
        };
        if data.len() > self.most {
            return Err(too_large());
        }
        if id_of(kind, &data)? != id {
            return Err(format!("the object {id} is damaged"));
        }
        Ok(Object {
            kind,
            data: data.into(),
        })
    }
}

/// Returns the folder with the references: `.git` of a working tree, or the folder itself.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".git");
    let candidates = if inner.is_file() {
        let text = read(&inner)?;
        let leads = folder.join(text.trim().strip_prefix("gitdir: ")?);
        // A working tree of its own shares references and objects with the others.
        match read(&leads.join("commondir")) {
            Some(common) => vec![leads.join(common.trim())],
            None => vec![leads],
        }
    } else {
        vec![inner, folder.to_owned()]
    };
    candidates
        .into_iter()
        .find(|folder| folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

/// Reads a short text file.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_TEXT).read_to_string(&mut text).ok()?;
    Some(text)
}
