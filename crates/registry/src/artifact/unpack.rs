//! Writes files to a folder. They cannot leave it.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{File, check_name};

/// The reason why files cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A name leads out of the folder, or is not valid.
    #[error("{0}")]
    Name(String),
    /// The folder is not empty.
    #[error("{} exists and is not an empty folder", .0.display())]
    Occupied(PathBuf),
    /// A file or folder cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Writes files into a folder that is empty or does not exist: all of them, or none.
///
/// # Errors
/// [`UnpackError`].
pub fn write(folder: &Path, files: &[File]) -> Result<(), UnpackError> {
    for file in files {
        check_name(&file.name).map_err(UnpackError::Name)?;
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| UnpackError::Unwritable { path, source }
    };
    let is_free = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_free {
        return Err(UnpackError::Occupied(folder.to_owned()));
    }
    // Writes to our own folder next to it and moves it in one step, so that no other process can place a link inside.
    let parent = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed(parent))?;
    let fresh = tempfile::Builder::new()
        .prefix(".ork-pull-")
        .tempdir_in(parent)
        .map_err(failed(parent))?;
    let own = fresh.path().join("files");
    fs::create_dir(&own).map_err(failed(&own))?;
    for file in files {
        let path = own.join(&file.name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        let mut written = fs::File::create_new(&path).map_err(failed(&path))?;
        written.write_all(&file.content).map_err(failed(&path))?;
    }
    // Fails if the folder is no longer empty.
    fs::rename(&own, folder).map_err(failed(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::TempDir::new().unwrap();
        let target = folder.path().join("new/here");
        let file = |name: &str| File {
            name: name.to_owned(),
            content: "x".into(),
        };
        // The second file requires a folder at the path of the first file.
        assert!(write(&target, &[file("a"), file("a/b")]).is_err());
        assert!(!target.exists());
        assert!(matches!(
            write(&target, &[file("../a")]),
            Err(UnpackError::Name(_))
        ));
        write(&target, &[file("a"), file("b/c")]).unwrap();
        assert_eq!(fs::read_to_string(target.join("b/c")).unwrap(), "x");
        assert!(matches!(
            write(&target, &[file("a")]),
            Err(UnpackError::Occupied(_))
        ));
        let left: Vec<_> = fs::read_dir(target.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "a temporary folder is left");
    }
}
