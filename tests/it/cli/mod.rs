//! `ork` as a process: its exit codes, its output on stdout and stderr, and its shutdown. These tests need no cluster.

// Clippy is configured to permit these in tests, but it does not recognize the helpers of tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod checks;
mod connections;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

const EXAMPLE: &str = "examples/01-hello-website/katalog.yaml";

fn ork() -> Command {
    let mut ork = Command::new(env!("CARGO_BIN_EXE_ork"));
    ork.current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUST_LOG")
        .env_remove("ORK_LISTEN")
        .env_remove("KUBECONFIG");
    ork
}

fn run(args: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = ork().args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn help_and_version_are_fine_and_wrong_usage_is_2() {
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, 0);
    for command in [
        "controller",
        "run",
        "generate",
        "release",
        "crds",
        "init",
        "validate",
        "convert",
        "render",
        "diff",
        "notes",
        "completion",
        "man",
        "version",
        "Exit codes",
    ] {
        assert!(out.contains(command), "{command}: {out}");
    }
    assert_eq!(
        run(&["--version"]),
        (
            0,
            format!("ork {}\n", env!("CARGO_PKG_VERSION")),
            String::new()
        )
    );
    for args in [
        &["fly"][..],
        &[],
        &["release"],
        &["controller", "--listen", "nowhere"],
        &["crds", "--output"],
        &["validate", "--kubeconfig", "k"],
        &["completion", "tcsh"],
    ] {
        assert_eq!(run(args).0, 2, "{args:?}");
    }
}

#[test]
pub(crate) fn a_wrong_variable_is_an_error_with_a_reason() {
    let out = ork()
        .args(["controller"])
        .env("RUST_LOG", "inof")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("`inof` is not a level"),
        "{out:?}"
    );
    let out = ork()
        .args(["controller"])
        .env("ORK_LISTEN", "eighty")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn crds_are_printed_and_written() {
    let (code, out, err) = run(&["crds"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("name: katalogs.orkestra.orkspace.io"), "{out}");
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("new/crds");
    assert_eq!(run(&["crds", "--output", target.to_str().unwrap()]).0, 0);
    assert!(
        fs::read_to_string(target.join("katalogs.yaml"))
            .unwrap()
            .contains("kind: CustomResourceDefinition")
    );
}

#[test]
fn permissions_are_printed_for_several_files_in_either_spelling() {
    let folder = TempDir::new().unwrap();
    let second = folder.path().join("second.yaml");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE)).unwrap();
    fs::write(&second, text.replace("hello-website", "second")).unwrap();
    let second = second.to_str().unwrap();
    let (code, out, err) = run(&["generate", "rbac", "-k", EXAMPLE, second]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("orkestra:default:hello-website") && out.contains("orkestra:default:second"),
        "{out}"
    );
    assert_eq!(
        run(&["generate", "rbac", "-k", EXAMPLE, "-k", second]).1,
        out
    );
    assert!(
        !out.contains('\u{1b}'),
        "the output has colours without a terminal"
    );
    // `--only-katalogs` is for an installation that owns the controller's own roles.
    let (code, own, err) = run(&["generate", "rbac", "--only-katalogs", "-k", EXAMPLE, second]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with(&own), "{own}");
    let names: Vec<&str> = own
        .lines()
        .filter_map(|line| line.strip_prefix("  name: orkestra:"))
        .collect();
    let expected = ["default:hello-website", "default:second"];
    assert!(
        expected.iter().all(|name| names.contains(name)) && own.matches("\nkind: ").count() == 4,
        "{own}"
    );
}

#[test]
fn a_mistake_is_reported_with_its_place_and_1() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("k.yaml");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE)).unwrap();
    fs::write(&file, text.replace("replicas:", "replicsa:")).unwrap();
    let name = file.to_str().unwrap();
    let line = text
        .lines()
        .position(|line| line.trim_start().starts_with("replicas:"))
        .unwrap()
        + 1;
    let (code, out, err) = run(&["generate", "rbac", "-k", name]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains(&format!("--> {name}:{line}:")), "{err}");
    for part in [
        "error[ORK0010]",
        "replicsa: \"{{ .spec",
        "^^^^^^^^",
        "1 error",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let (code, _, err) = run(&["generate", "rbac", "-k", "not/there.yaml"]);
    assert_eq!(code, 1);
    assert!(err.contains("not/there.yaml"), "{err}");
    // Without a path, the default is `katalog.yaml`.
    let empty = TempDir::new().unwrap();
    let out = ork().arg("run").current_dir(&empty).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(err.contains("katalog.yaml"), "{err}");
}

#[test]
fn validate_and_render_read_standard_input() {
    let feed = |args: &[&str], file: &str| {
        let text = fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let out = ork().args(args).stdin(text).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    assert_eq!(feed(&["validate", "-"], EXAMPLE).0, Some(0));
    let website = "examples/01-hello-website/website.yaml";
    let (code, piped) = feed(&["render", "-k", EXAMPLE, "--cr", "-"], website);
    assert_eq!(code, Some(0));
    assert_eq!(run(&["render", "-k", EXAMPLE, "--cr", website]).1, piped);
    assert!(piped.contains("kind: Deployment"), "{piped}");
    assert_eq!(
        feed(&["render", "-k", "-", "--cr", "-"], website).0,
        Some(1)
    );
}

#[test]
fn versions_completions_and_pages_are_printed() {
    let (code, out, _) = run(&["version"]);
    let first = format!("ork {}\n", env!("CARGO_PKG_VERSION"));
    assert!(
        code == 0 && out.starts_with(&first) && out.contains("Kubernetes 1."),
        "{out}"
    );
    let (_, out, _) = run(&["version", "--output", "json"]);
    let version: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        version["kubernetes"][0].is_string() && version.get("commit").is_some(),
        "{out}"
    );
    let (code, out, _) = run(&["completion", "bash"]);
    assert!(code == 0 && out.contains("complete -F _ork"), "{out}");
    let folder = TempDir::new().unwrap();
    let pages = folder.path().join("man");
    assert_eq!(run(&["man", "--output", pages.to_str().unwrap()]).0, 0);
    assert!(pages.join("ork-generate-rbac.1").exists());
    let (code, out, _) = run(&["man"]);
    assert!(code == 0 && out.contains(".TH"), "{out}");
}

#[test]
fn without_a_path_the_file_of_the_folder_is_taken_a_komposer_too() {
    let folder = TempDir::new().unwrap();
    let run_in = |args: &[&str]| {
        let out = ork().args(args).current_dir(&folder).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let render = ["render", "--cr", "cr.yaml"];
    let (code, said) = run_in(&render);
    assert_eq!(code, Some(1));
    assert!(said.contains("specify a Katalog with `--file`"), "{said}");
    let (code, said) = run_in(&["diff"]);
    assert_eq!(code, Some(2), "1 means differences: {said}");
    assert!(said.contains("specify a Katalog with `--file`"), "{said}");
    let komposer = "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: { name: k }\nsources: { files: [no.yaml] }\n";
    fs::write(folder.path().join("komposer.yaml"), komposer).unwrap();
    let (code, said) = run_in(&["run"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("komposer.yaml:4:") && said.contains("cannot read no.yaml"),
        "{said}"
    );
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/01-hello-website");
    for (from, to) in [("katalog", "katalog"), ("website", "cr"), ("crd", "crd")] {
        let (from, to) = (format!("{from}.yaml"), format!("{to}.yaml"));
        fs::copy(example.join(from), folder.path().join(to)).unwrap();
    }
    let (code, said) = run_in(&render);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn render_prints_nothing_of_what_fails() {
    let (code, out, err) = run(&["render", "-k", EXAMPLE, "--cr", EXAMPLE]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no Katalog operates Katalog"), "{err}");
}

#[test]
fn a_new_katalog_passes_its_own_test() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("frog-pond");
    let args = ["init", "frog-pond", "--dir", target.to_str().unwrap()];
    let (code, out, err) = run(&args);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let check = || {
        let mut check = Command::new(target.join("check.sh"));
        check
            .env("ORK", env!("CARGO_BIN_EXE_ork"))
            .output()
            .unwrap()
    };
    let passed = check();
    assert!(passed.status.success(), "{passed:?}");
    let (code, _, err) = run(&args);
    assert_eq!(code, 1);
    assert!(err.contains("not empty"), "{err}");
    let sample = target.join("samples/basic.yaml");
    let text = fs::read_to_string(&sample).unwrap();
    fs::write(&sample, text.replace("replicas: 2", "replicas: 3")).unwrap();
    assert!(!check().status.success(), "a change was not noticed");
}

#[test]
fn notes_are_listed_searched_and_shown() {
    let (code, all, _) = run(&["notes"]);
    assert_eq!(code, 0);
    let (code, some, _) = run(&["notes", "search", "cron"]);
    assert!(code == 0 && some.lines().count() < all.lines().count());
    let (code, shown, _) = run(&["notes", "show", "replace"]);
    assert!(code == 0 && shown.contains("Example:"), "{shown}");
    let (code, _, err) = run(&["notes", "show", "replaec"]);
    assert_eq!(code, 1);
    assert!(err.contains("did you mean `replace`?"), "{err}");
    assert_eq!(run(&["notes", "--domain", "nowhere"]).0, 1);
}

#[test]
fn the_katalog_that_the_readme_shows_is_accepted() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```yaml\n").unwrap();
    let (katalog, _) = rest.split_once("```").unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("k.yaml");
    fs::write(&file, katalog).unwrap();
    let (code, _, err) = run(&["generate", "rbac", "-k", file.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""));
}
