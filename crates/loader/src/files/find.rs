//! Reads the texts of paths.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, FieldPath},
};

/// The path that stands for standard input.
pub const STDIN: &str = "-";
/// The longest file that is read; the limit for a document is lower.
const MOST_BYTES: u64 = 16 << 20;
/// The name of standard input in messages.
const STDIN_NAME: &str = "<stdin>";

/// A text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// The name in messages: the path as given, `<stdin>` for standard input.
    pub name: String,
    /// The path; empty for standard input.
    pub path: PathBuf,
    /// The content.
    pub text: String,
}

/// Reads the YAML files of `path`: a file, every `*.yaml` and `*.yml` in a folder and below it, or standard input.
///
/// Files of a folder are sorted by path; hidden files and folders, such as `.git`, and links to folders are skipped. `seen`
/// contains the files that were already read, which are not read again. An unreadable file is returned as a problem.
pub fn find(path: &Path, seen: &mut BTreeSet<PathBuf>) -> Vec<Result<TextFile, Box<Diagnostic>>> {
    if path == Path::new(STDIN) {
        return if seen.insert(path.to_owned()) {
            vec![read_stdin()]
        } else {
            Vec::new()
        };
    }
    let mut found = Vec::new();
    if path.is_dir() {
        walk(path, &mut found);
        if found.is_empty() {
            found.push(Err(Box::new(without_katalog(&path.display().to_string()))));
        }
    } else {
        found.push(Ok(path.to_owned()));
    }
    let read = found.into_iter().filter_map(|file| match file {
        Ok(path) => {
            let known = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            seen.insert(known).then(|| read_file(&path))
        }
        Err(problem) => Some(Err(problem)),
    });
    read.collect()
}

fn walk(folder: &Path, found: &mut Vec<Result<PathBuf, Box<Diagnostic>>>) {
    let mut paths = match list(folder) {
        Ok(paths) => paths,
        Err(why) => {
            found.push(Err(unreadable(&folder.display().to_string(), &why).into()));
            return;
        }
    };
    paths.sort_unstable();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        let is_yaml = path
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml");
        if path.is_dir() {
            // A link to a folder may lead back here.
            if !path.is_symlink() {
                walk(&path, found);
            }
        } else if is_yaml && !is_pipe(&path) {
            found.push(Ok(path));
        }
    }
}

/// True for anything but a file or folder, such as a pipe or a device, which may never end. A broken link is reported when it is
/// read.
fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file())
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect()
}

pub(crate) fn read_file(path: &Path) -> Result<TextFile, Box<Diagnostic>> {
    let name = path.display().to_string();
    let text = fs::File::open(path).and_then(read_limited);
    Ok(TextFile {
        text: text.map_err(|why| Box::new(unreadable(&name, &why)))?,
        name,
        path: path.to_owned(),
    })
}

fn read_stdin() -> Result<TextFile, Box<Diagnostic>> {
    let text = read_limited(io::stdin());
    Ok(TextFile {
        text: text.map_err(|why| Box::new(unreadable(STDIN_NAME, &why)))?,
        name: STDIN_NAME.to_owned(),
        path: PathBuf::new(),
    })
}

/// Reads a text that may be endless.
fn read_limited(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len == MOST_BYTES) {
        return Err(io::Error::other("it is too large"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))
}

fn unreadable(file: &str, why: &io::Error) -> Diagnostic {
    let message = format!("cannot be read: {why}");
    let mut problem = Diagnostic::error(Code::Unreadable, FieldPath::root(), message);
    problem.file = Some(file.to_owned());
    problem
}

/// Reads one text file.
///
/// # Errors
/// The file does not exist, is not readable, or is not UTF-8 text.
pub async fn read_text(path: &Path) -> io::Result<String> {
    tokio::fs::read_to_string(path).await
}

/// The problem of a file or folder without a Katalog.
pub fn without_katalog(file: &str) -> Diagnostic {
    let mut problem = Diagnostic::error(
        Code::NoDocument,
        FieldPath::root(),
        "the file has no Katalog",
    );
    problem.hint = Some(format!(
        "a Katalog begins with `apiVersion: {}` and `kind: Katalog`",
        names::API_VERSION
    ));
    problem.file = Some(file.to_owned());
    problem
}
