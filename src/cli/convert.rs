//! `ork convert`

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use orkestra_language::{
    diagnostics::{Diagnostic, Diagnostics},
    document::{self, Converted},
};

use super::{Failure, output};
use orkestra_loader::files::{self, STDIN, TextFile};

/// Convert documents of earlier releases to the current fields
///
/// The command renames keys and moves blocks. Comments, blank lines, quotes, the order of keys and the meaning are
/// preserved. Documents of other kinds are not changed. Without a flag, the result is printed. Deprecated fields that cannot
/// be converted are reported on standard error, with their position in the result. A file that cannot be parsed is reported
/// and not changed, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Files to convert; `-` is standard input. Directories are searched for *.yaml and *.yml files at any depth
    #[arg(value_name = "FILE", required = true)]
    paths: Vec<PathBuf>,
    /// Write each result to its file instead of printing it
    #[arg(short, long, conflicts_with = "check")]
    in_place: bool,
    /// Report deprecated fields without writing or printing a result; exit with 1 if a file has any
    #[arg(long)]
    check: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    if args.in_place && args.paths.iter().any(|path| path == Path::new(STDIN)) {
        let error = anyhow!("standard input cannot be converted in place; remove `--in-place`");
        return Err(Failure::Input(error));
    }
    let mut seen = BTreeSet::new();
    let mut has_failed = false;
    let mut printed = String::new();
    for path in &args.paths {
        for file in files::find(path, &mut seen) {
            let file = match file {
                Ok(file) => file,
                Err(problem) => {
                    output::diagnostics(&[*problem]);
                    has_failed = true;
                    continue;
                }
            };
            match document::convert(&file.name, &file.text) {
                Ok(converted) => has_failed |= finish(args, &file, converted, &mut printed)?,
                Err(problems) => {
                    report(&problems, &file.name, &file.text);
                    has_failed = true;
                }
            }
        }
    }
    output::print(&printed)?;
    if has_failed {
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Prints, writes or checks the converted file. Returns true on failure.
fn finish(
    args: &Args,
    file: &TextFile,
    converted: Converted,
    printed: &mut String,
) -> Result<bool, Failure> {
    let is_changed = converted.text != file.text;
    if args.check {
        report(&Diagnostics(converted.found), &file.name, &file.text);
        if is_changed {
            output::note(&format!("{} would be changed", file.name));
        }
        return Ok(is_changed);
    }
    report(&Diagnostics(converted.left), &file.name, &converted.text);
    if !args.in_place {
        append(printed, &converted.text);
    } else if is_changed {
        replace(&file.path, &converted.text)
            .with_context(|| format!("cannot write {}", file.name))?;
        output::note(&format!("converted {}", file.name));
    }
    Ok(false)
}

/// Appends the documents of a file to those of earlier files.
fn append(printed: &mut String, text: &str) {
    if !printed.is_empty() {
        if !printed.ends_with('\n') {
            printed.push('\n');
        }
        if !text.starts_with("---") {
            printed.push_str("---\n");
        }
    }
    printed.push_str(text);
}

fn report(problems: &Diagnostics, name: &str, text: &str) {
    if !problems.is_empty() {
        let texts = BTreeMap::from([(name.to_owned(), text.to_owned())]);
        let problems: Vec<Diagnostic> = problems.iter().cloned().collect();
        output::snippets(&problems, &texts);
    }
}

/// Replaces a file atomically: readers see the old text or the new one. Permissions and symbolic links are preserved.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file = fs::File::create_new(&beside)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(permissions))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // Ignored: the first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "a temporary file is left"
        );
    }

    #[test]
    fn texts_of_several_files_become_one_stream() {
        let mut printed = String::new();
        append(&mut printed, "a: 1");
        append(&mut printed, "b: 1\n");
        append(&mut printed, "---\nc: 1\n");
        assert_eq!(printed, "a: 1\n---\nb: 1\n---\nc: 1\n");
    }
}
