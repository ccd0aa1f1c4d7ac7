//! The webhook certificate from files, in the layout of a Secret that a kubelet mounts.

use std::{
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use testbed::eventually;

use super::Gate;
use crate::{
    scenario::{LIMIT, Objects},
    waters,
};

const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security: { webhooks: { admission: { enabled: true }, failurePolicy: Fail } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules: [{ field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// The lifetime of certificates: long enough that a new CA bundle has five seconds to reach all API servers.
const LIFE: Duration = Duration::from_secs(100);

/// A CA certificate, and a server certificate that it signed, as cert-manager issues them.
struct Issued {
    authority: String,
    certificate: String,
    key: String,
}

fn issue(serial: u32) -> Result<Issued> {
    let now = Duration::from_secs(jiff::Timestamp::now().as_second().try_into()?);
    let valid = |mut params: CertificateParams| {
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(Duration::from_secs(1));
        params.not_after = epoch + now + LIFE;
        params
    };
    let mut authority = valid(CertificateParams::default());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = format!("authority {serial}");
    authority.distinguished_name.push(DnType::CommonName, name);
    let authority_key = KeyPair::generate()?;
    let root = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let leaf = valid(CertificateParams::new(vec!["127.0.0.1".to_owned()])?);
    Ok(Issued {
        authority: root,
        certificate: leaf.signed_by(&key, &issuer)?.pem(),
        key: key.serialize_pem(),
    })
}

/// Mounts a Secret as a kubelet does: its files are symbolic links into a folder that is replaced as a whole.
///
/// Source: Kubernetes, `pkg/volume/util/atomic_writer.go`.
fn mount(folder: &Path, serial: u32, issued: &Issued) -> Result<()> {
    let version = format!("..{serial}");
    std::fs::create_dir_all(folder.join(&version))?;
    let files = [
        ("ca.crt", &issued.authority),
        ("tls.crt", &issued.certificate),
        ("tls.key", &issued.key),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(&version).join(name), text)?;
        if !folder.join(name).is_symlink() {
            symlink(Path::new("..data").join(name), folder.join(name))?;
        }
    }
    symlink(&version, folder.join("..data_tmp"))?;
    std::fs::rename(folder.join("..data_tmp"), folder.join("..data"))?;
    Ok(())
}

/// Returns the CA bundle in the configuration of the webhooks.
async fn trusted(gate: &Gate) -> Result<String> {
    let configuration = gate.configuration().await?.context("no configuration")?;
    let bundle = configuration.pointer("/webhooks/0/clientConfig/caBundle");
    let bundle = bundle.and_then(Value::as_str).context("no bundle")?;
    Ok(String::from_utf8(STANDARD.decode(bundle)?)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_certificate_of_files_is_reloaded_once_its_authority_is_trusted_and_no_request_fails()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let (first, second) = (issue(1)?, issue(2)?);
    mount(folder.path(), 1, &first)?;
    let gate = started_with_files(folder.path()).await?;
    gate.run(KATALOG).await?;
    ensure!(trusted(&gate).await? == first.authority);
    let secrets = gate.scenario.objects_in(&gate.home(), "secrets");
    ensure!(secrets.list().await?.is_empty(), "a Secret was created");
    let path = format!(
        "/apis/{}/v1alpha1/namespaces/{}/sites?dryRun=All",
        gate.scenario.group, gate.scenario.namespace
    );
    let dry = Objects::at(&gate.scenario.client, &path);
    eventually("the webhook evaluates rules", LIMIT, async || {
        let answer = dry.create(&site(&gate, "lead", "lead")).await;
        let denied = answer.is_err_and(|error| format!("{error:#}").contains("no lead"));
        Ok(denied.then_some(()))
    })
    .await?;

    no_request_fails_while_the_certificate_changes(&gate, &dry, folder.path(), &second).await?;
    // The bundle has both CAs: another replica may still serve the first certificate.
    let bundle = trusted(&gate).await?;
    ensure!(
        bundle.contains(&first.authority) && bundle.contains(&second.authority),
        "{bundle}"
    );
    ensure!(dry.create(&site(&gate, "lead", "lead")).await.is_err());

    // An invalid key file does not change the served certificate.
    std::fs::write(folder.path().join("..data").join("tls.key"), "no key")?;
    eventually("the failed reload is logged", LIMIT, async || {
        Ok(gate
            .scenario
            .log()
            .contains("cannot reload the certificate of the webhooks")
            .then_some(()))
    })
    .await?;
    ensure!(dry.create(&site(&gate, "fine", "x")).await.is_ok());
    Ok(())
}

/// Starts the controller with the certificate of the mounted Secret.
async fn started_with_files(folder: &Path) -> Result<Gate> {
    let file =
        |flag: &str, name: &str| format!("--webhooks-{flag}-file={}", folder.join(name).display());
    let arguments = [
        file("cert", "tls.crt"),
        file("key", "tls.key"),
        file("ca", "ca.crt"),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Gate::start_with("gatefile", &["rules/crds.yaml"], KATALOG, &arguments).await
}

/// Returns a Site with the tier.
fn site(gate: &Gate, name: &str, tier: &str) -> Value {
    let spec = json!({ "image": "a", "tier": tier });
    waters::resource(&gate.scenario, "Site", name, &spec)
}

/// The number of requests that each client sends after the new certificate is served.
const AFTERWARDS: u32 = 50;

/// Replaces the mounted Secret, and checks that no request fails, before and after the new certificate is served.
async fn no_request_fails_while_the_certificate_changes(
    gate: &Gate,
    dry: &Objects,
    folder: &Path,
    second: &Issued,
) -> Result<()> {
    let served = || {
        gate.scenario
            .log()
            .matches("the webhooks use another certificate")
            .count()
    };
    mount(folder, 2, second)?;
    let (start, before) = (Instant::now(), served());
    let load = async |worker: usize| {
        let (mut count, mut failures) = (0, Vec::new());
        let mut since = None;
        while since.is_none_or(|since| count < since + AFTERWARDS) && start.elapsed() < LIMIT * 2 {
            if since.is_none() && served() > before {
                since = Some(count);
            }
            if let Err(error) = dry
                .create(&site(gate, &format!("s{worker}-{count}"), "x"))
                .await
            {
                failures.push(format!("{error:#}"));
            }
            count += 1;
        }
        (count, failures, since.is_some())
    };
    let done = futures::future::join_all((0..4).map(load)).await;
    for (count, failures, has_changed) in &done {
        ensure!(
            failures.is_empty(),
            "{} of {count}: {:?}",
            failures.len(),
            failures.first()
        );
        ensure!(*has_changed, "the certificate was not replaced");
    }
    Ok(())
}
