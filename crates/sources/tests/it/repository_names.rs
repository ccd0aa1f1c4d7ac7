//! Names of references and files: what is fetched under a name is what the name says.

use orkestra_sources::{Error, Pin};
use sha2::{Digest as _, Sha256};

use crate::{
    fetcher,
    repository::{Repository, fetch, source},
};

#[tokio::test(flavor = "multi_thread")]
async fn references_with_odd_names_are_fetched_or_refused() {
    let repository = Repository::new();
    let head = repository.git(&["rev-parse", "HEAD"]);
    let server = repository.serve().await;
    let folder = format!("file://{}", repository.tree().display());
    let fetcher = fetcher(|options| options.local = true);
    for name in ["feature/ü@2", "a#b%20c", "v1.0+build", "refs/x", "a'b"] {
        let whole = match name.strip_prefix("refs/") {
            Some(_) => name.to_owned(),
            None => format!("refs/heads/{name}"),
        };
        repository.git(&["update-ref", &whole, "HEAD"]);
        for url in [server.url("/r.git"), folder.clone()] {
            let artifact = fetch(&fetcher, &source(url, name, "katalog.yaml")).await;
            assert_eq!(artifact.revision, format!("{name}@{head}"));
        }
    }
    server.seen();
    for name in [
        "a..b",
        "x\ny",
        "refs/heads/../x",
        "a~1",
        "a^",
        "HEAD@{1}",
        "a b",
        ".a",
        "a/",
        "//a",
        "a*",
        "\u{85}",
    ] {
        for url in [server.url("/r.git"), folder.clone()] {
            let source = source(url, name, "katalog.yaml");
            let error = fetcher.fetch(&source, None, None).await.unwrap_err();
            assert!(error.is_permanent(), "{name:?}: {error}");
            assert!(error.to_string().contains("not a valid name"), "{error}");
        }
    }
    assert!(server.seen().is_empty(), "nothing may be requested");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn names_and_texts_cannot_stand_for_other_documents() {
    // A checksum list of two files, as `sha256sum` prints it, is also the text of one file.
    let lists = Repository::new();
    lists.commit("two/a.yaml", "a: 1\n");
    lists.commit("two/b.yaml", "b: 1\n");
    let sums = [("a.yaml", "a: 1\n"), ("b.yaml", "b: 1\n")].map(|(name, text)| {
        let sum = Sha256::digest(text.as_bytes());
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{sum}  {name}\n")
    });
    let list = sums.concat();
    lists.commit("one/a.yaml", &list);
    let head = lists.git(&["rev-parse", "HEAD"]);
    let server = lists.serve().await;
    let fetcher = fetcher(|_| {});
    let two = fetch(&fetcher, &source(server.url("/r.git"), "main", "two")).await;
    let one = source(server.url("/r.git"), "main", "one");
    assert_ne!(fetch(&fetcher, &one).await.digest, two.digest);
    let pin = Pin {
        revision: format!("main@{head}"),
        digest: two.digest.clone(),
    };
    let error = fetcher.fetch(&one, None, Some(&pin)).await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    // A name with a line break, which would be a line of such a list.
    lists.commit("bad/a.yaml\n0000  b.yaml", "a: 1\n");
    for url in [
        server.url("/r.git"),
        format!("file://{}", lists.tree().display()),
    ] {
        let fetcher = crate::fetcher(|options| options.local = true);
        let bad = source(url.clone(), "main", "bad");
        let error = fetcher.fetch(&bad, None, None).await.unwrap_err();
        assert!(error.to_string().contains("control character"), "{error}");
        let good = fetch(&fetcher, &source(url, "main", "two")).await;
        assert_eq!(good.digest, two.digest);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_with_other_layouts_and_damage_are_read_or_refused() {
    let repository = Repository::new();
    let head = repository.commit("other.yaml", "a: 1\n");
    let fetcher = fetcher(|options| options.local = true);
    let url = |folder: &std::path::Path| format!("file://{}", folder.display());
    let here = url(&repository.tree());
    let artifact = fetch(&fetcher, &source(here.clone(), "", "other.yaml")).await;
    assert_eq!(artifact.revision, format!("HEAD@{head}"));
    let linked = repository.folder.path().join("linked");
    let linked_text = linked.to_str().unwrap();
    repository.git(&["worktree", "add", "-q", "--detach", linked_text]);
    let artifact = fetch(&fetcher, &source(url(&linked), "main", "other.yaml")).await;
    assert_eq!(artifact.revision, format!("main@{head}"));
    // References that lead to one another end.
    repository.git(&["symbolic-ref", "refs/heads/one", "refs/heads/two"]);
    repository.git(&["symbolic-ref", "refs/heads/two", "refs/heads/one"]);
    let endless = source(here.clone(), "one", "other.yaml");
    let error = fetcher.fetch(&endless, None, None).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
    // The content of one object under the name of another.
    let object = |path: &str| {
        let id = repository.git(&["rev-parse", &format!("HEAD:{path}")]);
        let objects = repository.tree().join(".git/objects");
        objects.join(&id[..2]).join(&id[2..])
    };
    let (from, to) = (object("katalog.yaml"), object("other.yaml"));
    std::fs::remove_file(&to).unwrap();
    std::fs::copy(from, &to).unwrap();
    let damaged = source(here.clone(), "main", "./other.yaml");
    let error = fetcher.fetch(&damaged, None, None).await.unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    std::fs::remove_file(&to).unwrap();
    let error = fetcher.fetch(&damaged, None, None).await.unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
}
