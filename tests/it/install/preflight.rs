//! The checks of `ork install` before it writes, and `ork version --cluster`.

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::site::{NAMESPACE, Site};

const CLAIMS: &str = "orkestra-claims";

/// Returns the Lease of another installation, renewed a duration ago.
fn lease(holder: &str, ago: SignedDuration) -> String {
    let renewed = format!("{:.6}", Timestamp::now() - ago);
    let name = orkestra_language::api::names::installation_lease(holder);
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name, "namespace": CLAIMS },
        "spec": { "holderIdentity": holder, "renewTime": renewed },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_running_installation_is_reported_and_an_abandoned_one_is_not() -> Result<()> {
    let site = Site::start()?;
    site.ork(&["install"])?;
    let quiet = site.said(&["install"])?;
    ensure!(!quiet.contains("another installation"), "{quiet}");

    let sentence = "the installation \"shop/orkestra\" is running";
    let apply = ["apply", "-f", "-"];
    site.kubectl(&apply, Some(&lease("shop/orkestra", SignedDuration::ZERO)))?;
    let said = site.said(&["install"])?;
    ensure!(said.contains(sentence), "{said}");
    let long = SignedDuration::from_mins(6);
    site.kubectl(&apply, Some(&lease("shop/orkestra", long)))?;
    let said = site.said(&["install"])?;
    ensure!(!said.contains(sentence), "{said}");
    // The Lease of the installation itself leads to no warning.
    let own = format!("{NAMESPACE}/orkestra");
    site.kubectl(&apply, Some(&lease(&own, SignedDuration::ZERO)))?;
    let said = site.said(&["install"])?;
    ensure!(!said.contains("is running"), "{said}");

    site.kubectl(&["create", "namespace", "shop"], None)?;
    let second = [
        "install",
        "--namespace",
        "shop",
        "--set",
        "crds.install=false",
        "--set",
        "claims.createNamespace=false",
        "--set",
        "fullnameOverride=second",
    ];
    let said = site.said(&second)?;
    ensure!(
        said.contains("another installation runs in the namespace orkestra-system"),
        "{said}"
    );
    Ok(())
}

/// Returns a CRD of this version with an additional version `v0`, which is the storage version if `is_stored` is true.
fn with_version(crds: &str, plural: &str, is_stored: bool) -> Result<String> {
    let mut all = serde_saphyr::from_multiple::<Value>(crds)?;
    all.retain(|one| one["spec"]["names"]["plural"] == plural);
    ensure!(all.len() == 1, "one CRD of {plural}");
    let mut one = all.remove(0);
    let versions = one["spec"]["versions"].as_array_mut();
    let versions = versions.into_iter().flatten();
    let mut versions: Vec<Value> = versions.map(Value::take).collect();
    let mut other = versions[0].clone();
    other["name"] = json!("v0");
    other["storage"] = json!(is_stored);
    versions[0]["storage"] = json!(!is_stored);
    versions.push(other);
    one["spec"]["versions"] = json!(versions);
    Ok(one.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crds_that_store_objects_in_a_version_that_is_gone_are_not_replaced() -> Result<()> {
    let site = Site::start()?;
    let crds = site.ork(&["crds"])?;
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=ork-install",
        "-f",
        "-",
    ];
    site.kubectl(&apply, Some(&crds))?;
    for is_stored in [true, false] {
        site.kubectl(&apply, Some(&with_version(&crds, "motifs", is_stored)?))?;
        let refused = site.refused(&["install"])?;
        ensure!(
            refused.contains("CRD motifs.orkestra.orkspace.io stores objects in v0, which this version does not have: migrate them first"),
            "{refused}"
        );
    }
    let absent = site.kubectl(&["get", "namespace", NAMESPACE, "--ignore-not-found"], None)?;
    ensure!(absent.is_empty(), "a refused installation wrote {absent}");
    // Without `v0` in `status.storedVersions`, the CRD is replaced.
    let migrated = [
        "patch",
        "crd",
        "motifs.orkestra.orkspace.io",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"storedVersions":["v1"]}}"#,
    ];
    site.kubectl(&migrated, None)?;
    site.ork(&["install"])?;
    site.ork(&["version", "--cluster"]).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_versions_of_the_crds_are_compared_with_those_of_the_cluster() -> Result<()> {
    let site = Site::start()?;
    let katalogs = "katalogs.orkestra.orkspace.io";
    let said = site.refused(&["version", "--cluster"])?;
    ensure!(
        said.contains(&format!("CRD {katalogs} does not exist")),
        "{said}"
    );
    let crds = site.ork(&["crds"])?;
    site.kubectl(&["apply", "--server-side", "-f", "-"], Some(&crds))?;
    site.ork(&["version", "--cluster"])?;
    let annotate = |version: &str, schema: &str| {
        let pairs = [
            format!("orkestra.orkspace.io/version={version}"),
            format!("orkestra.orkspace.io/schema={schema}"),
        ];
        let args = [
            "annotate",
            "--overwrite",
            "crd",
            katalogs,
            &pairs[0],
            &pairs[1],
        ];
        site.kubectl(&args, None)
    };
    let own = env!("CARGO_PKG_VERSION");
    for (version, skew, sentence) in [
        (
            "0.0.1",
            "older",
            "is older: it was written by version 0.0.1",
        ),
        (
            "99.0.0",
            "newer",
            "is newer: it was written by version 99.0.0",
        ),
        (own, "different", "differs from that of this version"),
        ("text", "different", "differs from that of this version"),
    ] {
        annotate(version, "x")?;
        let said = site.refused(&["version", "--cluster"])?;
        ensure!(
            said.contains(&format!("CRD {katalogs} {sentence}")),
            "{version}: {said}"
        );
        let said = site.refused(&["version", "--cluster", "--output", "json"])?;
        let about: Value = serde_json::from_str(&said)?;
        let mut row = about["cluster"].as_array().into_iter().flatten();
        let row = row.find(|row| row["name"] == katalogs);
        ensure!(
            row.is_some_and(|row| row["skew"] == skew),
            "{version}: {about}"
        );
    }
    Ok(())
}
