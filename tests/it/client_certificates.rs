//! Client certificates of X.509 version 1, as `openssl x509 -req` writes them.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, SigningKey as _};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;
use testbed::{SYSTEM_MASTERS, issue};

use crate::scenario::{Scenario, input};

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
/// The tags of the fields that a certificate of version 1 lacks: `version` and `extensions`.
const NEWER: [u8; 2] = [0xa0, 0xa3];

/// Returns the first value of DER data: its tag, its content, and its encoded length.
fn first(der: &[u8]) -> Result<(u8, &[u8], usize)> {
    let [tag, length, rest @ ..] = der else {
        anyhow::bail!("truncated");
    };
    let more = if length & 0x80 == 0 {
        0
    } else {
        usize::from(length & 0x7f)
    };
    let long = rest
        .iter()
        .take(more)
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let length = if more == 0 {
        usize::from(*length)
    } else {
        long
    };
    let content = rest.get(more..more + length).context("truncated")?;
    Ok((*tag, content, 2 + more + length))
}

/// Encodes a DER value. The length has the shortest form.
fn der(tag: u8, content: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(content.len())?.to_be_bytes();
    let head: &[u8] = match length {
        [0, short] if short < 0x80 => &[short],
        [0, long] => &[0x81, long],
        [high, low] => &[0x82, high, low],
    };
    Ok([&[tag], head, content].concat())
}

/// Converts a certificate to version 1, as `openssl x509 -req` writes it, and signs it again.
fn version_1(certificate: &[u8], authority: &KeyPair) -> Result<Vec<u8>> {
    let (_, content, _) = first(certificate)?;
    let (_, mut fields, length) = first(content)?;
    let mut kept = Vec::new();
    while !fields.is_empty() {
        let (tag, _, length) = first(fields)?;
        if !NEWER.contains(&tag) {
            kept.extend_from_slice(&fields[..length]);
        }
        fields = &fields[length..];
    }
    let to_be_signed = der(SEQUENCE, &kept)?;
    let algorithm = &content[length..];
    let (.., length) = first(algorithm)?;
    let signature = [&[0], &authority.sign(&to_be_signed)?[..]].concat();
    let parts = [
        &to_be_signed,
        &algorithm[..length],
        &der(BIT_STRING, &signature)?,
    ]
    .concat();
    der(SEQUENCE, &parts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_of_version_1_is_accepted() -> Result<()> {
    let scenario = Scenario::new("version-1").await?;
    let folder = scenario.cluster.folder();
    let kubeconfig = issue(folder, "clerk", &[SYSTEM_MASTERS])?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig)?;
    let data = kubeconfig.pointer_mut("/users/0/user/client-certificate-data");
    let data = data.context("no certificate")?;
    let pem = STANDARD.decode(data.as_str().unwrap_or_default())?;
    let authority = std::fs::read_to_string(folder.join("pki/ca.key"))?;
    let old = version_1(
        &CertificateDer::from_pem_slice(&pem)?,
        &KeyPair::from_pem(&authority)?,
    )?;
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        STANDARD.encode(old)
    );
    *data = Value::from(STANDARD.encode(pem));
    let kubeconfig = scenario.file("kubeconfig", &kubeconfig.to_string())?;
    let katalog = scenario.file("katalog.yaml", &input("panic/katalog.yaml")?)?;
    let output = Command::new(env!("CARGO_BIN_EXE_ork"))
        .args(["release", "-k"])
        .arg(katalog)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok(())
}
