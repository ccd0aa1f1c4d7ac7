//! The controller-runtime webhook that `hack/go-webhook` builds, registered for one kind.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use base64::Engine as _;
use serde_json::json;
use testbed::{Guarded, free_port, spawn_guarded};

use crate::api::Write;
use crate::shop::Kind;
use crate::site::Site;

/// The running webhook. It ends when this value is dropped.
pub(crate) struct GoWebhook(#[allow(dead_code, reason = "held, so that it runs")] Guarded);

impl GoWebhook {
    /// Starts `program` with the API server's certificate, which the API server trusts for this address, and registers it for
    /// creations of `kind`.
    pub(crate) async fn start(program: &Path, site: &Site, kind: &Kind) -> Result<Self> {
        let folder = site.cluster.folder();
        let pki = folder.join("pki");
        let port = free_port()?;
        let mut command = Command::new(program);
        command.arg(port.to_string()).arg(&pki);
        let mut child = spawn_guarded(&command, &folder.join("go-webhook.log"))?;
        if let Some(status) = child.status()? {
            bail!("{} ended with {status}: {}", program.display(), child.log());
        }
        let authority = std::fs::read(pki.join("ca.crt"))?;
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "go-webhook" },
            "webhooks": [{
                "name": "go-webhook.bench.orkestra.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}/validate"),
                    "caBundle": base64::engine::general_purpose::STANDARD.encode(authority),
                },
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": ["bench.orkestra.io"],
                    "apiVersions": ["v1"], "resources": [kind.plural()],
                }],
            }],
        });
        let path =
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/go-webhook";
        Write::apply(path, &configuration)
            .send(&site.client)
            .await?;
        Ok(Self(child))
    }
}
