//! Reads a folder into files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::MOST_LAYERS;

/// The maximum length of a file's name, in bytes.
const MOST_NAME: usize = 255;
/// Device names on Windows, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com1", "lpt1"];
/// The maximum size of a file, in bytes.
pub const MOST_FILE: u64 = 8 << 20;
/// The maximum size of all files, in bytes.
pub const MOST_TOTAL: u64 = 64 << 20;
/// The maximum nesting of folders.
const MOST_DEPTH: usize = 16;

/// A file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the folder, with `/` between the parts.
    pub name: String,
    /// The contents.
    pub content: Bytes,
}

/// The reason why a folder cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file or folder cannot be part of an artifact.
    #[error("{}: {why}", path.display())]
    Unfit {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// Reads the files of a folder and its subfolders, sorted by name. Hidden files and folders, such as `.git`, are omitted.
///
/// # Errors
/// [`PackError::Unfit`] for links and other special files, and if a limit is exceeded.
pub fn pack(folder: &Path) -> Result<Vec<File>, PackError> {
    let mut files = Vec::new();
    walk(folder, "", 0, &mut files)?;
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let total: u64 = files.iter().map(|file| file.content.len() as u64).sum();
    let unfit = |why: String| PackError::Unfit {
        path: folder.to_owned(),
        why,
    };
    if files.len() > MOST_LAYERS {
        return Err(unfit(format!(
            "it has {} files, more than {MOST_LAYERS}",
            files.len()
        )));
    }
    if total > MOST_TOTAL {
        return Err(unfit(format!(
            "its files have {total} bytes together, more than {MOST_TOTAL}"
        )));
    }
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<File>) -> Result<(), PackError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| PackError::Unreadable { path, source }
    };
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let unfit = |why: String| PackError::Unfit {
            path: path.clone(),
            why,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| unfit("its name is not UTF-8".to_owned()))?;
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        check_name(&name).map_err(unfit)?;
        // Does not follow links, which may lead out of the folder.
        let about = fs::symlink_metadata(&path).map_err(unreadable(&path))?;
        if about.is_dir() {
            if depth == MOST_DEPTH {
                return Err(unfit(format!("it is more than {MOST_DEPTH} folders deep")));
            }
            walk(&path, &format!("{name}/"), depth + 1, files)?;
        } else if !about.is_file() {
            return Err(unfit(
                "it is neither a file nor a folder: copy what a link leads to".to_owned(),
            ));
        } else if about.len() > MOST_FILE {
            return Err(unfit(format!(
                "it has {} bytes, more than {MOST_FILE}",
                about.len()
            )));
        } else if files.len() > MOST_LAYERS {
            return Ok(());
        } else {
            let content = fs::read(&path).map_err(unreadable(&path))?.into();
            files.push(File { name, content });
        }
    }
    Ok(())
}

/// Checks that a text is the name of a file in a folder: a relative path of plain parts, separated by `/`.
///
/// # Errors
/// A sentence with the reason.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default().to_lowercase();
        !part.is_empty()
            && part != "."
            && part != ".."
            && !part.ends_with(['.', ' '])
            && !DEVICES.contains(&&*stem)
    };
    // As in `walk`: tools read hidden files by default, and no reader sees them.
    let is_hidden = |part: &str| part.starts_with('.') && part != "." && part != "..";
    if name.split('/').any(is_hidden) {
        let shown = crate::manifest::short(name);
        return Err(format!(
            "`{shown}` is a hidden file, which an artifact does not contain"
        ));
    }
    let is_text = |c: char| !c.is_control() && !"\\:*?\"<>|".contains(c);
    if name.len() <= MOST_NAME && name.split('/').all(is_plain) && name.chars().all(is_text) {
        return Ok(());
    }
    let shown = crate::manifest::short(name);
    Err(format!("`{shown}` is not the name of a file in a folder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["katalog.yaml", "manifests/a.yaml", "a/b/c.d", "intent.json"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../x",
            "..a",
            ".envrc",
            "a/.git/config",
            "a/../x",
            "/etc/passwd",
            "a//b",
            "a/",
            "C:\\x",
            "a\\b",
            "a\0b",
            "a\nb",
            "con.yaml",
            "a.",
            &"a".repeat(256),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn files_come_sorted_with_their_folders_and_without_what_is_hidden() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("manifests")).unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        for name in [
            "katalog.yaml",
            "manifests/b.yaml",
            "README.md",
            ".git/config",
            ".hidden",
        ] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let names: Vec<String> = pack(folder.path())
            .unwrap()
            .into_iter()
            .map(|file| file.name)
            .collect();
        assert_eq!(names, ["README.md", "katalog.yaml", "manifests/b.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::TempDir::new().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("katalog.yaml")).unwrap();
        let error = pack(folder.path()).unwrap_err().to_string();
        assert!(error.contains("neither a file nor a folder"), "{error}");
    }
}
