//! Requests to the webhooks from other clients than the API server: hostile requests do not affect those of the API server.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::Gate;
use crate::scenario::within;

/// The limit for a review beside connections that send nothing.
const SOON: Duration = Duration::from_secs(3);

pub(crate) const KATALOG: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: sites }
spec:
  security: { webhooks: { admission: { enabled: true } } }
  crds:
    site:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Site, plural: sites }
      validation:
        rules: [{ field: '{{ .spec.tier | upper }}', notEquals: LEAD, message: 'no lead' }]
      operatorBox:
        onReconcile:
          configMaps: [{ name: '{{ .metadata.name }}', data: { image: '{{ .spec.image }}' } }]
";

/// Opens a TLS connection that accepts every server certificate and has no client certificate.
pub(crate) async fn connect(port: u16) -> Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let config = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(std::sync::Arc::new(anyone::Anyone))
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    Ok(connector.connect("127.0.0.1".try_into()?, stream).await?)
}

mod anyone {
    use rustls::{
        DigitallySignedStruct, Error, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        pki_types::{CertificateDer, ServerName, UnixTime},
    };

    #[derive(Debug)]
    pub(crate) struct Anyone;

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            rustls::crypto::ring::default_provider()
                .signature_verification_algorithms
                .supported_schemes()
        }
    }
}

/// Sends a POST; returns the status and the body of the response.
pub(crate) async fn post(port: u16, path: &str, body: &[u8]) -> Result<(u16, String)> {
    let mut stream = connect(port).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    // A server that refuses a request may close the connection before it has read the body.
    let _ = stream.write_all(body).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).context("no status")?.parse()?;
    let (_, body) = text.split_once("\r\n\r\n").context("no body")?;
    Ok((status, body.to_owned()))
}

pub(crate) fn review(group: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",
        "kind":{{"group":"{group}","version":"v1alpha1","kind":"Site"}},
        "resource":{{"group":"{group}","version":"v1alpha1","resource":"sites"}},
        "name":"n","namespace":"x","operation":"CREATE","userInfo":{{"username":"me"}},"object":{object}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hostile_requests_are_refused_and_others_are_answered_in_time() -> Result<()> {
    let gate = Gate::start("gatehost", &["rules/crds.yaml"], KATALOG).await?;
    gate.run(KATALOG).await?;
    let port = gate.port;
    // Reviews as the API server sends them.
    ensure!(verdict(port, &good(&gate, "x")).await?["allowed"] == true);
    let denied = verdict(port, &good(&gate, "lead")).await?;
    ensure!(
        denied["allowed"] == false && denied["uid"] == "u",
        "{denied}"
    );

    requests_that_are_no_reviews_are_refused(port).await?;
    only_a_part_that_rules_read_may_not_be_nested_too_deeply(&gate).await?;
    reviews_of_no_declared_kind_are_answered(&gate).await?;
    let _half = idle_connections_delay_no_request(&gate).await?;

    flood(port, &good(&gate, "x")).await?;
    ensure!(verdict(port, &good(&gate, "lead")).await?["allowed"] == false);
    Ok(())
}

/// Returns the review of a Site with the tier, as the API server sends it.
fn good(gate: &Gate, tier: &str) -> String {
    let group = &gate.scenario.group;
    let object = json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "Site",
        "metadata": { "name": "n", "namespace": gate.scenario.namespace }, "spec": { "tier": tier },
    });
    review(group, &object.to_string()).replace(
        "\"namespace\":\"x\"",
        &format!("\"namespace\":\"{}\"", gate.scenario.namespace),
    )
}

/// Sends a review, which must get status 200; returns the field `response` of the answer.
async fn verdict(port: u16, text: &str) -> Result<Value> {
    let (status, body) = post(port, "/validate", text.as_bytes()).await?;
    ensure!(status == 200, "{status} {body}");
    Ok(serde_json::from_str::<Value>(&body)?["response"].clone())
}

/// Checks that bodies that are too large or no reviews are refused, and that a path that does not accept POST is not found.
async fn requests_that_are_no_reviews_are_refused(port: u16) -> Result<()> {
    let large = vec![b' '; 4 * 1024 * 1024];
    ensure!(post(port, "/validate", &large).await?.0 == 413);
    for junk in ["", "[]", "{", "{\"kind\":\"Pod\"}", "\u{1}"] {
        for path in [
            "/validate",
            "/mutate",
            "/convert",
            "/katalogs",
            "/deletion-protection",
        ] {
            ensure!(
                post(port, path, junk.as_bytes()).await?.0 == 400,
                "{path} {junk:?}"
            );
        }
    }
    ensure!(post(port, "/metrics", b"{}").await?.0 == 404);
    Ok(())
}

/// Checks that an object that is nested as deeply as the API server permits is judged by the fields that rules read, and denied
/// only if such a field is nested too deeply.
async fn only_a_part_that_rules_read_may_not_be_nested_too_deeply(gate: &Gate) -> Result<()> {
    let deep = format!("{}1{}", "[".repeat(9_900), "]".repeat(9_900));
    let with = |tier: &str| {
        let whole = good(gate, "TIER").replace("\"TIER\"", tier);
        whole.replace("\"spec\":{", &format!("\"spec\":{{\"notes\":{deep},"))
    };
    ensure!(verdict(gate.port, &with("\"x\"")).await?["allowed"] == true);
    ensure!(verdict(gate.port, &with("\"lead\"")).await?["allowed"] == false);
    let refused = verdict(gate.port, &with(&deep)).await?;
    let message = refused["status"]["message"].as_str().unwrap_or_default();
    ensure!(
        refused["allowed"] == false && message.contains("`spec.tier` is nested more than 128"),
        "{refused}"
    );
    // An update that fixes a stored object with such a field is allowed.
    let update = good(gate, "x")
        .replace("\"CREATE\"", "\"UPDATE\"")
        .replacen(
            "\"object\":",
            &format!("\"oldObject\":{{\"spec\":{{\"tier\":{deep}}}}},\"object\":"),
            1,
        );
    ensure!(verdict(gate.port, &update).await?["allowed"] == true);
    Ok(())
}

/// Checks the answers for kinds that no Katalog declares: a review is allowed, and a conversion is refused with the reason.
async fn reviews_of_no_declared_kind_are_answered(gate: &Gate) -> Result<()> {
    let port = gate.port;
    ensure!(verdict(port, &review("other.example.org", "{}")).await?["allowed"] == true);
    let conversion = json!({ "kind": "ConversionReview", "request": {
        "uid": "c", "desiredAPIVersion": "x/v2", "objects": [{ "apiVersion": "x/v1", "kind": "Y" }],
    } });
    let (status, body) = post(port, "/convert", conversion.to_string().as_bytes()).await?;
    ensure!(
        status == 200 && body.contains("no Katalog declares a conversion"),
        "{status} {body}"
    );
    Ok(())
}

/// Checks that connections that send nothing, or an incomplete request, delay no other request. Returns an open connection with an
/// incomplete request.
async fn idle_connections_delay_no_request(
    gate: &Gate,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let port = gate.port;
    let mut open = Vec::new();
    for serial in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        if serial % 2 == 0 {
            stream.write_all(b"\x16\x03\x01").await?;
        }
        open.push(stream);
    }
    let mut half = connect(port).await?;
    half.write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        .await?;
    within("a review beside idle connections", SOON, async || {
        let start = Instant::now();
        ensure!(verdict(port, &good(gate, "x")).await?["allowed"] == true);
        Ok(start.elapsed())
    })
    .await?;
    drop(open);
    Ok(half)
}

/// Sends many reviews at once, and checks that each gets status 200, 408 or 429. The server may still count connections that have
/// ended, and then closes new ones before their request: such a request is sent again, as the API server does.
async fn flood(port: u16, text: &str) -> Result<()> {
    let requests = (0..150).map(async |_| {
        let mut answer = post(port, "/validate", text.as_bytes()).await;
        for _ in 0..3 {
            if answer.is_ok() {
                break;
            }
            answer = post(port, "/validate", text.as_bytes()).await;
        }
        answer
    });
    for answer in futures::future::join_all(requests).await {
        let (status, body) = answer?;
        ensure!(matches!(status, 200 | 408 | 429), "{status} {body}");
    }
    Ok(())
}
