//! Signatures by certificates: without a transparency log, the certificate must be valid at the time of the fetcher's clock.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use orkestra_ground::Clock;
use orkestra_registry::{
    Descriptor, Digest, Repository,
    artifact::Kind,
    signature::{Identity, PrivateKey, TrustedRoot, sign_bundle},
};
use orkestra_sources::{Error, SignatureRequirement, Verified};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SanType, date_time_ymd,
};
use serde_json::{Value, json};

use crate::{
    fetcher,
    server::Server,
    signatures::{at, client, push, registry, source},
};

const ISSUER: &str = "https://accounts.example";
const SUBJECT: &str = "ada@harbour.example";
/// Fulcio's extension with the issuer of an identity.
const ISSUER_OID: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 8];

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2045, 1, 1);
    params
}

/// Signs an artifact with a certificate that is valid in June 2026. Returns the certificate of its authority.
async fn sign(server: &Server, digest: Digest) -> String {
    let authority = KeyPair::generate().unwrap();
    let root = authority_params().self_signed(&authority).unwrap().pem();
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(2026, 6, 1);
    params.not_after = date_time_ymd(2026, 7, 1);
    params.subject_alt_names = vec![SanType::Rfc822Name(SUBJECT.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let issuer = [
        &[0x0c, u8::try_from(ISSUER.len()).unwrap()],
        ISSUER.as_bytes(),
    ]
    .concat();
    let issuer = CustomExtension::from_oid_content(&ISSUER_OID, issuer);
    params.custom_extensions.push(issuer);
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority_params(), authority);
    let leaf = params.signed_by(&key, &issuer).unwrap();

    let key = PrivateKey::from_pem(&key.serialize_pem(), b"").unwrap();
    let bundle = sign_bundle(digest, &key).unwrap();
    let mut bundle: Value = serde_json::from_slice(&bundle).unwrap();
    bundle["verificationMaterial"] =
        json!({"certificate": {"rawBytes": STANDARD.encode(leaf.der())}, "tlogEntries": []});
    let repository = Repository::parse(&format!("{}/acme/ponds", server.address)).unwrap();
    let manifest = client().fetch(&at(&repository, digest)).await.unwrap();
    let subject = Descriptor::of(&manifest.media_type, &manifest.bytes);
    client()
        .attach_bundle(&repository, &subject, bundle.to_string().into_bytes())
        .await
        .unwrap();
    root
}

#[tokio::test]
async fn a_certificate_has_to_be_valid_by_the_clock_of_the_fetcher() {
    let server = registry().await;
    let files = [("katalog.yaml", "kind: Katalog\n")];
    let digest = push(&server, "1.0.0", Kind::Katalog, &files).await;
    let root = TrustedRoot::parse(&sign(&server, digest).await).unwrap();
    let identity = Identity::new(ISSUER, SUBJECT, root).unwrap();
    let required = SignatureRequirement::of([], Some(identity)).unwrap();
    let source = source(&server, ":1.0.0", Some(required));
    let at = |time: &str| {
        let time: Timestamp = time.parse().unwrap();
        fetcher(|options| options.clock = Clock::new(move || time))
    };
    let june = at("2026-06-15T12:00:00Z");
    let artifact = june.fetch(&source, None, None).await.unwrap();
    assert_eq!(
        artifact.verified,
        Verified::By(format!("identity {SUBJECT}"))
    );
    let later = at("2026-07-02T00:00:00Z");
    let refused = later.fetch(&source, None, None).await.unwrap_err();
    let Error::Unverified { why, .. } = refused else {
        panic!("{refused}");
    };
    assert!(why.contains("its certificate expired"), "{why}");
}
