//! Certificates, each signed by its own certificate authority, whose key is not kept.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use orkestra_engine::reconcile::sources::{CERTIFICATE_PARTS, Certificate};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// The time by which a certificate's validity starts before its creation, since clocks differ.
const SKEW: Duration = Duration::from_mins(5);

/// Issues a certificate with its own authority: each of [`CERTIFICATE_PARTS`] in PEM. The keys use P-256.
///
/// # Errors
/// A host is neither a DNS name nor an IP address.
pub fn issue(wanted: &Certificate) -> Result<BTreeMap<&'static str, String>, rcgen::Error> {
    let validity = (wanted.not_before, wanted.not_after);
    make(wanted.common_name.as_deref(), &wanted.hosts, validity)
}

/// Issues a certificate of that common name for `hosts`, valid from the first moment to the second.
///
/// # Errors
/// As [`issue`].
pub fn issue_for(
    name: &str,
    hosts: &[String],
    validity: (Timestamp, Timestamp),
) -> Result<BTreeMap<&'static str, String>, rcgen::Error> {
    make(Some(name), hosts, validity)
}

fn make(
    common_name: Option<&str>,
    hosts: &[String],
    validity: (Timestamp, Timestamp),
) -> Result<BTreeMap<&'static str, String>, rcgen::Error> {
    let name = common_name.or_else(|| hosts.first().map(String::as_str));
    let mut authority = valid(CertificateParams::default(), validity);
    authority.distinguished_name = called(&format!("authority of {}", name.unwrap_or_default()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let root = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = valid(CertificateParams::new(hosts.to_vec())?, validity);
    leaf.distinguished_name = common_name.map(called).unwrap_or_default();
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

fn valid(
    mut params: CertificateParams,
    (not_before, not_after): (Timestamp, Timestamp),
) -> CertificateParams {
    let epoch = date_time_ymd(1970, 1, 1);
    let since_epoch = |moment: Timestamp| {
        let seconds = u64::try_from(moment.as_second()).unwrap_or_default();
        Duration::from_secs(seconds)
    };
    params.not_before = epoch + since_epoch(not_before).saturating_sub(SKEW);
    params.not_after = epoch + since_epoch(not_after);
    params
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use orkestra_plan::{ChildKey, GroupKind, ObjectKey};
    use rustls::{
        RootCertStore, ServerConfig,
        client::{WebPkiServerVerifier, danger::ServerCertVerifier},
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    };

    use super::*;

    const HOUR: i64 = 3600;
    const BEGIN: i64 = 1_770_000_000;

    fn wanted(common_name: Option<&str>) -> Certificate {
        let at = |second| Timestamp::from_second(second).unwrap();
        Certificate {
            holder: ChildKey {
                kind: GroupKind::parse("Secret"),
                object: ObjectKey {
                    namespace: Some("shop".into()),
                    name: "web".into(),
                },
            },
            common_name: common_name.map(str::to_owned),
            hosts: vec![
                "web.example.org".to_owned(),
                "*.shop.example.org".to_owned(),
                "192.0.2.7".to_owned(),
            ],
            not_before: at(BEGIN),
            not_after: at(BEGIN + HOUR),
        }
    }

    fn certificate(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    /// Returns true if a client that trusts `ca` accepts the certificate for `host` at the time `second`.
    fn is_believed(ca: &str, pem: &str, host: &str, second: i64) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(ca)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
        let since_epoch = Duration::from_secs(u64::try_from(second).unwrap());
        let now = UnixTime::since_unix_epoch(since_epoch);
        let host = ServerName::try_from(host.to_owned()).unwrap();
        verifier
            .verify_server_cert(&certificate(pem), &[], &host, &[], now)
            .is_ok()
    }

    #[test]
    fn a_client_that_believes_the_authority_believes_its_hosts_for_its_time() {
        let parts = issue(&wanted(None)).unwrap();
        let (ca, pem) = (&parts["ca.crt"], &parts["tls.crt"]);
        for host in ["web.example.org", "a.shop.example.org", "192.0.2.7"] {
            assert!(is_believed(ca, pem, host, BEGIN), "{host}");
        }
        for host in ["example.org", "shop.example.org", "192.0.2.8"] {
            assert!(!is_believed(ca, pem, host, BEGIN), "{host}");
        }
        let at = |second| is_believed(ca, pem, "web.example.org", second);
        assert!(at(BEGIN - 60) && at(BEGIN + HOUR - 1));
        assert!(!at(BEGIN - HOUR) && !at(BEGIN + HOUR + 1));
        let other = issue(&wanted(None)).unwrap();
        assert!(!is_believed(
            &other["ca.crt"],
            pem,
            "web.example.org",
            BEGIN
        ));
    }

    #[test]
    fn the_key_is_the_certificates() {
        let parts = issue(&wanted(Some("web"))).unwrap();
        let key = PrivateKeyDer::from_pem_slice(parts["tls.key"].as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        assert!(
            config
                .with_single_cert(vec![certificate(&parts["tls.crt"])], key)
                .is_ok()
        );
    }
}
