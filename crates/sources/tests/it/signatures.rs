//! Required signatures, with a registry in memory.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_registry::{
    Client, Descriptor, Digest, Keychain, Options, Reference, Repository,
    artifact::{self, File, Kind, Summary},
    signature::{PrivateKey, sign_bundle},
};
use orkestra_sources::{
    Artifact, Document, Error, Fetcher, Pin, Policy, SignatureRequirement, Source, Verified,
};
use parking_lot::Mutex;

use crate::{
    fetcher,
    server::{Act, Request, Server, not_found, ok, respond},
};

/// A registry that stores what is pushed.
#[derive(Default)]
struct Store {
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: BTreeMap<String, (String, Vec<u8>)>,
}

pub(crate) async fn registry() -> Server {
    let store = Mutex::new(Store::default());
    Server::start(move |request| store.lock().answer(request)).await
}

impl Store {
    fn answer(&mut self, request: &Request) -> Act {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if path == "/v2/" {
            return ok("", "{}");
        }
        if path.ends_with("/tags/list") {
            let tags = self.manifests.keys().filter(|name| !name.contains(':'));
            let tags: Vec<String> = tags.map(|tag| format!("\"{tag}\"")).collect();
            return ok("", format!("{{\"tags\": [{}]}}", tags.join(",")));
        }
        if let Some((_, name)) = path.rsplit_once("/manifests/") {
            return self.manifest(request, name);
        }
        match (&*request.method, path.rsplit_once("/blobs/")) {
            ("POST", Some((folder, _))) => respond(
                "202 Accepted",
                &format!("location: {folder}/blobs/uploads/1\r\n"),
                "",
            ),
            ("PUT", Some(_)) => {
                let digest = query.trim_start_matches("digest=").replace("%3A", ":");
                self.blobs.insert(digest, request.body.clone());
                respond("201 Created", "", "")
            }
            (method, Some((_, digest))) => match self.blobs.get(digest) {
                Some(_) if method == "HEAD" => respond("200 OK", "", ""),
                Some(blob) => ok("", blob),
                None => not_found(),
            },
            _ => not_found(),
        }
    }

    fn manifest(&mut self, request: &Request, name: &str) -> Act {
        if request.method == "PUT" {
            let type_ = request.header("content-type").unwrap().to_owned();
            let digest = Digest::of(&request.body).to_string();
            for name in [name, &digest] {
                let stored = (type_.clone(), request.body.clone());
                self.manifests.insert(name.to_owned(), stored);
            }
            return respond(
                "201 Created",
                &format!("docker-content-digest: {digest}\r\n"),
                "",
            );
        }
        let Some((type_, body)) = self.manifests.get(name) else {
            return not_found();
        };
        let digest = Digest::of(body);
        let head = format!("content-type: {type_}\r\ndocker-content-digest: {digest}\r\n");
        match &*request.method {
            "HEAD" => respond("200 OK", &head, ""),
            _ => ok(&head, body),
        }
    }
}

fn key() -> PrivateKey {
    PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap()
}

fn trust(key: &PrivateKey) -> SignatureRequirement {
    SignatureRequirement::keys([&*key.public().unwrap().pem()]).unwrap()
}

/// Pushes an artifact, and returns its digest.
pub(crate) async fn push(server: &Server, tag: &str, kind: Kind, files: &[(&str, &str)]) -> Digest {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let files: Vec<File> = files
        .iter()
        .map(|(name, text)| File {
            name: (*name).to_owned(),
            content: (*text).to_owned().into(),
        })
        .collect();
    let summary = Summary {
        kind,
        name: "ponds".to_owned(),
        version: None,
        description: None,
        author: None,
        license: None,
        tags: Vec::new(),
        orkestra: "0.1.0".to_owned(),
        declares: Vec::new(),
        permissions: Vec::new(),
    };
    let built = artifact::build(&files, &summary, None);
    let client = client();
    let reference: Reference = format!("{}/acme/ponds:{tag}", server.address)
        .parse()
        .unwrap();
    for (_, blob) in &built.blobs {
        client
            .push_blob(&reference.repository, blob, |_| {})
            .await
            .unwrap();
    }
    let type_ = orkestra_registry::media::MANIFEST;
    client
        .put_manifest(&reference, type_, built.bytes.clone())
        .await
        .unwrap()
        .digest
}

pub(crate) fn client() -> Client {
    Client::new(Options {
        plain_http: true,
        ..Options::of_user(Keychain::anonymous(), Vec::new())
    })
}

pub(crate) fn source(
    server: &Server,
    version: &str,
    verify: Option<SignatureRequirement>,
) -> Source {
    Source::Registry {
        reference: format!("{}/acme/ponds{version}", server.address),
        document: Document::Katalog,
        verify,
    }
}

async fn sign(server: &Server, digest: Digest, key: &PrivateKey) {
    let repository = Repository::parse(&format!("{}/acme/ponds", server.address)).unwrap();
    let manifest = client().fetch(&at(&repository, digest)).await.unwrap();
    let subject = Descriptor::of(&manifest.media_type, &manifest.bytes);
    let bundle = sign_bundle(digest, key).unwrap();
    client()
        .attach_bundle(&repository, &subject, bundle)
        .await
        .unwrap();
}

pub(crate) fn at(repository: &Repository, digest: Digest) -> Reference {
    Reference {
        repository: repository.clone(),
        tag: None,
        digest: Some(digest),
    }
}

#[tokio::test]
async fn documents_come_with_the_files_beside_them_and_an_unchanged_tag_is_one_head() {
    let server = registry().await;
    let files = [
        ("crd.yaml", "kind: CustomResourceDefinition\n"),
        ("katalog.yaml", "kind: Katalog # 1\n"),
        ("komposer.yaml", "kind: Komposer\n"),
        ("README.md", "# Ponds\n"),
    ];
    let digest = push(&server, "v1", Kind::Katalog, &files).await;
    let fetcher = fetcher(|_| {});
    let tagged = source(&server, ":v1", None);
    let artifact = fetcher.fetch(&tagged, None, None).await.unwrap();
    assert_eq!(artifact.digest, digest.to_string());
    assert_eq!(artifact.revision, "v1");
    assert_eq!(
        artifact.url,
        format!("oci://{}/acme/ponds:v1", server.address)
    );
    assert_eq!(artifact.verified, Verified::NotRequired);
    let names: Vec<&str> = artifact.documents.iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["katalog.yaml", "crd.yaml", "komposer.yaml"]);
    server.seen();
    let again = fetcher.fetch(&tagged, None, None).await.unwrap();
    assert!(Arc::ptr_eq(&artifact, &again));
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].method, "HEAD");
    let at_tag = fetcher
        .fetch(&source(&server, "@v1", None), None, None)
        .await
        .unwrap();
    assert_eq!(at_tag.digest, artifact.digest);
    let pinned = source(&server, &format!("@{digest}"), None);
    fetcher.fetch(&pinned, None, None).await.unwrap();
    server.seen();
    fetcher.fetch(&pinned, None, None).await.unwrap();
    assert!(server.seen().is_empty(), "a digest is fetched once");
    a_short_name_is_read_in_the_registry_of_katalogs(&server).await;
    a_document_that_is_not_in_the_artifact_is_named(&server, &fetcher).await;
    a_moved_tag_is_new_and_a_lock_gives_the_old_artifact(&server, &fetcher, &tagged, &artifact)
        .await;
}

/// Checks that a reference without a registry refers to the registry of Katalogs.
async fn a_short_name_is_read_in_the_registry_of_katalogs(server: &Server) {
    let short = fetcher(|options| options.katalogs = format!("oci://{}/acme", server.address));
    let komposer = Source::Registry {
        reference: "ponds@v1".to_owned(),
        document: Document::Komposer,
        verify: None,
    };
    let short = short.fetch(&komposer, None, None).await.unwrap();
    assert_eq!(short.documents[0].name, "komposer.yaml");
}

/// Checks that the error names the document that the artifact lacks.
async fn a_document_that_is_not_in_the_artifact_is_named(server: &Server, fetcher: &Fetcher) {
    let motif = Source::Registry {
        reference: format!("{}/acme/ponds:v1", server.address),
        document: Document::Motif,
        verify: None,
    };
    let error = fetcher.fetch(&motif, None, None).await.unwrap_err();
    assert!(
        error.to_string().contains("motif.yaml in oci://"),
        "{error}"
    );
}

/// Checks that a tag that moved is a new revision, and that a lock still gives the old one.
async fn a_moved_tag_is_new_and_a_lock_gives_the_old_artifact(
    server: &Server,
    fetcher: &Fetcher,
    tagged: &Source,
    old: &Artifact,
) {
    let moved = push(
        server,
        "v1",
        Kind::Katalog,
        &[("katalog.yaml", "kind: Katalog # 2\n")],
    )
    .await;
    let new = fetcher.fetch(tagged, None, None).await.unwrap();
    assert_eq!(new.digest, moved.to_string());
    let pin = Pin {
        revision: "v1".to_owned(),
        digest: old.digest.clone(),
    };
    let locked = fetcher.fetch(tagged, None, Some(&pin)).await.unwrap();
    assert_eq!(locked.documents, old.documents);
}

#[tokio::test]
async fn a_signature_that_is_required_is_checked_and_its_absence_fails_closed() {
    let server = registry().await;
    let digest = push(
        &server,
        "v1",
        Kind::Katalog,
        &[("katalog.yaml", "kind: Katalog\n")],
    )
    .await;
    let (ours, other) = (key(), key());
    let refused = |fetcher: Fetcher, source: Source| async move {
        let error = fetcher.fetch(&source, None, None).await.unwrap_err();
        assert!(matches!(error, Error::Unverified { .. }), "{error}");
        error.to_string()
    };
    let unsigned = source(&server, ":v1", Some(trust(&ours)));
    let error = refused(fetcher(|_| {}), unsigned.clone()).await;
    assert!(error.contains("has no signature"), "{error}");
    sign(&server, digest, &other).await;
    let error = refused(fetcher(|_| {}), unsigned.clone()).await;
    assert!(error.contains("not signed with the given key"), "{error}");
    let warned = source(&server, ":v1", Some(trust(&ours).warning()));
    let warned = fetcher(|_| {}).fetch(&warned, None, None).await.unwrap();
    assert!(matches!(&warned.verified, Verified::Warned(why) if why.contains("key")));
    sign(&server, digest, &ours).await;
    let signed = fetcher(|_| {}).fetch(&unsigned, None, None).await.unwrap();
    let fingerprint = ours.public().unwrap().fingerprint();
    assert_eq!(signed.verified, Verified::By(format!("key {fingerprint}")));
    // A source cannot weaken the policy of the runtime.
    let strict = key();
    let policy = |mode: &str| {
        let pem = strict.public().unwrap().pem().replace('\n', "\n    ");
        let text = format!(
            "rules:\n- match: {}/acme\n  mode: {mode}\n  keys:\n  - |\n    {pem}\n",
            server.address
        );
        Policy::parse(&text).unwrap()
    };
    let enforcing = fetcher(|options| options.policy = policy("enforce"));
    refused(enforcing.clone(), unsigned.clone()).await;
    refused(enforcing.clone(), source(&server, ":v1", None)).await;
    let warning = fetcher(|options| options.policy = policy("warn"));
    assert!(
        warning
            .fetch(&source(&server, ":v1", None), None, None)
            .await
            .is_ok()
    );
    sign(&server, digest, &strict).await;
    assert!(enforcing.fetch(&unsigned, None, None).await.is_ok());
    // A source that cannot have a signature is refused if an enforcing rule applies.
    let file = Source::File {
        url: server.url("/acme/katalog.yaml"),
    };
    assert!(
        refused(enforcing, file)
            .await
            .contains("only artifacts of OCI registries")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_katalogs_are_fetched_side_by_side_and_cost_one_small_request_each_when_unchanged() {
    let server = registry().await;
    let mut sources = Vec::new();
    for number in 0..50 {
        let text = format!("kind: Katalog # {number}\n");
        push(
            &server,
            &format!("v{number}"),
            Kind::Katalog,
            &[("katalog.yaml", &text)],
        )
        .await;
        sources.push(source(&server, &format!(":v{number}"), None));
    }
    let fetcher = fetcher(|_| {});
    let all =
        || futures::future::join_all(sources.iter().map(|one| fetcher.fetch(one, None, None)));
    server.seen();
    let started = std::time::Instant::now();
    for (number, artifact) in all().await.into_iter().enumerate() {
        let text = format!("kind: Katalog # {number}\n");
        assert_eq!(artifact.unwrap().documents[0].text, text);
    }
    println!("50 artifacts in {:?}", started.elapsed());
    server.seen();
    let started = std::time::Instant::now();
    assert!(all().await.iter().all(Result::is_ok));
    println!("50 unchanged sources in {:?}", started.elapsed());
    let seen = server.seen();
    assert_eq!(seen.len(), 50);
    assert!(seen.iter().all(|request| request.method == "HEAD"));
}
