//! Writes the folder of a release.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use orkestra_registry::Digest;

use crate::{
    Moment,
    archive::{Entry, gzip, tar},
    places::Places,
};

/// The name of the file with the checksums, as `sha256sum --check` reads it.
pub const CHECKSUMS: &str = "SHA256SUMS";

/// Why a release cannot be assembled.
#[derive(Debug, thiserror::Error)]
pub enum DistError {
    /// A file cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program cannot be run, or failed.
    #[error("`{0}` failed: {1}")]
    Program(String, String),
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> DistError {
    let path = path.to_owned();
    move |source| DistError::File { path, source }
}

/// Returns what a program prints.
///
/// # Errors
/// [`DistError::Program`].
pub fn printed(program: &Path, arguments: &[&OsStr]) -> Result<Vec<u8>, DistError> {
    let shown = arguments
        .iter()
        .fold(program.display().to_string(), |all, one| {
            all + " " + &one.to_string_lossy()
        });
    let output = Command::new(program)
        .args(arguments)
        .env_remove("KUBECONFIG")
        .output();
    let output = output.map_err(|error| DistError::Program(shown.clone(), error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(DistError::Program(
            shown,
            format!("{}: {}", output.status, said.trim()),
        ));
    }
    Ok(output.stdout)
}

/// Returns the documents that a binary prints: manifests, CRDs, completions and man pages.
///
/// # Errors
/// [`DistError::Program`], [`DistError::File`].
pub fn printed_by(
    binary: &Path,
    places: &Places<'_>,
    moment: Moment,
) -> Result<Vec<Entry>, DistError> {
    let run = |arguments: &[&str]| {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        printed(binary, &arguments)
    };
    let mut completions = vec![Entry::folder("completions/")];
    for (shell, name) in [("bash", "ork.bash"), ("zsh", "_ork"), ("fish", "ork.fish")] {
        completions.push(Entry::file(
            format!("completions/{name}"),
            run(&["completion", shell])?,
        ));
    }
    let folder = tempfile::tempdir().map_err(file(Path::new("a temporary folder")))?;
    printed(
        binary,
        &[
            "man".as_ref(),
            "--output".as_ref(),
            folder.path().as_os_str(),
        ],
    )?;
    let mut man = vec![Entry::folder("man1/")];
    man.extend(files(folder.path(), "man1/")?);
    let packed = |entries: &[Entry]| {
        tar(entries, moment)
            .and_then(|tar| gzip(&tar))
            .map_err(file(Path::new("an archive")))
    };
    Ok(vec![
        Entry::file(
            "install.yaml",
            run(&[
                "install",
                "--dry-run=client",
                "--image",
                &places.reference(),
            ])?,
        ),
        Entry::file("crds.yaml", run(&["crds"])?),
        Entry::file("ork-completions.tar.gz", packed(&completions)?),
        Entry::file("ork-man.tar.gz", packed(&man)?),
    ])
}

/// Returns the package of a chart, as `helm install` reads it: `NAME-VERSION.tgz`, with the places of the release. Links are
/// followed.
///
/// # Errors
/// [`DistError::File`].
pub fn chart(folder: &Path, places: &Places<'_>, moment: Moment) -> Result<Vec<u8>, DistError> {
    let name = folder
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let mut entries = files(folder, &format!("{name}/"))?;
    for entry in &mut entries {
        let path = entry.path.strip_prefix(&format!("{name}/"));
        if let Some(content) = path.and_then(|path| places.of_chart(path, &entry.content)) {
            entry.content = content;
        }
    }
    tar(&entries, moment)
        .and_then(|tar| gzip(&tar))
        .map_err(file(folder))
}

/// Returns the files of a folder and of those in it. Hidden files are left out.
fn files(folder: &Path, prefix: &str) -> Result<Vec<Entry>, DistError> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            entries.extend(files(&path, &format!("{name}/"))?);
        } else {
            entries.push(Entry::file(name, fs::read(&path).map_err(file(&path))?));
        }
    }
    Ok(entries)
}

/// Returns the checksums of files, in the order of their names.
pub fn checksums(entries: &[Entry]) -> Entry {
    let mut sorted: Vec<&Entry> = entries
        .iter()
        .filter(|entry| !entry.path.ends_with('/'))
        .collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    let mut text = String::new();
    for entry in sorted {
        let _ = writeln!(text, "{}  {}", Digest::of(&entry.content).hex(), entry.path);
    }
    Entry::file(CHECKSUMS, text)
}
