//! Hashes, random texts, keys and certificates. All randomness is from the caller's source.

use orkestra_object::value::hex_digits;
use orkestra_template::go::EvalFailure;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::{Function, function, int, string, string_bytes, strings_of, table};
use crate::engine::Engine;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("sha1sum", 1, |_, args| {
        hashed(&SHA1_FOR_LEGACY_USE_ONLY, args)
    }),
    function("sha256sum", 1, |_, args| hashed(&SHA256, args)),
    function("sha512sum", 1, |_, args| hashed(&SHA512, args)),
    function("adler32sum", 1, |_, args| {
        let (mut a, mut b) = (1u32, 0u32);
        for byte in string_bytes(&args[0])? {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        Ok(Value::text((b << 16 | a).to_string()))
    }),
    function("randAlphaNum", 1, |engine, args| {
        random(engine, args, |c| c.is_ascii_alphanumeric())
    }),
    function("randAlpha", 1, |engine, args| {
        random(engine, args, |c| c.is_ascii_alphabetic())
    }),
    function("randNumeric", 1, |engine, args| {
        random(engine, args, |c| c.is_ascii_digit())
    }),
    function("randAscii", 1, |engine, args| {
        random(engine, args, |c| matches!(c, ' '..='~'))
    }),
    function("randBytes", 1, |engine, args| {
        let count = usize::try_from(int(&args[0])?).unwrap_or(0);
        Ok(Value::text(crate::value::base64_text(
            &engine.random(count)?,
        )))
    }),
    function("uuidv4", 0, |engine, _| {
        let mut bytes = engine.random(16)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = hex(&bytes);
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        Ok(Value::text(parts.join("-")))
    }),
    function("genPrivateKey", 1, |engine, args| {
        let kind = string(&args[0])?;
        if kind != "ed25519" {
            let message = format!("keys of type {kind:?} are not supported; use \"ed25519\"");
            return Err(EvalFailure::refused(message));
        }
        Ok(Value::text(key(engine)?.serialize_pem()))
    }),
    function("genCA", 2, |engine, args| {
        let mut params = params(engine, &args[0], &args[1])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages.push(KeyUsagePurpose::KeyCertSign);
        self_signed(engine, &params)
    }),
    function("genSelfSignedCert", 4, |engine, args| {
        let mut params = params(engine, &args[0], &args[3])?;
        names(engine, &mut params, &args[1], &args[2])?;
        self_signed(engine, &params)
    }),
    function("genSignedCert", 5, |engine, args| {
        let mut params = params(engine, &args[0], &args[3])?;
        names(engine, &mut params, &args[1], &args[2])?;
        let authority = table(&args[4])?.borrow();
        let part = |name: &str| authority.get(name).cloned().unwrap_or_default();
        let (cert, issuer_key) = (part("Cert"), part("Key"));
        let issuer_key = KeyPair::from_pem(&string(&issuer_key)?).map_err(failed)?;
        let issuer = Issuer::from_ca_cert_pem(&string(&cert)?, issuer_key).map_err(failed)?;
        let key = key(engine)?;
        let signed = params.signed_by(&key, &issuer).map_err(failed)?;
        Ok(certificate(&signed.pem(), &key))
    }),
];

fn hex(bytes: &[u8]) -> String {
    hex_digits(bytes).map(char::from).collect()
}

fn hashed(
    algorithm: &'static ring::digest::Algorithm,
    args: &[Value],
) -> Result<Value, EvalFailure> {
    let bytes = string_bytes(&args[0])?;
    Ok(Value::text(hex(digest(algorithm, bytes).as_ref())))
}

/// Returns a text of random characters, each of the permitted ones equally likely.
fn random(
    engine: &mut Engine<'_>,
    args: &[Value],
    wanted: fn(char) -> bool,
) -> Result<Value, EvalFailure> {
    let count = usize::try_from(int(&args[0])?).unwrap_or(0);
    engine.text(count)?;
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let drawn = engine.random((count - text.len()).min(1024))?;
        let left = count - text.len();
        let chars = drawn.into_iter().map(|byte| char::from(byte & 0x7f));
        text.extend(chars.filter(|c| wanted(*c)).take(left));
    }
    Ok(Value::text(text))
}

/// Returns a key pair from 32 random bytes.
fn key(engine: &mut Engine<'_>) -> Result<KeyPair, EvalFailure> {
    let seed = engine.random(32)?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(failed)?;
    // PKCS #8 version 2: the seed and the public key. Source: RFC 8410, section 7.
    let mut der = vec![
        0x30, 0x53, 0x02, 0x01, 0x01, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    der.extend_from_slice(&seed);
    der.extend_from_slice(&[0xa1, 0x23, 0x03, 0x21, 0x00]);
    der.extend_from_slice(pair.public_key().as_ref());
    engine.steps(1000)?;
    KeyPair::try_from(der).map_err(failed)
}

/// Returns the parameters of a certificate with a common name and a validity in days from now.
fn params(
    engine: &mut Engine<'_>,
    name: &Value,
    days: &Value,
) -> Result<CertificateParams, EvalFailure> {
    let (name, days) = (string(name)?, int(days)?);
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, name.as_ref());
    let date = |time: jiff::Timestamp| {
        let date = jiff::tz::Offset::UTC.to_datetime(time).date();
        let part = |n: i8| u8::try_from(n).unwrap_or(1);
        rcgen::date_time_ymd(date.year().into(), part(date.month()), part(date.day()))
    };
    let lifetime = days.checked_mul(24).map(jiff::SignedDuration::from_hours);
    let end = lifetime.and_then(|lifetime| engine.now().checked_add(lifetime).ok());
    params.not_before = date(engine.now());
    params.not_after =
        date(end.ok_or_else(|| EvalFailure::refused("the certificate ends too late"))?);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params.serial_number = Some(engine.random(15)?.into());
    Ok(params)
}

/// Adds the addresses and the names of a certificate.
fn names(
    engine: &mut Engine<'_>,
    params: &mut CertificateParams,
    addresses: &Value,
    hosts: &Value,
) -> Result<(), EvalFailure> {
    for address in strings_of(addresses, engine)? {
        let parsed = address
            .parse()
            .map_err(|_| EvalFailure::refused("error parsing ip"))?;
        params.subject_alt_names.push(SanType::IpAddress(parsed));
    }
    for host in strings_of(hosts, engine)? {
        let name = host.try_into().map_err(failed)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    Ok(())
}

fn self_signed(engine: &mut Engine<'_>, params: &CertificateParams) -> Result<Value, EvalFailure> {
    let key = key(engine)?;
    let signed = params.self_signed(&key).map_err(failed)?;
    Ok(certificate(&signed.pem(), &key))
}

fn certificate(pem: &str, key: &KeyPair) -> Value {
    Value::object([
        ("Cert", Value::text(pem)),
        ("Key", Value::text(key.serialize_pem())),
    ])
}

fn failed(error: impl std::fmt::Display) -> EvalFailure {
    EvalFailure::refused(error.to_string())
}
