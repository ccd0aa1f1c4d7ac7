//! Every folder of `examples/`: it validates without warnings, and renders to the content of `expected/`.
//!
//! `UPDATE=1 cargo test -p orkestra-author --lib render::examples` rewrites `expected/`; review the differences.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use orkestra_language::document::{DocumentKind, parse_stream};

use super::{
    RenderInput, RenderRequest, Rendered, Show, pick, read_calls, read_objects, read_status,
    render, to_json, to_yaml,
};
use orkestra_engine::reconcile::preview::Assumptions;
use orkestra_loader::files;
use orkestra_object::value::Node;
use orkestra_plan::OperatorPlan;

/// The time of all rendering.
const NOW: &str = "2025-01-01T00:00:00Z";
/// The minimum number of examples.
const LEAST: usize = 25;

fn folders() -> Vec<PathBuf> {
    let all = orkestra_testkit::root().join("examples");
    let entries = fs::read_dir(all)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    // Others, such as gitops/, are layouts of repositories, with tests of their own.
    let is_example = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.is_dir() && name.starts_with(|first: char| first.is_ascii_digit())
    };
    let mut folders: Vec<PathBuf> = entries.filter(is_example).collect();
    folders.sort();
    folders
}

/// The custom resources of an example: files that are neither Katalogs or Motifs, nor definitions, nor referenced by another
/// file.
fn resources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_resource = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml");
        let text = if is_yaml {
            fs::read_to_string(path).unwrap()
        } else {
            String::new()
        };
        let sources = parse_stream(name, &text).sources;
        is_yaml
            && name.split('.').count() == 2
            && !sources.is_empty()
            && sources.iter().all(|source| {
                let kind = source.tree.get("kind").and_then(|kind| kind.as_str());
                kind.is_some_and(|kind| kind != "CustomResourceDefinition")
                    && DocumentKind::of(source).is_none()
            })
    };
    let mut resources: Vec<PathBuf> = entries.filter(is_resource).collect();
    resources.sort();
    resources
}

/// Every example's folder with each of its custom resources.
pub(crate) fn inputs() -> Vec<(PathBuf, PathBuf)> {
    let of = |folder: PathBuf| {
        let files = resources(&folder).into_iter();
        files.map(move |file| (folder.clone(), file))
    };
    folders().into_iter().flat_map(of).collect()
}

fn request(folder: &Path, resource: &Path) -> RenderRequest {
    let beside = |what: &str| Some(resource.with_extension(what)).filter(|path| path.exists());
    RenderRequest {
        katalogs: vec![folder.to_owned()],
        resources: vec![resource.to_owned()],
        status: beside("status.yaml"),
        children: beside("children.yaml").into_iter().collect(),
        cross: beside("cross.yaml").into_iter().collect(),
        calls: beside("answers.yaml"),
        now: NOW.parse().unwrap(),
        fetch: std::sync::Arc::new(orkestra_loader::compose::DiskFiles),
    }
}

async fn rendered(folder: &Path, resource: &Path) -> Rendered {
    render(&request(folder, resource)).await
}

/// Calls `each` with the operator of each custom resource of a file, and with what `ork render` assumes.
pub(crate) async fn with_passes(
    folder: &Path,
    resource: &Path,
    mut each: impl FnMut(&OperatorPlan, &Assumptions<'_>),
) {
    let request = request(folder, resource);
    let found = files::validate_with(&request.katalogs, &*request.fetch).await;
    let mut rendered = Rendered::default();
    let resources = read_objects(&request.resources, &mut rendered);
    let status = read_status(request.status.as_slice(), &resources, &mut rendered);
    let calls = read_calls(request.calls.as_slice(), &found.katalogs, &mut rendered);
    let mut nodes = |paths: &[PathBuf]| -> Vec<Node> {
        let objects = read_objects(paths, &mut rendered).into_iter();
        objects.map(|object| object.node).collect()
    };
    let (children, cross) = (nodes(&request.children), nodes(&request.cross));
    for resource in &resources {
        let given = RenderInput {
            resource,
            status: status.as_ref(),
            children: &children,
            cross: &cross,
            calls: &calls,
            now: request.now,
        };
        let picked = pick(&found.katalogs, resource).unwrap();
        let scopes = picked.scopes();
        each(picked.operator, &given.assumptions(&picked, &scopes));
    }
}

#[tokio::test]
async fn there_are_enough_examples_and_none_has_a_problem() {
    assert!(folders().len() >= LEAST);
    for folder in folders() {
        let found = files::validate(std::slice::from_ref(&folder)).await;
        assert!(found.problems.is_empty(), "{}", found.problems);
        assert!(folder.join("README.md").exists(), "{}", folder.display());
        assert!(!resources(&folder).is_empty(), "{}", folder.display());
    }
}

#[test]
fn the_list_of_examples_is_current() {
    let mut list = String::from(
        "<!-- Generated: UPDATE=1 cargo test -p orkestra-author --lib render::examples -->\n# Examples\n\nThe examples range from a first Katalog to advanced \
         ones. Each folder has the CRD, the Katalog, custom resources, and in `expected/` the output of `ork render --show-secrets \
         --with-status`. `ork simulate` in a folder runs its `simulate.yaml`, a test of the operator without a cluster \
         ([testing](../docs/guides/testing.md)). Some folders have an `e2e.yaml`, which `ork e2e --use-current` runs on the cluster of your kubeconfig. The README of each example lists the commands to run it in the cluster of your kubeconfig. To run \
         several at the same time, give each `ork run` a different `--listen`. To clean up, delete the custom resources while `ork run` is \
         running, then stop it with Ctrl-C. A test runs every command and checks that the cluster contains the expected objects.\n\n",
    );
    for folder in folders() {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        let title = readme.lines().next().unwrap().trim_start_matches("# ");
        writeln!(list, "- [{name}]({name}): {title}").unwrap();
    }
    orkestra_testkit::assert_document("examples/README.md", &list);
}

#[tokio::test]
async fn every_example_renders_to_what_is_expected() {
    let show = Show {
        secrets: true,
        status: true,
    };
    let mut stale = Vec::new();
    for folder in folders() {
        let mut expected = BTreeSet::new();
        for resource in resources(&folder) {
            let rendered = rendered(&folder, &resource).await;
            assert!(rendered.problems.is_empty(), "{}", rendered.problems);
            let text = to_yaml(&rendered.passes, show).unwrap();
            let file = folder.join("expected").join(resource.file_name().unwrap());
            if std::env::var_os("UPDATE").is_some() {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, &text).unwrap();
            }
            if fs::read_to_string(&file).unwrap_or_default() != text {
                stale.push(file.display().to_string());
            }
            expected.insert(file);
        }
        let there = fs::read_dir(folder.join("expected")).unwrap();
        let there: BTreeSet<PathBuf> = there.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(there, expected, "each stands for a custom resource");
    }
    assert!(
        stale.is_empty(),
        "run the test again with UPDATE=1 and read what differs: {}",
        stale.join(", ")
    );
}

/// Users try several in one namespace, and so does the test on the control plane.
#[tokio::test]
async fn no_two_examples_make_the_same_object() {
    let mut makers: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in folders() {
        for resource in resources(&folder) {
            let rendered = rendered(&folder, &resource).await;
            let show = Show {
                status: true,
                ..Show::default()
            };
            let list = to_json(&rendered.passes, show);
            for object in list["items"].as_array().unwrap() {
                let group = object["apiVersion"].as_str().unwrap();
                let group = group.split_once('/').map_or("", |(group, _)| group);
                let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"]
                    .map(|field| {
                        object
                            .pointer(field)
                            .map_or("", |text| text.as_str().unwrap())
                    });
                let key = format!("{kind}.{group} {namespace}/{name}");
                let maker = makers.entry(key.clone()).or_insert_with(|| folder.clone());
                assert_eq!(*maker, folder, "both make {key}");
            }
        }
    }
}

#[tokio::test]
async fn every_example_makes_objects_that_kubectl_takes() {
    for folder in folders() {
        for resource in resources(&folder) {
            let rendered = rendered(&folder, &resource).await;
            let list = to_json(&rendered.passes, Show::default());
            for object in list["items"].as_array().unwrap() {
                for field in ["/apiVersion", "/kind", "/metadata/name"] {
                    let text = object.pointer(field).and_then(|value| value.as_str());
                    assert!(
                        text.is_some_and(|text| !text.is_empty()),
                        "{field}: {object}"
                    );
                }
            }
            // Parsing the stream gives the same objects.
            let text = to_yaml(&rendered.passes, Show::default()).unwrap();
            let stream = parse_stream("out.yaml", &text);
            assert!(stream.problems.is_empty(), "{}", stream.problems);
            let read: Vec<_> = stream
                .sources
                .iter()
                .map(|source| source.tree.to_json())
                .collect();
            assert_eq!(read, *list["items"].as_array().unwrap());
        }
    }
}
