//! `make image-push` with a real registry: other tools read the image, its documents and its signature.

use anyhow::{Context as _, Result, ensure};
use orkestra_registry_tests::{Access, Registry, Workspace};
use serde_json::Value;

const SBOM: &str = "application/vnd.cyclonedx+json";
const PROVENANCE: &str = "application/vnd.in-toto+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const VERIFY: &str = "verify --insecure-ignore-tlog=true --key";

/// Runs the program of `make image` and `make image-push` with a placeholder for the binary. Returns its output.
fn release(work: &Workspace, line: &str) -> Result<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let inputs = format!("--root {root} --binary ork-binary --ca-roots roots.pem");
    let (command, rest) = line.split_once(' ').context("no arguments")?;
    let printed = work
        .shell(&format!("ORK_COMMIT=abc release {command} {inputs} {rest}"))?
        .ok()?;
    Ok(printed.trim().to_owned())
}

/// Creates a workspace with an image in an OCI layout. Returns the digest of the image too.
fn built() -> Result<(Workspace, String)> {
    let work = Workspace::new()?;
    work.write("ork-binary", &"not a program".repeat(10_000))?;
    work.write("roots.pem", "-----BEGIN CERTIFICATE-----\n")?;
    let digest = release(&work, "image --output image")?;
    Ok((work, digest))
}

/// Returns the types and digests of the referrers that oras finds.
fn referrers(work: &Workspace, reference: &str) -> Result<Vec<(String, String)>> {
    let found = work
        .tool(
            "oras",
            &format!("discover --plain-http --format json {reference}"),
        )?
        .json()?;
    let listed = found["referrers"].as_array().into_iter().flatten();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = listed
        .map(|one| (text(one, "artifactType"), text(one, "digest")))
        .collect();
    all.sort();
    Ok(all)
}

/// Returns the content of a referrer's only layer.
fn document(work: &Workspace, repository: &str, digest: &str) -> Result<Value> {
    let manifest = work
        .tool(
            "oras",
            &format!("manifest fetch --plain-http {repository}@{digest}"),
        )?
        .json()?;
    let layers = manifest["layers"].as_array().context("no layers")?;
    ensure!(layers.len() == 1, "{manifest}");
    let blob = layers[0]["digest"].as_str().context("no digest")?;
    work.tool(
        "oras",
        &format!("blob fetch --plain-http --output - {repository}@{blob}"),
    )?
    .json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pushed_with_its_documents_and_cosign_verifies_its_signature() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, digest) = built()?;
    let repository = format!("{}/k/orkestra", registry.host);
    let reference = format!("{repository}:1.2.3");
    work.tool("cosign", "generate-key-pair")?.ok()?;
    let pushed = release(
        &work,
        &format!("push --layout image --key cosign.key {reference}"),
    )?;
    ensure!(
        pushed.ends_with(&format!("k/orkestra@{digest}")),
        "{pushed}"
    );

    // The tag refers to the image that was built, and all of its content can be copied.
    let resolved = work
        .tool("oras", &format!("resolve --plain-http {reference}"))?
        .ok()?;
    assert_eq!(resolved.trim(), digest);
    work.tool(
        "oras",
        &format!("copy --recursive --from-plain-http {reference} --to-oci-layout copied:1.2.3"),
    )?
    .ok()?;
    let copied = work
        .tool("oras", "resolve --oci-layout copied:1.2.3")?
        .ok()?;
    assert_eq!(copied.trim(), digest);

    let found = referrers(&work, &reference)?;
    let types: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(types, [SBOM, BUNDLE, PROVENANCE]);
    let bill = document(&work, &repository, &found[0].1)?;
    ensure!(bill["bomFormat"] == "CycloneDX", "{bill}");
    let components = bill["components"].as_array().context("no components")?;
    ensure!(
        components.iter().any(|one| one["name"] == "tokio"),
        "the SBOM lacks tokio"
    );
    let statement = document(&work, &repository, &found[2].1)?;
    let subjects = statement["subject"].as_array().context("no subjects")?;
    let sha256 = digest.strip_prefix("sha256:").context("not SHA-256")?;
    ensure!(
        subjects.iter().any(|one| one["digest"]["sha256"] == sha256),
        "{statement}"
    );

    let verified = work.tool("cosign", &format!("{VERIFY} cosign.pub {reference}"))?;
    verified.ok()?;
    work.shell("mkdir other && cd other && cosign generate-key-pair")?
        .ok()?;
    let stranger = work.tool("cosign", &format!("{VERIFY} other/cosign.pub {reference}"))?;
    assert_ne!(stranger.code, 0, "another key verifies");
    // `ork` verifies it as well.
    work.ork(&format!("verify {repository}@{digest} --key cosign.pub"))?
        .ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_an_image_is_not_signed_and_a_second_push_changes_nothing() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, digest) = built()?;
    let reference = format!("{}/k/orkestra:1.2.3", registry.host);
    let push = format!("push --layout image {reference}");
    release(&work, &push)?;
    let found = referrers(&work, &reference)?;
    let types: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(types, [SBOM, PROVENANCE]);
    release(&work, &push)?;
    assert_eq!(referrers(&work, &reference)?, found);
    let resolved = work
        .tool("oras", &format!("resolve --plain-http {reference}"))?
        .ok()?;
    assert_eq!(resolved.trim(), digest);
    // The provenance would name a commit that the image was not built from.
    let other = release(&work, &push.replace("push ", "push --commit def "));
    let refused = other.err().context("another commit was accepted")?;
    ensure!(
        refused.to_string().contains("the image is of commit `abc`"),
        "{refused}"
    );
    // A layout that was changed is not pushed.
    let blobs = work.path("image/blobs/sha256");
    let mut layers = std::fs::read_dir(blobs)?;
    let layer = layers.next().context("no blobs")??.path();
    std::fs::write(layer, "changed")?;
    ensure!(release(&work, &push).is_err(), "a changed image was pushed");
    Ok(())
}
