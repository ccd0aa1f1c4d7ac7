//! Every example has a Simulate that passes, and `docs/guides/testing.md` shows one of them unchanged.

use std::{fs, path::PathBuf};

use super::{SimulateOptions, simulate, to_text};

fn root() -> PathBuf {
    orkestra_testkit::root()
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("examples")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.is_dir() && name.starts_with(|first: char| first.is_ascii_digit())
    });
    folders.sort();
    folders
}

#[tokio::test]
async fn every_example_has_a_simulation_that_passes() {
    for folder in folders() {
        let file = folder.join("simulate.yaml");
        let simulated = simulate(std::slice::from_ref(&file), &SimulateOptions::default()).await;
        assert!(
            simulated.problems.is_empty(),
            "{}: {}",
            file.display(),
            simulated.problems
        );
        assert_eq!(simulated.suites.len(), 1, "{}", file.display());
        assert!(simulated.is_passed(), "{}", to_text(&simulated));
        let checks = &simulated.suites[0].checks;
        assert!(checks.len() > 2, "{} expects little", file.display());
    }
}

#[tokio::test]
async fn the_page_about_testing_shows_a_simulation_and_its_output() {
    let page = fs::read_to_string(root().join("docs/guides/testing.md")).unwrap();
    let folder = root().join("examples/01-hello-website");
    let file = folder.join("simulate.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let spec = text.split_once("apiVersion").unwrap().1;
    assert!(
        page.contains(&format!("```yaml\napiVersion{spec}```")),
        "{spec}"
    );
    let simulated = simulate(std::slice::from_ref(&file), &SimulateOptions::default()).await;
    let shown = to_text(&simulated).replace(&file.display().to_string(), "simulate.yaml");
    assert!(page.contains(&format!("```text\n{shown}```")), "{shown}");
}

#[tokio::test]
async fn the_page_about_testing_shows_an_e2e_and_every_e2e_of_the_examples_is_sound() {
    let page = fs::read_to_string(root().join("docs/guides/testing.md")).unwrap();
    let file = root().join("examples/01-hello-website/e2e.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let spec = text.split_once("apiVersion").unwrap().1;
    assert!(
        page.contains(&format!("```yaml\napiVersion{spec}```")),
        "{spec}"
    );
    let files = folders().into_iter().map(|folder| folder.join("e2e.yaml"));
    let files: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
    assert!(files.len() >= 2);
    for file in files {
        let found = orkestra_loader::files::validate(std::slice::from_ref(&file)).await;
        assert!(found.problems.is_empty(), "{}", found.problems);
    }
}
