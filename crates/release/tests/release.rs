//! The parts of a release: they contain the same bytes in every folder, and standard tools can read them.
//!
//! One file: a test for each part of a release, over the same sources.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails where something is missing"
)]

use std::{collections::BTreeMap, env, fs, io::Read as _, path::Path, process::Command};

use orkestra_registry::Digest;
use release::{
    Moment,
    archive::{Entry, gzip, tar},
    dist,
    image::{self, Image, PROGRAM, ROOTS, Source, labels},
    places::Places,
    provenance::{self, Build},
    sbom,
};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn source() -> Source {
    Source {
        binary: b"not a program".to_vec(),
        roots: b"-----BEGIN CERTIFICATE-----".to_vec(),
        license: b"Apache-2.0".to_vec(),
        architecture: "amd64".to_owned(),
        version: "1.2.3".to_owned(),
        commit: "abc".to_owned(),
        moment: Moment(86_400),
    }
}

/// Returns the files of a layer: mode, owner, time and content.
fn unpack(layer: &[u8]) -> BTreeMap<String, (u32, u64, u64, Vec<u8>)> {
    let mut archive = ::tar::Archive::new(flate2::read::GzDecoder::new(layer));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let (path, header) = (
            entry.path().unwrap().display().to_string(),
            entry.header().clone(),
        );
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(
            path,
            (
                header.mode().unwrap(),
                header.uid().unwrap(),
                header.mtime().unwrap(),
                content,
            ),
        );
    }
    files
}

#[test]
fn two_builds_have_one_digest_and_another_binary_has_another() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let digests = [&one, &other].map(|folder| {
        let image = Image::build(&source()).unwrap();
        image::write(folder.path(), &image.layout("1.2.3").unwrap()).unwrap();
        image.digest()
    });
    assert_eq!(digests[0], digests[1]);
    let index = |folder: &tempfile::TempDir| fs::read(folder.path().join("index.json")).unwrap();
    assert_eq!(index(&one), index(&other));
    let changed = Source {
        binary: b"another".to_vec(),
        ..source()
    };
    assert_ne!(Image::build(&changed).unwrap().digest(), digests[0]);
}

#[test]
fn an_image_holds_the_binary_and_the_roots_and_nothing_that_runs() {
    let image = Image::build(&source()).unwrap();
    let config: Value = serde_json::from_slice(&image.blobs[0].1).unwrap();
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/ork"]));
    assert_eq!(config["created"], "1970-01-02T00:00:00Z");
    let mut files = BTreeMap::new();
    for ((_, layer), diff_id) in image.blobs[1..]
        .iter()
        .zip(config["rootfs"]["diff_ids"].as_array().unwrap())
    {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&layer[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(diff_id, &Digest::of(&plain).to_string());
        files.extend(unpack(layer));
    }
    let programs: Vec<&String> = files
        .iter()
        .filter(|(path, file)| file.0 & 0o111 != 0 && !path.ends_with('/'))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(programs, [PROGRAM]);
    assert_eq!(files[PROGRAM].3, b"not a program");
    assert_eq!(files[ROOTS].3, source().roots);
    for (path, (mode, owner, time, _)) in &files {
        assert_eq!((*owner, *time, mode & 0o022), (0, 86_400, 0), "{path}");
    }
}

#[test]
fn a_layout_is_read_again_and_a_changed_blob_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::build(&source()).unwrap();
    image::write(folder.path(), &image.layout("1.2.3").unwrap()).unwrap();
    let read = Image::read(folder.path()).unwrap();
    assert_eq!((read.digest(), &read.blobs), (image.digest(), &image.blobs));
    let layer = folder
        .path()
        .join("blobs/sha256")
        .join(image.blobs[1].0.digest.hex());
    fs::write(layer, b"tampered").unwrap();
    let error = Image::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("other content"), "{error}");
}

#[test]
fn archives_do_not_depend_on_the_order_of_their_files() {
    let files = [
        Entry::file("b", "2"),
        Entry::program("a", "1"),
        Entry::folder("c/"),
    ];
    let mut turned = files.clone();
    turned.reverse();
    let moment = Moment::default();
    let archive = tar(&files, moment).unwrap();
    assert_eq!(archive, tar(&turned, moment).unwrap());
    let packed = gzip(&archive).unwrap();
    // The header has no time, no name and an unknown system.
    assert_eq!(packed[3..8], [0, 0, 0, 0, 0]);
    assert_eq!(packed[9], 255);
}

#[test]
fn the_labels_of_the_containerfile_are_those_of_the_image() {
    let text = fs::read_to_string(root().join("Containerfile")).unwrap();
    for (label, value) in labels("$VERSION", "$ORK_COMMIT") {
        assert!(
            text.contains(&format!("{label}=\"{value}\"")),
            "{label}={value}"
        );
    }
    for line in [
        "FROM scratch",
        "USER 65532:65532",
        "ENTRYPOINT [\"/usr/bin/ork\"]",
        "target-feature=+crt-static",
    ] {
        assert!(text.contains(line), "{line}");
    }
    assert!(text.contains(&format!("/{ROOTS} /{ROOTS}")), "CA roots");
}

/// Returns cargo's metadata of the packages for this machine. Packages of other targets may not be downloaded.
fn metadata() -> Value {
    let target = env::consts::ARCH.to_owned() + "-unknown-linux-gnu";
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", &target])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_bill_lists_what_is_linked_with_the_checksums_of_the_lock_file() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let bill = sbom::sbom(&metadata(), &lock, "orkestra", Moment::default()).unwrap();
    assert_eq!(bill["metadata"]["component"]["name"], "orkestra");
    let components = bill["components"].as_array().unwrap();
    let names: Vec<&str> = components
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    for linked in [
        "tokio",
        "rustls",
        "kube",
        "orkestra-engine",
        "orkestra-charts",
    ] {
        assert!(names.contains(&linked), "{linked}");
    }
    for other in [
        "jsonschema",
        "orkestra-testbed",
        "orkestra-release",
        "orkestra-bench",
    ] {
        assert!(!names.contains(&other), "{other} is not part of the binary");
    }
    for one in components
        .iter()
        .filter(|one| !one["name"].as_str().unwrap().starts_with("orkestra"))
    {
        let sum = one["hashes"][0]["content"].as_str().unwrap_or_default();
        assert_eq!(sum.len(), 64, "{one}");
        assert!(one["licenses"][0]["expression"].is_string(), "{one}");
    }
    let paths = bill.to_string();
    assert!(
        !paths.contains(env!("CARGO_MANIFEST_DIR")),
        "the SBOM contains a path of this machine"
    );
    let known: Vec<&Value> = components.iter().map(|one| &one["bom-ref"]).collect();
    for node in bill["dependencies"].as_array().unwrap() {
        assert!(
            node["dependsOn"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| known.contains(&one)),
            "{node}"
        );
    }
    assert!(sbom::sbom(&json!({}), "", "orkestra", Moment::default()).is_err());
}

#[test]
fn the_provenance_names_the_artifacts_by_digest_and_the_commit() {
    let build = Build {
        commit: "0123456789012345678901234567890123456789".to_owned(),
        compiler: "rustc 1.95.0".to_owned(),
        target: "linux/amd64".to_owned(),
        source: Some("https://git.example/orkestra".to_owned()),
        builder: "https://builder.example".to_owned(),
        lock: b"lock".to_vec(),
        roots: b"roots".to_vec(),
        moment: Moment(1),
    };
    let digest = Digest::of(b"ork");
    let statement = provenance::statement(&[("ork-linux-amd64".to_owned(), digest)], &build);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest.hex());
    let inputs = &statement["predicate"]["buildDefinition"]["resolvedDependencies"];
    assert_eq!(inputs[0]["digest"]["gitCommit"], build.commit);
    let uri = format!("git+https://git.example/orkestra@{}", build.commit);
    assert_eq!(inputs[0]["uri"], uri);
    let nowhere = Build {
        source: None,
        ..build
    };
    let nowhere = provenance::statement(&[], &nowhere).to_string();
    assert!(!nowhere.contains("git+"), "{nowhere}");
    assert_eq!(inputs[1]["digest"]["sha256"], Digest::of(b"lock").hex());
}

#[test]
fn the_package_of_the_chart_is_the_same_twice_and_holds_the_crds() {
    let folder = root().join("charts/orkestra");
    let nowhere = Places {
        image: None,
        digest: Digest::of(b"image"),
        releases: None,
        docs: None,
    };
    let package = dist::chart(&folder, &nowhere, Moment::default()).unwrap();
    assert_eq!(
        package,
        dist::chart(&folder, &nowhere, Moment::default()).unwrap()
    );
    let files = unpack(&package);
    for name in [
        "Chart.yaml",
        "values.yaml",
        "values.schema.json",
        "templates/deployment.yaml",
        "files/crds/katalogs.yaml",
        "files/dashboards/orkestra.json",
    ] {
        assert!(files.contains_key(&format!("orkestra/{name}")), "{name}");
    }
}

#[test]
fn checksums_are_those_of_sha256sum() {
    let folder = tempfile::tempdir().unwrap();
    let entries = vec![
        Entry::file("ork", "program"),
        Entry::file("install.yaml", "---\n"),
    ];
    let sums = dist::checksums(&entries);
    image::write(folder.path(), &entries).unwrap();
    image::write(folder.path(), &[sums]).unwrap();
    let checked = Command::new("sha256sum")
        .args(["--check", "--strict", dist::CHECKSUMS])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

mod installer {
    //! `install.sh` with files in place of a server.

    use super::*;

    fn release(folder: &Path, program: &str) {
        let entries = vec![
            Entry::program("ork-linux-amd64", program),
            Entry::program("ork-linux-arm64", program),
        ];
        image::write(folder, &[dist::checksums(&entries)]).unwrap();
        image::write(folder, &entries).unwrap();
    }

    fn run(folder: &Path, target: &Path) -> std::process::Output {
        Command::new("sh")
            .arg(root().join("install.sh"))
            .env("ORK_BASE_URL", format!("file://{}", folder.display()))
            .env("ORK_INSTALL_DIR", target)
            .output()
            .unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_binary_with_its_checksum_is_put_in_place() {
        let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        release(folder.path(), "#!/bin/sh\necho ork 1.2.3\n");
        let output = run(folder.path(), target.path());
        assert!(output.status.success(), "{output:?}");
        let installed = Command::new(target.path().join("ork"))
            .arg("version")
            .output()
            .unwrap();
        assert_eq!(installed.stdout, b"ork 1.2.3\n");
        assert_eq!(names(target.path()), ["ork"]);
    }

    #[test]
    fn a_changed_file_or_a_missing_checksum_leaves_what_was_there() {
        let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(target.path().join("ork"), "the last version").unwrap();
        release(folder.path(), "#!/bin/sh\n");
        for name in ["ork-linux-amd64", "ork-linux-arm64"] {
            fs::write(folder.path().join(name), "#!/bin/sh\necho tampered\n").unwrap();
        }
        let refused = |word: &str| {
            let output = run(folder.path(), target.path());
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && said.contains(word), "{said}");
            assert_eq!(
                fs::read(target.path().join("ork")).unwrap(),
                b"the last version"
            );
            assert_eq!(names(target.path()), ["ork"]);
        };
        refused("checksum");
        fs::write(folder.path().join(dist::CHECKSUMS), "").unwrap();
        refused("no checksum");
        fs::remove_file(folder.path().join(dist::CHECKSUMS)).unwrap();
        refused("cannot download");
    }
}

#[test]
fn a_release_names_the_places_where_it_is_published_and_the_repository_names_none() {
    let read = |path: &str| fs::read(root().join(path)).unwrap();
    let digest = Digest::of(b"image");
    let nowhere = Places {
        image: None,
        digest,
        releases: None,
        docs: None,
    };
    assert_eq!(nowhere.reference(), "registry.invalid/orkestra");
    let script = read("install.sh");
    assert_eq!(nowhere.installer(&script), script);
    let published = Places {
        image: Some("registry.example/orkestra"),
        releases: Some("https://releases.example/orkestra/"),
        docs: Some("https://docs.example/orkestra"),
        ..nowhere
    };
    assert_eq!(
        published.reference(),
        format!("registry.example/orkestra@{digest}")
    );
    let installer = String::from_utf8(published.installer(&script)).unwrap();
    assert!(installer.contains("\nreleases='https://releases.example/orkestra'\n"));
    let packed = dist::chart(
        &root().join("charts/orkestra"),
        &published,
        Moment::default(),
    );
    let files = unpack(&packed.unwrap());
    let text = |path: &str| String::from_utf8(files[path].3.clone()).unwrap();
    let values = text("orkestra/values.yaml");
    assert!(
        values.contains("\n  repository: \"registry.example/orkestra\"\n"),
        "{values}"
    );
    assert!(
        values.contains(&format!("\n  digest: \"{digest}\"\n")),
        "{values}"
    );
    let chart = text("orkestra/Chart.yaml");
    assert!(
        chart.contains("home: \"https://docs.example/orkestra\""),
        "{chart}"
    );
}

#[test]
fn the_installer_asks_for_an_address_if_the_release_has_none() {
    let install = |variables: &[(&str, &str)]| {
        let mut sh = Command::new("sh");
        sh.arg(root().join("install.sh")).env_remove("ORK_BASE_URL");
        sh.envs(variables.iter().copied()).output().unwrap()
    };
    let output = install(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("ORK_BASE_URL"),
        "{said}"
    );
}
