//! Git repositories over HTTP, served by Git's own `http-backend`, and in a folder.

use std::sync::Arc;

use orkestra_egress::Guard;
use orkestra_sources::{Credential, Error, Fetcher, Pin};

use crate::{
    fetcher,
    repository::{Repository, fetch, source},
    server::Server,
};

#[tokio::test(flavor = "multi_thread")]
async fn branches_tags_and_commits_are_fetched_and_an_unchanged_one_is_one_small_request() {
    let repository = Repository::new();
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.git(&["tag", "-a", "v1", "-m", "first"]);
    repository.git(&["tag", "light"]);
    repository.commit("motifs/reeds.yaml", "kind: Motif\n");
    let head = repository.commit("notes.txt", "not YAML\n");
    let server = repository.serve().await;
    let fetcher = fetcher(|_| {});
    let main = source(server.url("/r.git"), "main", "./katalog.yaml");
    let artifact = fetch(&fetcher, &main).await;
    assert_eq!(artifact.revision, format!("main@{head}"));
    let names: Vec<&str> = artifact.documents.iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["katalog.yaml", "motifs/reeds.yaml"]);
    assert_eq!(artifact.url, server.url("/r.git"));
    assert_eq!(server.seen().len(), 3, "capabilities, references, pack");
    assert!(Arc::ptr_eq(&artifact, &fetch(&fetcher, &main).await));
    assert_eq!(server.seen().len(), 1);
    for tag in ["v1", "light", "refs/tags/v1", &first] {
        let tagged = fetch(&fetcher, &source(server.url("/r.git"), tag, "katalog.yaml")).await;
        assert!(tagged.revision.ends_with(&first), "{}", tagged.revision);
        assert_eq!(tagged.documents.len(), 1);
    }
    server.seen();
    let pinned = source(server.url("/r.git"), &first, "katalog.yaml");
    fetch(&fetcher, &pinned).await;
    assert!(server.seen().is_empty(), "a commit is fetched once");
    let next = repository.commit("katalog.yaml", "kind: Katalog # 2\n");
    let moved = fetch(&fetcher, &main).await;
    assert_eq!(moved.revision, format!("main@{next}"));
    assert_eq!(moved.documents[0].text, "kind: Katalog # 2\n");
    let pin = Pin {
        revision: artifact.revision.clone(),
        digest: artifact.digest.clone(),
    };
    let locked = fetcher.fetch(&main, None, Some(&pin)).await.unwrap();
    assert_eq!(
        locked.documents, artifact.documents,
        "a lock must give the commit"
    );
    let folder = fetch(&fetcher, &source(server.url("/r.git"), "", "motifs")).await;
    assert_eq!(folder.documents[0].name, "motifs/reeds.yaml");
    what_does_not_exist_is_an_error(&fetcher, &server).await;
}

/// Checks the errors of references, paths and repositories that do not exist.
async fn what_does_not_exist_is_an_error(fetcher: &Fetcher, server: &Server) {
    for (reference, path, why) in [
        ("absent", "katalog.yaml", "the branch or tag absent"),
        ("main", "absent.yaml", "absent.yaml in"),
        ("main", "notes.txt/x", "notes.txt/x in"),
        ("main", "../x", "not a path"),
        ("-x", "katalog.yaml", "not a valid name"),
        (&"0".repeat(40), "katalog.yaml", "the server says"),
    ] {
        let wrong = source(server.url("/r.git"), reference, path);
        let error = fetcher
            .fetch(&wrong, None, None)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{reference} {path}: {error}");
    }
    let gone = source(server.url("/gone.git"), "main", "katalog.yaml");
    assert!(matches!(
        fetcher.fetch(&gone, None, None).await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn private_and_moved_repositories_are_fetched_with_credentials_for_them_alone() {
    let repository = Repository::new();
    let server = repository.serve().await;
    let fetcher = fetcher(|_| {});
    let private = source(server.url("/private.git"), "main", "katalog.yaml");
    let error = fetcher.fetch(&private, None, None).await.unwrap_err();
    assert!(
        matches!(error, Error::Unauthorized { status: 401, .. }),
        "{error}"
    );
    let login = Credential::Basic {
        user: "u".to_owned(),
        password: "p".to_owned(),
    };
    fetcher.fetch(&private, Some(&login), None).await.unwrap();
    // Another caller without credentials does not get the private content from the cache.
    assert!(fetcher.fetch(&private, None, None).await.is_err());
    let moved = source(server.url("/moved.git"), "main", "katalog.yaml");
    fetch(&fetcher, &moved).await;
    server.seen();
    fetch(&fetcher, &moved).await;
    assert_eq!(server.seen().len(), 1, "the redirect must be cached");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_read_without_git_loose_and_packed() {
    let repository = Repository::new();
    for number in 0..30 {
        let text = "a: line that is long enough for a delta\n".repeat(50 + number);
        repository.commit("big.yaml", &text);
    }
    repository.git(&["tag", "-a", "v1", "-m", "first"]);
    let url = format!("file://{}", repository.tree().display());
    let desk = fetcher(|options| options.local = true);
    let loose = fetch(&desk, &source(url.clone(), "v1", "big.yaml")).await;
    repository.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    repository.git(&["pack-refs", "--all"]);
    let packed = fetcher(|options| options.local = true);
    let packed = fetch(&packed, &source(url.clone(), "v1", "big.yaml")).await;
    assert_eq!(loose.documents, packed.documents);
    assert_eq!(loose.digest, packed.digest);
    let bare = repository.folder.path().join("bare.git");
    let shared = [
        "clone",
        "-q",
        "--bare",
        "--shared",
        ".",
        bare.to_str().unwrap(),
    ];
    repository.git(&shared);
    let alternate = format!("file://{}", bare.display());
    let alternate = fetch(&desk, &source(alternate, "main", "big.yaml")).await;
    assert_eq!(alternate.digest, packed.digest);
    // Over HTTP the same files arrive in a pack.
    let server = repository.serve().await;
    let remote = fetch(&desk, &source(server.url("/r.git"), "v1", "big.yaml")).await;
    assert_eq!(remote.digest, packed.digest);
    let cluster = fetcher(|options| options.guard = Guard::at_desk(Vec::new()));
    let error = cluster
        .fetch(&source(url, "main", "big.yaml"), None, None)
        .await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("cannot be used in a cluster")
    );
    let nothing = format!("file://{}", repository.folder.path().display());
    let error = desk
        .fetch(&source(nothing, "main", "x.yaml"), None, None)
        .await;
    assert!(matches!(error, Err(Error::NotFound(_))));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn links_are_not_followed_and_ssh_is_refused_with_a_reason() {
    let repository = Repository::new();
    std::os::unix::fs::symlink("/etc/passwd", repository.tree().join("link.yaml")).unwrap();
    repository.commit("other.yaml", "a: 1\n");
    let server = repository.serve().await;
    let fetcher = fetcher(|_| {});
    let link = source(server.url("/r.git"), "main", "link.yaml");
    let error = fetcher.fetch(&link, None, None).await.unwrap_err();
    assert!(error.to_string().contains("not followed"), "{error}");
    let whole = fetch(&fetcher, &source(server.url("/r.git"), "main", ".")).await;
    assert!(whole.documents.iter().all(|file| file.name != "link.yaml"));
    for ssh in [
        "git@github.com:acme/ponds.git",
        "ssh://git@github.com/acme/ponds",
    ] {
        let error = fetcher
            .fetch(&source(ssh.to_owned(), "main", "k.yaml"), None, None)
            .await;
        let error = error.unwrap_err();
        assert!(error.is_permanent());
        assert!(
            error.to_string().contains("SSH is not supported"),
            "{error}"
        );
    }
}
