//! Checks that a webhook answers at the address and with the authorities that the API server is about to get.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, header};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use orkestra_ground::chain;
use orkestra_object::value::Node;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use orkestra_operator::external::Client;

/// How long a check may take.
const WITHIN: Duration = Duration::from_secs(5);
/// Checks at a time.
const AT_ONCE: usize = 32;

/// Why a webhook does not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The configuration has no usable address.
    #[error("{0} is not an address of a webhook")]
    Address(String),
    /// No connection, or no TLS with these authorities.
    #[error("cannot connect to {address}: {why}")]
    Connect {
        /// Host and port.
        address: String,
        /// The cause.
        why: String,
    },
    /// The response is not that of a webhook.
    #[error("{address} answers with {why}")]
    Answer {
        /// Host and port.
        address: String,
        /// The response.
        why: String,
    },
}

/// Host and port in a `clientConfig`.
fn address(config: &Value) -> Option<(String, u16)> {
    if let Some(service) = config.get("service") {
        let text = |field: &str| service.get(field).and_then(Value::as_str);
        return Some((format!("{}.{}.svc", text("name")?, text("namespace")?), 443));
    }
    let uri: http::Uri = config.get("url")?.as_str()?.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    Some((host, uri.port_u16().unwrap_or(443)))
}

/// The connections that a check may make. Services are those of the gateway's own namespace, and an address that the process was
/// given is permitted; the author of a Katalog chooses any other, which `--external-allow` must permit.
#[derive(Clone, Copy)]
pub(crate) struct Permitted<'a> {
    /// The URL at which the API server reaches this process.
    pub(crate) own: Option<&'a str>,
    /// Makes connections that are permitted.
    pub(crate) external: &'a Client,
}

impl Permitted<'_> {
    /// Connects to the webhook of a `clientConfig`.
    async fn connect(self, config: &Value, (host, port): (&str, u16)) -> Result<TcpStream, String> {
        let url = config.get("url").and_then(Value::as_str);
        let Some(url) =
            url.filter(|url| self.own.map(|own| own.trim_end_matches('/')) != Some(*url))
        else {
            let stream = TcpStream::connect((host, port)).await;
            return stream.map_err(|error| error.to_string());
        };
        let stream = self.external.connect(url, WITHIN).await;
        stream.map_err(|error| chain(&error))
    }
}

/// Sends an empty review to the webhook of a `clientConfig`, as the API server would.
///
/// # Errors
/// [`Error`].
async fn probe(config: &Value, permitted: Permitted<'_>) -> Result<(), Error> {
    let no_address = || Error::Address(config.to_string());
    let (host, port) = address(config).ok_or_else(no_address)?;
    let at = format!("{host}:{port}");
    let bundle = config.get("caBundle").and_then(Value::as_str);
    let bundle = STANDARD
        .decode(bundle.unwrap_or_default())
        .unwrap_or_default();
    let asked = async {
        let connected = permitted.connect(config, (&host, port)).await;
        let stream = connected.map_err(|why| Error::Connect {
            address: at.clone(),
            why,
        })?;
        ask(stream, (&host, port), &bundle).await
    };
    match tokio::time::timeout(WITHIN, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Connect {
            address: at,
            why: format!("no answer within {} s", WITHIN.as_secs()),
        }),
    }
}

/// Why webhooks do not answer, by address and authorities; `None` for those that do.
#[derive(Debug, Default)]
pub(crate) struct Probes(BTreeMap<String, Option<String>>);

impl Probes {
    /// Asks every webhook that the objects point at, each address once, many at a time: addresses of different Katalogs must not wait
    /// for each other.
    pub(crate) async fn of(objects: impl Iterator<Item = &Node>, permitted: Permitted<'_>) -> Self {
        let origins = objects.flat_map(|object| origins(&object.to_json()));
        let asked: BTreeMap<String, Value> = origins
            .map(|(_, config)| (config.to_string(), config))
            .collect();
        let answers = stream::iter(asked).map(async |(asked, config)| {
            let error = probe(&config, permitted).await.err();
            let why = error.map(|error| format!("the webhook does not answer: {error}"));
            (asked, why)
        });
        Self(answers.buffer_unordered(AT_ONCE).collect().await)
    }

    /// Returns the webhooks of an object that do not answer.
    pub(crate) fn silent(&self, object: &Node) -> Silent {
        let mut silent = Silent::default();
        for (place, (name, config)) in origins(&object.to_json()).iter().enumerate() {
            if let Some(Some(why)) = self.0.get(&config.to_string()) {
                silent.places.push(place);
                silent.problems.push((name.clone(), why.clone()));
            }
        }
        silent
    }
}

/// The webhooks of an object that do not answer.
#[derive(Debug, Default)]
pub(crate) struct Silent {
    /// Their positions in the object.
    pub(crate) places: Vec<usize>,
    /// Why, with the name of the webhook; a conversion has none.
    pub(crate) problems: Vec<(String, String)>,
}

impl Silent {
    /// Returns what of `desired` may be written where these do not answer: all but webhooks that the API server does not call
    /// yet, as `live` shows. Without one that is called, an object would no longer hold what it holds. `None` if nothing remains.
    pub(crate) fn without(&self, desired: &Value, live: &Value) -> Option<Value> {
        let unsigned = |object| -> Vec<(String, Value)> {
            let named = origins(object).into_iter();
            named
                .map(|(name, config)| (name, without_authorities(config)))
                .collect()
        };
        let (wanted, called) = (unsigned(desired), unsigned(live));
        let is_called = |place: usize| wanted.get(place).is_some_and(|one| called.contains(one));
        let mut reduced = desired.clone();
        let Some(webhooks) = reduced.get_mut("webhooks").and_then(Value::as_array_mut) else {
            return is_called(0).then_some(reduced);
        };
        let answers = |place| !self.places.contains(&place) || is_called(place);
        let mut places = 0..webhooks.len();
        webhooks.retain(|_| places.next().is_some_and(answers));
        (!webhooks.is_empty()).then_some(reduced)
    }
}

/// Returns a `clientConfig` without authorities.
fn without_authorities(mut config: Value) -> Value {
    if let Some(fields) = config.as_object_mut() {
        fields.remove("caBundle");
    }
    config
}

/// Returns the `clientConfig`s of an object, without paths, each after the name of its webhook; a conversion has none.
fn origins(object: &Value) -> Vec<(String, Value)> {
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let conversion = object.pointer("/spec/conversion/webhook/clientConfig");
    let configs = webhooks.map(|webhook| {
        let name = webhook["name"].as_str().unwrap_or_default();
        (name, &webhook["clientConfig"])
    });
    let configs = configs.chain(conversion.map(|config| ("", config)));
    configs
        .map(|(name, config)| {
            let mut config = config.clone();
            if let Some(url) = config.get("url").and_then(Value::as_str) {
                let origin = url.rsplit_once('/').map_or(url, |(origin, _)| origin);
                config["url"] = origin.to_owned().into();
            }
            if let Some(service) = config.get_mut("service").and_then(Value::as_object_mut) {
                service.remove("path");
            }
            (name.to_owned(), config)
        })
        .collect()
}

async fn ask(stream: TcpStream, (host, port): (&str, u16), bundle: &[u8]) -> Result<(), Error> {
    let address = format!("{host}:{port}");
    let unconnected = |why: String| Error::Connect {
        address: address.clone(),
        why,
    };
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle).flatten() {
        // An authority that cannot be used is not trusted.
        let _ = roots.add(authority);
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|error| unconnected(error.to_string()))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await;
    let stream = stream.map_err(|error| unconnected(error.to_string()))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| unconnected(error.to_string()))?;
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "probe", "desiredAPIVersion": "v1", "objects": [] },
    });
    let request = Request::post("/convert")
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(review.to_string())))
        .map_err(|error| unconnected(error.to_string()))?;
    let response = tokio::select! {
        response = sender.send_request(request) => response,
        ended = connection => {
            let why = ended.err().map_or_else(|| "it closed the connection".to_owned(), |error| error.to_string());
            return Err(unconnected(why));
        }
    };
    let response = response.map_err(|error| unconnected(error.to_string()))?;
    if response.status().is_success() {
        return Ok(());
    }
    Err(Error::Answer {
        address,
        why: response.status().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(hosts: &[&str], bundle: &str) -> Value {
        let webhook = |host: &&str| {
            json!({ "name": host, "clientConfig": {
                "url": format!("https://{host}/validate"), "caBundle": bundle,
            } })
        };
        json!({ "webhooks": hosts.iter().map(webhook).collect::<Vec<_>>() })
    }

    #[test]
    fn a_silent_webhook_is_left_out_alone_unless_it_is_called_already() {
        let desired = configuration(&["own", "wrong"], "new");
        let silent = Silent {
            places: vec![1],
            problems: Vec::new(),
        };
        let before = configuration(&["own"], "old");
        let own = configuration(&["own"], "new");
        for live in [&before, &Value::Null] {
            assert_eq!(silent.without(&desired, live).as_ref(), Some(&own));
        }
        let called = configuration(&["wrong"], "old");
        assert_eq!(silent.without(&desired, &called), Some(desired.clone()));
        // A live webhook with the same address and another name does not count as the same webhook.
        let mut other = called.clone();
        other["webhooks"][0]["name"] = json!("other");
        assert_eq!(silent.without(&desired, &other), Some(own));
        let all = Silent {
            places: vec![0, 1],
            problems: Vec::new(),
        };
        assert_eq!(all.without(&desired, &Value::Null), None);
    }

    #[test]
    fn a_conversion_waits_for_its_webhook_unless_it_is_called_already() {
        let definition = |url: &str, bundle: &str| {
            let config = json!({ "url": url, "caBundle": bundle });
            json!({ "spec": { "conversion": { "webhook": { "clientConfig": config } } } })
        };
        let desired = definition("https://a/convert", "new");
        let silent = Silent {
            places: vec![0],
            problems: Vec::new(),
        };
        for live in [json!({}), definition("https://b/convert", "old")] {
            assert_eq!(silent.without(&desired, &live), None);
        }
        let live = definition("https://a/convert", "old");
        assert_eq!(silent.without(&desired, &live), Some(desired.clone()));
    }

    #[test]
    fn addresses_are_those_of_services_and_urls() {
        let cases = [
            (
                json!({ "url": "https://127.0.0.1:8443/validate" }),
                ("127.0.0.1", 8443),
            ),
            (json!({ "url": "https://[::1]:1/x" }), ("::1", 1)),
            (
                json!({ "url": "https://gate.example.org" }),
                ("gate.example.org", 443),
            ),
            (
                json!({ "service": { "name": "orkestra", "namespace": "system", "path": "/x" } }),
                ("orkestra.system.svc", 443),
            ),
        ];
        for (config, (host, port)) in cases {
            assert_eq!(address(&config), Some((host.to_owned(), port)), "{config}");
        }
        for none in [json!({}), json!({ "url": "" }), json!({ "url": 7 })] {
            assert_eq!(address(&none), None, "{none}");
        }
    }

    #[tokio::test]
    async fn only_permitted_addresses_are_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let config = json!({ "url": url });
        let external = Client::closed();
        let foreign = Permitted {
            own: Some("https://127.0.0.1:1"),
            external: &external,
        };
        let refused = probe(&config, foreign).await.unwrap_err().to_string();
        assert!(refused.contains("--external-allow"), "{refused}");
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "a connection was made");
        let own = Permitted {
            own: Some(&url),
            external: &external,
        };
        // The listener accepts the connection, and ends it before TLS.
        let accept = async { drop(listener.accept().await.unwrap()) };
        let (refused, ()) = tokio::join!(probe(&config, own), accept);
        let refused = refused.unwrap_err().to_string();
        assert!(!refused.contains("--external-allow"), "{refused}");
    }
}
