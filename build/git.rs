//! The commit of a checkout, read from the files of Git: no program is needed, and sources without them have no commit.
//!
//! Source: gitrepository-layout(5).

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a checkout says about its commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// The commit; none if the files have a form that this does not read.
    pub(crate) commit: Option<String>,
    /// The files that change with it; all of them exist.
    pub(crate) files: Vec<PathBuf>,
}

impl Checkout {
    /// Reads the checkout with that folder as its root; none if the folder is no such root.
    pub(crate) fn at(root: &Path) -> Option<Self> {
        let dot = root.join(".git");
        // In a worktree, `.git` is a file that names the folder.
        let own = if dot.is_dir() {
            dot
        } else {
            root.join(
                fs::read_to_string(dot)
                    .ok()?
                    .strip_prefix("gitdir:")?
                    .trim(),
            )
        };
        let head = fs::read_to_string(own.join("HEAD")).ok()?;
        // Branches of a worktree are in the folder of the repository.
        let common = fs::read_to_string(own.join("commondir")).ok();
        let common = common.map_or_else(|| own.clone(), |path| own.join(path.trim()));
        let mut files = vec![own.join("HEAD"), own.join("logs/HEAD")];
        let commit = match head.trim().strip_prefix("ref:") {
            None => Some(head.trim().to_owned()),
            Some(branch) => {
                let branch = branch.trim();
                files.extend([common.join(branch), common.join("packed-refs")]);
                let loose = fs::read_to_string(common.join(branch)).ok();
                loose.map(|text| text.trim().to_owned()).or_else(|| {
                    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
                    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
                    let (commit, _) = lines.find(|(_, name)| *name == branch)?;
                    Some(commit.to_owned())
                })
            }
        };
        // Cargo takes a missing file for one that has changed.
        files.retain(|file| file.is_file());
        let is_hash = |text: &String| {
            matches!(text.len(), 40 | 64) && text.bytes().all(|letter| letter.is_ascii_hexdigit())
        };
        Some(Self {
            commit: commit.filter(is_hash),
            files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef01234567";
    const TWO: &str = "89abcdef0123456789abcdef0123456789abcdef";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    fn commit(root: &Path) -> Option<String> {
        Checkout::at(root).and_then(|checkout| checkout.commit)
    }

    #[test]
    fn the_commit_is_that_of_the_branch_of_a_clone_or_a_worktree() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path();
        assert_eq!(Checkout::at(root), None);
        write(root, &[(".git/HEAD", "ref: refs/heads/main\n")]);
        // A repository without commits.
        assert_eq!(commit(root), None);
        let packed = format!("# pack-refs\n{TWO} refs/heads/other\n{ONE} refs/heads/main\n");
        write(root, &[(".git/packed-refs", &packed)]);
        assert_eq!(commit(root).as_deref(), Some(ONE));
        let loose = format!("{TWO}\n");
        write(
            root,
            &[(".git/refs/heads/main", &loose), (".git/logs/HEAD", "")],
        );
        assert_eq!(commit(root).as_deref(), Some(TWO));
        let files = Checkout::at(root).unwrap().files;
        assert_eq!(files.len(), 4);
        assert!(files.iter().all(|file| file.is_file()));
        // Without a branch.
        write(root, &[(".git/HEAD", ONE)]);
        assert_eq!(commit(root).as_deref(), Some(ONE));
        write(root, &[(".git/HEAD", "rubbish")]);
        assert_eq!(commit(root), None);
        let tree = root.join("tree");
        write(
            root,
            &[
                (".git/worktrees/tree/HEAD", "ref: refs/heads/main\n"),
                (".git/worktrees/tree/commondir", "../..\n"),
                ("tree/.git", "gitdir: ../.git/worktrees/tree\n"),
            ],
        );
        assert_eq!(commit(&tree).as_deref(), Some(TWO));
    }
}
