//! Signatures with certificates of a private authority, without a transparency log: `cosign` signs, `cosign` and `ork` verify.

use anyhow::{Context as _, Result};
use orkestra_registry_tests::{Access, Registry, Workspace};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::workspace;

const SUBJECT: &str = "ada@harbour.example";
const ISSUER: &str = "https://accounts.example";

/// Creates an authority and the certificate of an identity, and imports the identity's key into cosign.
fn certify(work: &Workspace, folder: &str) -> Result<()> {
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "harbour");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let root = authority.self_signed(&key)?.pem();
    work.write(&format!("{folder}/ca.pem"), &root)?;
    let issuer = Issuer::new(authority, key);
    let mut leaf = CertificateParams::default();
    // Without a transparency log, cosign uses this as the time of the signature.
    leaf.not_before = rcgen::date_time_ymd(2025, 1, 1);
    leaf.subject_alt_names = vec![SanType::Rfc822Name(SUBJECT.try_into()?)];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let oid = [1, 3, 6, 1, 4, 1, 57264, 1, 1];
    let extension = CustomExtension::from_oid_content(&oid, ISSUER.into());
    leaf.custom_extensions.push(extension);
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?.pem();
    work.write(&format!("{folder}/leaf.pem"), &certificate)?;
    work.write(&format!("{folder}/leaf.key"), &key.serialize_pem())?;
    let import =
        format!("import-key-pair --key {folder}/leaf.key --output-key-prefix {folder}/signer");
    work.tool("cosign", &import)?.ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_identity_signed_with_cosign_ork_verifies_by_the_root_alone() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let work = workspace()?;
    certify(&work, "ours")?;
    certify(&work, "other")?;
    let pushed = work
        .ork(&format!("push shop oci://{}/k/shop -o json", registry.host))?
        .json()?;
    let digest = pushed["digest"].as_str().context("no digest")?;
    let reference = format!("{}/k/shop@{digest}", registry.host);
    let expect = |identity: &str, issuer: &str| {
        format!(
            "--certificate-identity {identity} --certificate-oidc-issuer {issuer} --trusted-root"
        )
    };
    let ours = expect(SUBJECT, ISSUER);
    let unsigned = work
        .ork(&format!("verify {reference} {ours} ours/ca.pem"))?
        .fails(1)?;
    assert!(unsigned.contains("has no signature"), "{unsigned}");
    sign_with_cosign(&work, &reference, &ours)?;
    for root in ["root.json", "ours/ca.pem"] {
        let verified = work
            .ork(&format!("verify {reference} {ours} {root} -o json"))?
            .json()?;
        assert_eq!(verified["identity"], SUBJECT);
        assert_eq!(verified["format"], "simple");
    }
    for (expected, root, why) in [
        (
            &ours,
            "other/ca.pem",
            "no certificate authority of the trusted root",
        ),
        (
            &expect("eve@harbour.example", ISSUER),
            "root.json",
            "is of `ada@harbour.example`",
        ),
        (
            &expect(SUBJECT, "https://evil.example"),
            "root.json",
            "expected `https://evil.example`",
        ),
    ] {
        let refused = work
            .ork(&format!("verify {reference} {expected} {root}"))?
            .fails(1)?;
        assert!(refused.contains(why), "{refused}");
    }
    work.ork(&format!("pull {reference} pulled {ours} root.json"))?
        .ok()?;
    Ok(())
}

/// Signs with cosign, and creates `root.json`, the trusted root that cosign verifies with.
fn sign_with_cosign(work: &Workspace, reference: &str, ours: &str) -> Result<()> {
    let sign = format!(
        "sign --key ours/signer.key --certificate ours/leaf.pem --certificate-chain ours/ca.pem --yes \
         --use-signing-config=false --tlog-upload=false --new-bundle-format=false {reference}"
    );
    work.tool("cosign", &sign)?.ok()?;
    // cosign creates the trusted root from the certificate, and both programs accept it.
    let fulcio =
        "url=https://ca.example,certificate-chain=ours/ca.pem,start-time=2024-01-01T00:00:00Z";
    let create = format!("trusted-root create --fulcio={fulcio} --out root.json");
    work.tool("cosign", &create)?.ok()?;
    let insecure = "--insecure-ignore-tlog=true --insecure-ignore-sct=true";
    work.tool(
        "cosign",
        &format!("verify {insecure} {ours} root.json {reference}"),
    )?
    .ok()?;
    Ok(())
}
