//! Where the releases of this build are published: `make release` says so, and nothing else knows an address.
//!
//! ```text
//!  make release IMAGE=… RELEASES=… DOCS=… PATTERNS=… ──► environment of the build ──► this module: defaults of `ork`
//!                                                                               └──► `release`: the chart, install.sh, install.yaml
//! ```
//!
//! A build for which nothing is published has no defaults: what others publish under a name that this program guesses would run with
//! the permissions of a controller.

/// Repository of the image, such as `registry.example/orkestra`.
pub const IMAGE: Option<&str> = given(option_env!("ORK_PUBLISHED_IMAGE"));
/// Address of the folder whose folder `vVERSION/` has the files of a release, and `latest/` those of the latest.
pub const RELEASES: Option<&str> = given(option_env!("ORK_PUBLISHED_RELEASES"));
/// Folder of a registry whose folders `katalogs` and `motifs` have the artifacts of short names.
pub const PATTERNS: Option<&str> = given(option_env!("ORK_PUBLISHED_PATTERNS"));

/// The image of manifests of a build for which none is published. The domain never exists, so no image can be published there: name the
/// image to run instead of it.
///
/// Source: RFC 2606, section 2.
pub const NO_IMAGE: &str = "registry.invalid/orkestra";

const fn given(text: Option<&'static str>) -> Option<&'static str> {
    match text {
        Some(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn an_empty_variable_publishes_nothing() {
        assert_eq!(given(Some("")), None);
        assert_eq!(
            given(Some("registry.example/orkestra")),
            Some("registry.example/orkestra")
        );
    }

    /// Addresses of hosts at which this project publishes nothing, in what a user installs or runs.
    #[test]
    fn nothing_that_is_shipped_has_an_address_of_its_own() {
        fn walk(path: &Path, found: &mut Vec<String>) {
            if path.is_dir() {
                for entry in fs::read_dir(path).unwrap() {
                    walk(&entry.unwrap().path(), found);
                }
                return;
            }
            let Ok(text) = fs::read_to_string(path) else {
                return;
            };
            // In two parts, so that this file has none.
            for host in [
                concat!("ghcr.io/", "orkspace"),
                concat!("github.com/", "orkspace"),
            ] {
                if text.contains(host) {
                    found.push(format!("{}: {host}", path.display()));
                }
            }
        }
        let root = orkestra_testkit::root();
        let mut found = Vec::new();
        for shipped in [
            "charts",
            "config",
            "crds",
            "docs",
            "examples",
            "install.sh",
            "Containerfile",
            "Makefile",
            "Cargo.toml",
            "README.md",
            "src",
            "crates/release",
            "crates/sources",
        ] {
            walk(&root.join(shipped), &mut found);
        }
        assert!(found.is_empty(), "{found:#?}");
    }
}
