//! Concurrent writes of lists under one tag.

use anyhow::{Context as _, Result};
use orkestra_registry::{
    Client, Descriptor, Digest, Keychain, Options, Repository,
    catalogue::Pattern,
    media,
    signature::{Format, PrivateKey, sign_bundle, verify},
};
use orkestra_registry_tests::{Access, Registry};
use tokio::task::JoinSet;

use crate::{KATALOG, workspace};

/// Returns a client without credentials, for registries on loopback.
pub(crate) fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(Options {
        plain_http: true,
        ..Options::of_user(Keychain::anonymous(), Vec::new())
    })
}

fn pattern(number: usize) -> Pattern {
    Pattern {
        name: format!("p{number}"),
        kind: None,
        latest_version: "1.0.0".to_owned(),
        description: String::new(),
        tags: Vec::new(),
        author: String::new(),
        deprecated: false,
        versions: ["1.0.0".to_owned()].into(),
        pushed_at: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_entry_of_the_index_is_lost_to_pushes_at_the_same_time() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let folder = Repository::parse(&format!("{}/katalogs", registry.host))?;
    let mut pushes = JoinSet::new();
    for number in 0..12 {
        let folder = folder.clone();
        // To the registry, each is a separate process.
        pushes.spawn(async move {
            let listed = client()
                .list_artifact(&folder, pattern(number), &Digest::of(b""))
                .await;
            // The entry is stored even if the update of the merged list failed because of contention.
            if let Err(error) = &listed {
                assert!(
                    matches!(error, orkestra_registry::Error::Contended(..)),
                    "{error}"
                );
            }
        });
    }
    pushes.join_all().await;
    let catalogue = client().catalogue(&folder).await?;
    assert_eq!(catalogue.patterns.len(), 12, "{:?}", catalogue.patterns);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signature_is_lost_to_others_at_the_same_time() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let repository = Repository::parse(&format!("{}/a/b", registry.host))?;
    let subject = Descriptor::of(media::MANIFEST, b"whatever is signed");
    let mut keys = Vec::new();
    let mut signing = JoinSet::new();
    for _ in 0..5 {
        let key = PrivateKey::from_pem(&PrivateKey::generate()?, b"")?;
        keys.push(key.public()?);
        let (repository, subject) = (repository.clone(), subject.clone());
        signing.spawn(async move {
            let bundle = sign_bundle(subject.digest, &key)?;
            client()
                .attach_bundle(&repository, &subject, bundle)
                .await?;
            anyhow::Ok(())
        });
    }
    for signed in signing.join_all().await {
        signed?;
    }
    let found = client().signatures(&repository, &subject.digest).await?;
    for key in keys {
        verify(&subject.digest, &found.candidates, &[key], &Format::ALL)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_and_search_show_what_was_pushed() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (mut work, host) = (workspace()?, &registry.host);
    work.set("ORK_REGISTRY", &format!("oci://{host}/katalogs"));
    let none = work.ork("list")?.fails(1)?;
    assert!(none.contains("has no index"), "{none}");
    for version in ["1.10.0", "1.9.0"] {
        work.write("shop/katalog.yaml", &KATALOG.replace("1.2.0", version))?;
        work.ork("push shop shop")?.ok()?;
    }
    work.write(
        "shop/katalog.yaml",
        &KATALOG.replace("Shops for everybody", "Something else"),
    )?;
    work.ork("push shop cellar:edge")?.ok()?;
    let list = work.ork("list -o json")?.json()?;
    let patterns = list["patterns"].as_array().context("no patterns")?;
    let names: Vec<_> = patterns
        .iter()
        .map(|pattern| (&pattern["name"], &pattern["latestVersion"]))
        .collect();
    assert_eq!(
        format!("{names:?}"),
        r#"[(String("cellar"), String("edge")), (String("shop"), String("1.10.0"))]"#
    );
    let found = work.ork("search EVERYBODY")?.ok()?;
    assert!(
        found.contains("shop") && !found.contains("cellar"),
        "{found}"
    );
    Ok(())
}
