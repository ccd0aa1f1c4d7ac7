//! The pages of Komposers: their sources, and the operators from their sources.

use orkestra_compiler::compose::SourceRecord;
use orkestra_language::api::SourceStatus;
use orkestra_plan::Declaring;

use super::*;
use orkestra_controller::SourceView;

#[tokio::test]
async fn a_komposer_is_shown_with_its_sources_beside_a_katalog_of_the_same_name() {
    let both = vec![
        katalog("marsh", "reeds", vec![("pond", status())]),
        komposer(),
    ];
    let pages = pages(both, &cluster(BTreeMap::new()));

    let (_, page) = get_json(&pages, "/katalog").await;
    schema::judge("Summary", &page);
    the_summary_lists_both_with_sources_and_operators(&page);

    operators_are_found_by_what_declares_them(&pages).await;
}

/// Returns a Komposer with one source that was fetched and one that is missing.
fn komposer() -> KatalogView {
    let mut komposer = katalog(
        "marsh",
        "reeds",
        vec![("pond", status()), ("creek", status())],
    );
    komposer.kind = Declaring::Komposer;
    komposer.reference = komposer.reference.of(Declaring::Komposer);
    let row = SourceStatus {
        source: "oci://harbour.example/k/creek:v2".to_owned(),
        url: "oci://harbour.example/k/creek@sha256:77".to_owned(),
        revision: "v2".to_owned(),
        digest: "sha256:77".to_owned(),
        verified: Some("key 5".to_owned()),
        message: String::new(),
    };
    let waits = SourceStatus {
        source: "configmap/dunes".to_owned(),
        message: "there is no ConfigMap `dunes`".to_owned(),
        ..SourceStatus::default()
    };
    let records = [SourceRecord {
        source: row.source.clone(),
        operators: vec!["creek".to_owned()],
        ..SourceRecord::default()
    }];
    komposer.sources = SourceView::of(&[row, waits], &records);
    komposer
}

/// Checks the rows of the Katalog and of the Komposer of the same name in the summary.
fn the_summary_lists_both_with_sources_and_operators(page: &Value) {
    let kinds = [
        page["katalogs"][0]["kind"].clone(),
        page["katalogs"][1]["kind"].clone(),
    ];
    assert_eq!(kinds, ["Katalog", "Komposer"]);
    assert_eq!(page["katalogs"][0]["sources"], json!([]));
    let expected = json!([
        {
            "source": "oci://harbour.example/k/creek:v2", "url": "oci://harbour.example/k/creek@sha256:77", "revision": "v2",
            "digest": "sha256:77", "verified": "key 5", "message": null, "operators": ["creek"],
        },
        {
            "source": "configmap/dunes", "url": "", "revision": "", "digest": "", "verified": null,
            "message": "there is no ConfigMap `dunes`", "operators": [],
        },
    ]);
    assert_eq!(page["katalogs"][1]["sources"], expected);
    let rows = page["crds"].as_array().unwrap();
    let rows: Vec<_> = (rows.iter())
        .map(|row| json!([row["path"], row["declaredBy"], row["source"]]))
        .collect();
    let creek = "oci://harbour.example/k/creek:v2";
    let expected = [
        json!(["/katalog/marsh/reeds/pond", "Katalog", null]),
        json!(["/katalog/marsh/komposer:reeds/pond", "Komposer", null]),
        json!(["/katalog/marsh/komposer:reeds/creek", "Komposer", creek]),
    ];
    assert_eq!(rows, expected);
}

/// Checks the paths of operators: unique ones, an ambiguous one, and one that does not exist.
async fn operators_are_found_by_what_declares_them(pages: &Pages) {
    for (path, declared_by) in [
        ("/katalog/marsh/reeds/pond", "Katalog"),
        ("/katalog/marsh/komposer:reeds/pond", "Komposer"),
        ("/katalog/marsh/reeds/creek", "Komposer"),
        ("/katalog/creek", "Komposer"),
    ] {
        let (code, operator) = get_json(pages, path).await;
        assert_eq!(
            (code, &operator["declaredBy"]),
            (200, &json!(declared_by)),
            "{path}"
        );
    }
    let (code, ambiguous) = get_json(pages, "/katalog/pond").await;
    assert_eq!(code, 409);
    let candidates = json!([
        "/katalog/marsh/reeds/pond",
        "/katalog/marsh/komposer:reeds/pond"
    ]);
    assert_eq!(ambiguous["candidates"], candidates);
    let (code, _) = get_json(pages, "/katalog/delta/komposer:mud/pond").await;
    assert_eq!(code, 404);
}
