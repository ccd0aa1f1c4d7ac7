//! Interoperability of signatures between `ork` and `cosign`.

use anyhow::{Context as _, Result};
use orkestra_registry_tests::{Access, Registry, Workspace};

use crate::{KATALOG, workspace};

const COSIGN_SIGN: &str =
    "sign --key cosign.key --yes --use-signing-config=false --tlog-upload=false";
const COSIGN_VERIFY: &str = "verify --insecure-ignore-tlog=true --key";

/// Pushes an artifact, and creates a key pair with cosign. Returns the reference with its digest.
fn pushed(work: &Workspace, host: &str) -> Result<String> {
    work.tool("cosign", "generate-key-pair")?.ok()?;
    let pushed = work
        .ork(&format!("push shop oci://{host}/k/shop -o json"))?
        .json()?;
    let digest = pushed["digest"].as_str().context("no digest")?;
    Ok(format!("{host}/k/shop@{digest}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cosign_signs_ork_verifies_and_another_key_does_not_do() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    for (flag, format) in [("", "bundle"), ("--new-bundle-format=false", "simple")] {
        let work = workspace()?;
        // A separate repository for each format.
        work.write("shop/README.md", format)?;
        let reference = pushed(&work, &format!("{}/{format}", registry.host))?;
        let unsigned = work
            .ork(&format!("verify {reference} --key cosign.pub"))?
            .fails(1)?;
        assert!(unsigned.contains("has no signature"), "{unsigned}");
        work.tool("cosign", &format!("{COSIGN_SIGN} {flag} {reference}"))?
            .ok()?;
        let verified = work
            .ork(&format!("verify {reference} --key cosign.pub -o json"))?
            .json()?;
        assert_eq!(verified["format"], format);
        let stranger = work.shell("mkdir other && cd other && cosign generate-key-pair")?;
        stranger.ok()?;
        let refused = work
            .ork(&format!("verify {reference} --key other/cosign.pub"))?
            .fails(1)?;
        assert!(
            refused.contains("not signed with the given key"),
            "{refused}"
        );
        // The other format is missing, as in a downgrade attack.
        let other = if format == "bundle" {
            "simple"
        } else {
            "bundle"
        };
        let refused = work
            .ork(&format!(
                "verify {reference} --key cosign.pub --format {other}"
            ))?
            .fails(1)?;
        assert!(refused.contains("this format is not accepted"), "{refused}");
        // The new content of a moved tag is not signed.
        work.write("shop/katalog.yaml", &KATALOG.replace("a: b", "a: c"))?;
        let place = reference.split('@').next().context("no digest")?;
        work.ork(&format!("push shop oci://{place}:1.2.0 --force"))?
            .ok()?;
        let refused = work
            .ork(&format!(
                "pull oci://{place}:1.2.0 changed --key cosign.pub"
            ))?
            .fails(1)?;
        assert!(
            refused.contains("has no signature") && !work.path("changed").exists(),
            "{refused}"
        );
        work.ork(&format!("pull {reference} pulled --key cosign.pub"))?
            .ok()?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ork_signs_cosign_verifies_beside_its_own() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    for (flags, format) in [
        ("", "bundle"),
        ("--format simple", "simple"),
        ("--format bundle --format simple", "bundle"),
    ] {
        let work = workspace()?;
        let host = format!("{}/own{}", registry.host, flags.len());
        let reference = pushed(&work, &host)?;
        let before = work.tool("cosign", &format!("{COSIGN_VERIFY} cosign.pub {reference}"))?;
        assert_ne!(before.code, 0, "an unsigned artifact is verified");
        work.ork(&format!("sign {reference} --key cosign.key {flags}"))?
            .ok()?;
        work.tool("cosign", &format!("{COSIGN_VERIFY} cosign.pub {reference}"))?
            .ok()?;
        let verified = work
            .ork(&format!("verify {reference} --key cosign.pub -o json"))?
            .json()?;
        assert_eq!(verified["format"], format);
        // The other tool adds a second signature. If there is a bundle, cosign ignores signatures in the older format, so the
        // second one has the format of the first.
        work.shell("mkdir second && cd second && cosign generate-key-pair")?
            .ok()?;
        let old = if format == "simple" {
            " --new-bundle-format=false"
        } else {
            ""
        };
        let second = COSIGN_SIGN.replace("cosign.key", "second/cosign.key") + old;
        work.tool("cosign", &format!("{second} {reference}"))?
            .ok()?;
        for key in ["cosign.pub", "second/cosign.pub"] {
            work.ork(&format!("verify {reference} --key {key}"))?.ok()?;
            work.tool("cosign", &format!("{COSIGN_VERIFY} {key} {reference}"))?
                .ok()?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_reported_and_a_key_of_openssl_needs_none() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let work = workspace()?;
    let reference = pushed(&work, &registry.host)?;
    let refused = work
        .ork_with(
            &format!("sign {reference} --key cosign.key --password-stdin"),
            "wrong\n",
        )?
        .fails(1)?;
    assert!(refused.contains("the password is wrong"), "{refused}");
    work.ork_with(
        &format!("sign {reference} --key cosign.key --password-stdin"),
        "correct-horse\n",
    )?
    .ok()?;
    work.write(
        "plain.key",
        &orkestra_registry::signature::PrivateKey::generate()?,
    )?;
    work.ork(&format!("sign {reference} --key plain.key"))?
        .ok()?;
    let inspected = work
        .ork(&format!("inspect {reference} --key cosign.pub -o json"))?
        .json()?;
    assert_eq!(inspected["signatures"]["bundle"], 2);
    assert_eq!(inspected["verified"], "bundle");
    Ok(())
}
