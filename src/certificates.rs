//! Certificates, each signed by an authority of its own whose key nobody keeps.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use orkestra_core::reconcile::sources::{CERTIFICATE_PARTS, Certificate};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A certificate begins to be valid so long before it is made: clocks differ.
const SKEW: Duration = Duration::from_mins(5);

/// Makes a certificate with an authority for it: each of [`CERTIFICATE_PARTS`] in PEM. The keys are of P-256.
///
/// # Errors
/// A host that is no DNS name and no address.
pub(crate) fn issue(wanted: &Certificate) -> Result<BTreeMap<&'static str, String>, rcgen::Error> {
    let name = wanted.common_name.as_deref();
    let name = name.or_else(|| wanted.hosts.first().map(String::as_str));
    let mut authority = valid(CertificateParams::default(), wanted);
    authority.distinguished_name = called(&format!("authority of {}", name.unwrap_or_default()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let root = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = valid(CertificateParams::new(wanted.hosts.clone())?, wanted);
    leaf.distinguished_name = wanted
        .common_name
        .as_deref()
        .map(called)
        .unwrap_or_default();
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?.pem();
    let [chain, private, ca] = CERTIFICATE_PARTS;
    Ok(BTreeMap::from([
        (chain, certificate),
        (private, key.serialize_pem()),
        (ca, root),
    ]))
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn valid(mut params: CertificateParams, wanted: &Certificate) -> CertificateParams {
    let epoch = date_time_ymd(1970, 1, 1);
    let since_epoch = |moment: Timestamp| {
        let seconds = u64::try_from(moment.as_second()).unwrap_or_default();
        Duration::from_secs(seconds)
    };
    params.not_before = epoch + since_epoch(wanted.not_before).saturating_sub(SKEW);
    params.not_after = epoch + since_epoch(wanted.not_after);
    params
}
