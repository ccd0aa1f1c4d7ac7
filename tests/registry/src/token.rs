//! A token server: all clients may pull, only the user `u` may push.
//!
//! Source: distribution's documentation, "Token Authentication Implementation".

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rcgen::{CertificateParams, KeyPair};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A running token server; it stops when this is dropped.
#[derive(Debug)]
pub(crate) struct TokenServer {
    pub(crate) address: SocketAddr,
    given: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

struct Signer {
    key: EcdsaKeyPair,
    certificate: Vec<u8>,
}

impl TokenServer {
    /// Starts the server, and writes the certificate of its signing key.
    pub(crate) async fn start(certificate: &Path) -> Result<Self> {
        let key = KeyPair::generate()?;
        let own = CertificateParams::default().self_signed(&key)?;
        std::fs::write(certificate, own.pem())?;
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &key.serialize_der(),
            &SystemRandom::new(),
        );
        let signer = Arc::new(Signer {
            key: pair
                .ok()
                .context("the key of the token server cannot sign")?,
            certificate: own.der().to_vec(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let given = Arc::new(AtomicUsize::new(0));
        let counter = given.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (signer, counter) = (signer.clone(), counter.clone());
                tokio::spawn(async move {
                    // A client that closes the connection gets no token.
                    if serve(stream, &signer).await.is_ok_and(|is_given| is_given) {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Self {
            address,
            given,
            task,
        })
    }

    pub(crate) fn given(&self) -> usize {
        self.given.load(Ordering::Relaxed)
    }
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Responds to one request; returns whether it issued a token.
async fn serve(mut stream: TcpStream, signer: &Signer) -> Result<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(false);
        }
    }
    let head = String::from_utf8(head)?;
    let basic = format!("authorization: basic {}", STANDARD.encode("u:pass:word")).to_lowercase();
    let is_user = head.to_lowercase().contains(&basic);
    let has_wrong = head.to_lowercase().contains("authorization:") && !is_user;
    let (status, body) = if has_wrong {
        (
            "401 Unauthorized",
            json!({"errors": [{"code": "UNAUTHORIZED", "message": "wrong password"}]}),
        )
    } else {
        (
            "200 OK",
            json!({"token": signer.token(&scopes(&head), is_user)?, "expires_in": 300}),
        )
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(!has_wrong)
}

/// Returns the scopes of a request: repository and actions.
fn scopes(head: &str) -> Vec<(String, Vec<String>)> {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("scope="));
    let mut found = Vec::new();
    for value in values {
        let value = value
            .replace("%3A", ":")
            .replace("%2F", "/")
            .replace("%2C", ",")
            .replace('+', " ");
        for scope in value.split(' ') {
            let mut parts = scope.splitn(3, ':').skip(1);
            if let (Some(name), Some(actions)) = (parts.next(), parts.next()) {
                found.push((
                    name.to_owned(),
                    actions.split(',').map(str::to_owned).collect(),
                ));
            }
        }
    }
    found
}

impl Signer {
    fn token(&self, scopes: &[(String, Vec<String>)], is_user: bool) -> Result<String> {
        let access = scopes.iter().map(|(name, actions)| {
            let permitted = actions.iter().filter(|action| is_user || *action == "pull");
            json!({"type": "repository", "name": name, "actions": permitted.collect::<Vec<_>>()})
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let header =
            json!({"alg": "ES256", "typ": "JWT", "x5c": [STANDARD.encode(&self.certificate)]});
        let claims = json!({
            "iss": "tok", "aud": "reg", "sub": if is_user { "u" } else { "" }, "jti": now.to_string(),
            "iat": now, "nbf": now - 10, "exp": now + 300, "access": access.collect::<Vec<_>>(),
        });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), message.as_bytes())
            .ok()
            .context("cannot sign")?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
