//! The samples of `docs/guides/admission.md` and `docs/guides/conversion.md`.

use std::{fs, path::Path};

use orkestra_engine::admission::explain;
use serde_json::Value;

use super::{compiled, convert::converted, generate, plan};

/// Returns the code blocks of one language in a document.
fn blocks(file: &str, language: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file);
    let text = fs::read_to_string(file).unwrap();
    let open = format!("```{language}\n");
    let parts = text.split(&open).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_places_of_rules_are_those_of_the_document() {
    let katalogs = blocks("guides/admission.md", "yaml");
    let plan = plan(&katalogs[0], &[generate::definition()]);
    let rows: Vec<String> = explain(&plan).iter().map(ToString::to_string).collect();
    let reported = &blocks("guides/admission.md", "text")[0];
    assert_eq!(rows, reported.lines().collect::<Vec<_>>());
    assert_eq!(
        (katalogs.len(), compiled(&katalogs[0], &[]).is_ok()),
        (1, true)
    );
}

#[test]
fn the_conversion_is_that_of_the_document() {
    let plan = plan(&blocks("guides/conversion.md", "yaml")[0], &[]);
    let objects = blocks("guides/conversion.md", "json");
    let objects: Vec<Value> = objects
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let there = converted(&plan.conversions[0], &objects[0], "demo.example.org/v2").unwrap();
    assert_eq!(there, objects[1]);
    let back = converted(&plan.conversions[0], &there, "demo.example.org/v1").unwrap();
    assert_eq!(back, objects[0]);
}
