//! A push to a registry in memory: the image, its referrers and its signature.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails where something is missing"
)]

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, Uri, header};
use orkestra_registry::{
    Client, Content, Digest, Keychain, Options, Reference, media,
    signature::{BUNDLE, Format, PrivateKey, verify},
};
use parking_lot::Mutex;
use release::{
    Moment,
    image::{Image, Source},
    provenance,
    push::{Document, push},
    sbom,
};
use serde_json::{Value, json};

/// Blobs and manifests by path, with their media type.
type Objects = BTreeMap<String, (String, Bytes)>;

type Store = Arc<Mutex<Objects>>;

/// Source: OCI distribution specification 1.1, "Endpoints".
async fn answer(
    State(store): State<Store>,
    method: Method,
    uri: Uri,
    headers: http::HeaderMap,
    body: Bytes,
) -> Response {
    let mut store = store.lock();
    let path = uri.path();
    let type_ = headers
        .get(header::CONTENT_TYPE)
        .map_or("", |value| value.to_str().unwrap());
    if path == "/v2/" {
        return StatusCode::OK.into_response();
    }
    if path.ends_with("/blobs/uploads/") {
        return (
            StatusCode::ACCEPTED,
            [(header::LOCATION, format!("{path}1"))],
        )
            .into_response();
    }
    if let Some((base, _)) = path.split_once("/blobs/uploads/") {
        let digest = uri
            .query()
            .unwrap()
            .split_once("digest=")
            .unwrap()
            .1
            .replace("%3A", ":");
        assert_eq!(digest, Digest::of(&body).to_string());
        store.insert(format!("{base}/blobs/{digest}"), (type_.to_owned(), body));
        return StatusCode::CREATED.into_response();
    }
    if let Some((base, subject)) = path.split_once("/referrers/") {
        return referrers(&store, base, subject);
    }
    match method {
        Method::PUT => put_manifest(&mut store, path, type_, body),
        _ => match store.get(path) {
            Some((media_type, content)) => (
                [(header::CONTENT_TYPE, media_type.clone())],
                content.clone(),
            )
                .into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

/// Lists the manifests below `base` that refer to `subject`.
fn referrers(store: &Objects, base: &str, subject: &str) -> Response {
    let refers = |(media_type, content): &(String, Bytes)| {
        let manifest: Value = serde_json::from_slice(content).ok()?;
        (manifest["subject"]["digest"] == subject).then(|| {
            json!({ "mediaType": media_type, "digest": Digest::of(content), "size": content.len(), "artifactType": manifest["artifactType"] })
        })
    };
    let below = store
        .iter()
        .filter(|(at, _)| at.starts_with(base) && at.contains("/manifests/sha256:"));
    let listed: Vec<Value> = below.filter_map(|(_, one)| refers(one)).collect();
    let index = json!({ "schemaVersion": 2, "mediaType": media::INDEX, "manifests": listed });
    ([(header::CONTENT_TYPE, media::INDEX)], index.to_string()).into_response()
}

/// Stores a manifest under its tag and under its digest.
fn put_manifest(store: &mut Objects, path: &str, type_: &str, body: Bytes) -> Response {
    let digest = Digest::of(&body).to_string();
    let manifest: Value = serde_json::from_slice(&body).unwrap();
    let (base, _) = path.split_once("/manifests/").unwrap();
    store.insert(
        format!("{base}/manifests/{digest}"),
        (type_.to_owned(), body.clone()),
    );
    store.insert(path.to_owned(), (type_.to_owned(), body));
    let subject = manifest["subject"]["digest"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (
        StatusCode::CREATED,
        [("docker-content-digest", digest), ("oci-subject", subject)],
    )
        .into_response()
}

#[tokio::test]
async fn an_image_is_pushed_with_its_documents_and_a_signature() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let server = axum::serve(
        listener,
        Router::new().fallback(answer).with_state(Store::default()),
    );
    let work = async {
        let client = client();
        let image = image();
        let reference = Reference::parse(&format!("{host}/orkestra:1.2.3"), "").unwrap();
        let documents = [
            (sbom::MEDIA_TYPE, "{\"a\":1}"),
            (provenance::MEDIA_TYPE, "{\"b\":1}"),
        ];
        let documents = documents.map(|(media_type, text)| Document {
            media_type,
            content: text.into(),
        });
        let key = PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap();
        let digest = push(&client, &reference, &image, &documents, Some(&key))
            .await
            .unwrap();
        assert_eq!(digest, image.digest());

        the_layers_are_stored(&client, &reference).await;
        the_referrers_are_the_documents_and_a_signature(&client, &reference, &digest).await;
        the_signature_is_of_the_key_alone(&client, &reference, &digest, &key).await;
    };
    tokio::select! {
        () = work => {}
        ended = async { server.await } => ended.unwrap(),
    }
}

/// Creates a client without credentials.
fn client() -> Client {
    Client::new(Options {
        plain_http: true,
        ..Options::of_user(Keychain::default(), Vec::new())
    })
}

/// Builds an image.
fn image() -> Image {
    Image::build(&Source {
        binary: vec![7; 100_000],
        roots: Vec::new(),
        license: Vec::new(),
        architecture: "amd64".to_owned(),
        version: "1.2.3".to_owned(),
        commit: "abc".to_owned(),
        moment: Moment::default(),
    })
    .unwrap()
}

/// Checks that every layer of the image can be fetched by its digest.
async fn the_layers_are_stored(client: &Client, reference: &Reference) {
    let fetched = client.fetch(reference).await.unwrap();
    let Content::Manifest(manifest) = fetched.content else {
        panic!("an index")
    };
    for layer in &manifest.layers {
        let blob = client
            .fetch_blob(&reference.repository, layer, 1 << 20)
            .await
            .unwrap();
        assert_eq!(Digest::of(&blob), layer.digest);
    }
}

/// Checks that the documents and one signature refer to the image.
async fn the_referrers_are_the_documents_and_a_signature(
    client: &Client,
    reference: &Reference,
    digest: &Digest,
) {
    let referrers = client
        .referrers(&reference.repository, digest)
        .await
        .unwrap();
    let mut types: Vec<&str> = referrers
        .iter()
        .filter_map(|one| one.artifact_type.as_deref())
        .collect();
    types.sort_unstable();
    let mut expected = [sbom::MEDIA_TYPE, BUNDLE, provenance::MEDIA_TYPE];
    expected.sort_unstable();
    assert_eq!(types, expected);
}

/// Checks that the signature is valid for this key, and for no other.
async fn the_signature_is_of_the_key_alone(
    client: &Client,
    reference: &Reference,
    digest: &Digest,
    key: &PrivateKey,
) {
    let found = client
        .signatures(&reference.repository, digest)
        .await
        .unwrap();
    assert!(
        verify(
            digest,
            &found.candidates,
            &[key.public().unwrap()],
            &Format::ALL
        )
        .is_ok()
    );
    let other = PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap();
    assert!(
        verify(
            digest,
            &found.candidates,
            &[other.public().unwrap()],
            &Format::ALL
        )
        .is_err()
    );
}
