//! The callers of webhooks: a review of another client than the API server has no effect, and a client certificate proves the
//! API server.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use testbed::eventually;

use super::{Gate, requests::post};
use crate::{
    external::sink::Sink,
    scenario::{LIMIT, Objects, Scenario},
    waters,
};

/// A rule that asks an external service with a token from a Secret.
const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security:
    webhooks: { admission: { enabled: true }, failurePolicy: Fail }
    deletionProtection: { enabled: true }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        external:
          - { name: quota, url: 'URL/quota/{{ .metadata.name }}', fires: { reconcile: false } }
        rules:
          - { field: '{{ .external.quota.left }}', notEquals: none, message: 'no quota is left', fires: { reconcile: false } }
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// Returns a forged review of a Site.
fn forged(gate: &Gate, operation: &str, name: &str) -> Value {
    let scenario = &gate.scenario;
    let object = json!({
        "apiVersion": format!("{}/v1alpha1", scenario.group), "kind": "Site",
        "metadata": {
            "name": name, "namespace": scenario.namespace, "uid": "u",
            "annotations": { "orkestra.orkspace.io/break-glass": "forged" },
        },
        "spec": { "image": "a" },
    });
    let field = if operation == "DELETE" {
        "oldObject"
    } else {
        "object"
    };
    let mut request = json!({
        "uid": "u", "operation": operation, "name": name, "namespace": scenario.namespace,
        "kind": { "group": scenario.group, "version": "v1alpha1", "kind": "Site" },
        "resource": { "group": scenario.group, "version": "v1alpha1", "resource": "sites" },
        "userInfo": { "username": "somebody else" },
    });
    request[field] = object;
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request })
}

/// Sends forged reviews: they get a verdict, and nothing else happens.
async fn a_forged_review_has_no_effect(gate: &Gate, sink: &Sink) -> Result<()> {
    let review = forged(gate, "CREATE", "forged").to_string();
    let (status, body) = post(gate.port, "/validate", review.as_bytes()).await?;
    let answer: Value = serde_json::from_str(&body)?;
    let message = waters::text(&answer, "/response/status/message").to_owned();
    ensure!(status == 200 && answer["response"]["allowed"] == false);
    ensure!(
        message.contains("the caller is not proven to be the API server"),
        "{message}"
    );
    for serial in 0..20 {
        let review = forged(gate, "DELETE", &format!("forged-{serial}")).to_string();
        let (status, _) = post(gate.port, "/deletion-protection", review.as_bytes()).await?;
        ensure!(status == 200, "{status}");
    }
    ensure!(sink.requests("/quota/forged").is_empty(), "a call was made");
    Ok(())
}

/// Returns the Events that record deletions.
async fn recorded(gate: &Gate) -> Result<Vec<Value>> {
    let path = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        gate.scenario.namespace
    );
    let events = Objects::at(&gate.scenario.client, &path).list().await?;
    let is_meant = |event: &Value| event["reason"] == "DeletionProtectionOverridden";
    Ok(events.into_iter().filter(is_meant).collect())
}

/// Files for an API server that presents a client certificate, and their folder.
struct Credentials {
    folder: &'static Path,
}

impl Credentials {
    /// Issues a certificate of an authority of its own, and writes the configuration of the API server.
    fn write() -> Result<Self> {
        let folder: &'static Path = Box::leak(tempfile::tempdir()?.keep().into_boxed_path());
        let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut client = CertificateParams::default();
        client.distinguished_name = DistinguishedName::new();
        client
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let at = |name: &str| folder.join(name);
        std::fs::write(at("ca.crt"), certificate)?;
        std::fs::write(at("client.crt"), client.signed_by(&key, &issuer)?.pem())?;
        std::fs::write(at("client.key"), key.serialize_pem())?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "users": [{ "name": "*", "user": {
                "client-certificate": at("client.crt"), "client-key": at("client.key"),
            } }],
        });
        std::fs::write(at("kubeconfig"), kubeconfig.to_string())?;
        let plugin = |name: &str| {
            json!({ "name": name, "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": at("kubeconfig"),
            } })
        };
        let plugins = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"].map(plugin);
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
        });
        std::fs::write(at("admission.yaml"), configuration.to_string())?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_with_a_client_certificate_is_served_fully_and_a_forged_review_has_no_effect()
-> Result<()> {
    let sink = Sink::start().await?;
    sink.answer("/quota/", 200, r#"{"left":"some"}"#);
    let katalog = KATALOG.replace("URL", &sink.url());
    let credentials = Credentials::write()?;
    let configured = format!(
        "--admission-control-config-file={}",
        credentials.path("admission.yaml")
    );
    let argument: &'static str = Box::leak(configured.into_boxed_str());
    let options = testbed::Options {
        api_arguments: Box::leak(vec![argument].into_boxed_slice()),
        ..testbed::Options::default()
    };
    let scenario = Scenario::on_new("callers", options).await?;
    let mut gate = Gate::of(scenario, &["rules/crds.yaml"], &[&katalog]).await?;
    let authorities = format!("--webhooks-client-ca={}", credentials.path("ca.crt"));
    gate.scenario.arguments = gate.arguments(&["--external-allow=127.0.0.1", &authorities]);
    gate.scenario.start().await?;
    gate.until_configured().await?;
    gate.run(&katalog).await?;
    let site = |name: &str| {
        waters::resource(&gate.scenario, "Site", name, &json!({ "image": "a" })).to_string()
    };
    eventually("the rule asks", LIMIT, async || {
        gate.accepted(&site("probe"))?;
        Ok((!sink.requests("/quota/probe").is_empty()).then_some(()))
    })
    .await?;
    gate.accepted(&site("real"))?;
    ensure!(!sink.requests("/quota/real").is_empty());

    a_forged_review_has_no_effect(&gate, &sink).await?;

    // A deletion that happens is recorded, and no other.
    let sites = gate.scenario.objects("sites");
    let broken =
        json!({ "metadata": { "annotations": { "orkestra.orkspace.io/break-glass": "test" } } });
    sites.patch("real", &broken).await?;
    sites.delete("real").await?;
    let events = eventually("the deletion is recorded", LIMIT, async || {
        let found = recorded(&gate).await?;
        Ok((!found.is_empty()).then_some(found))
    })
    .await?;
    let regarding = events
        .iter()
        .map(|event| event["regarding"]["name"].as_str().context("no name"));
    for name in regarding {
        ensure!(name? == "real", "{events:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_proof_rules_that_call_out_are_unavailable_for_everybody() -> Result<()> {
    let sink = Sink::start().await?;
    let katalog = KATALOG.replace("URL", &sink.url());
    let arguments = &["--external-allow=127.0.0.1"];
    let gate = Gate::start_with("callnone", &["rules/crds.yaml"], &katalog, arguments).await?;
    gate.run(&katalog).await?;
    let site = waters::resource(&gate.scenario, "Site", "shop", &json!({ "image": "a" }));
    let error = eventually("the rule applies", LIMIT, async || {
        let create = ["create", "--dry-run=server", "-f", "-"];
        let output = gate.kubectl_as(None, &create, &site.to_string())?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(error))
    })
    .await?;
    ensure!(error.contains("--webhooks-client-ca"), "{error}");
    a_forged_review_has_no_effect(&gate, &sink).await
}
