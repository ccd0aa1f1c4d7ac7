//! Content that is too large, that does not end, or that does not match its digest or type.

use orkestra_registry::{Digest, Error, Keychain, MOST_LAYERS, media};

use super::{Act, Server, answer, blob, client, fails, head};

#[tokio::test]
async fn a_manifest_with_too_many_layers_or_another_type_is_refused() {
    let layer = r#"{"mediaType":"a","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2}"#;
    let with = |layers: usize| {
        let list = vec![layer; layers].join(",");
        format!(
            r#"{{"schemaVersion":2,"mediaType":"{}","config":{layer},"layers":[{list}]}}"#,
            media::MANIFEST
        )
    };
    let (many, some) = (with(100_000), with(MOST_LAYERS + 1));
    let error = fails(move |_| answer(media::MANIFEST, &many)).await;
    assert!(
        error.to_string().contains("more than 4194304 bytes"),
        "{error}"
    );
    let error = fails(move |_| answer(media::MANIFEST, &some)).await;
    assert!(error.to_string().contains("more than 512"), "{error}");
    let one = with(1);
    let error = fails(move |_| answer(media::INDEX, &one)).await;
    assert!(error.to_string().contains("mediaType is"), "{error}");
    let error = fails(|_| answer("text/html", "<html>")).await;
    assert!(error.to_string().contains("not supported"), "{error}");
    let deep = format!(
        r#"{{"schemaVersion":2,"annotations":{}"#,
        "{\"a\":".repeat(200_000)
    );
    let error = fails(move |_| answer(media::INDEX, &deep)).await;
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn content_with_another_digest_is_refused() {
    let index = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","manifests":[]}}"#,
        media::INDEX
    );
    let server = Server::start(move |request| {
        if request.contains("/blobs/") {
            answer("a", "changed")
        } else {
            answer(media::INDEX, &index)
        }
    })
    .await;
    let client = client(Keychain::anonymous());
    let reference = server.reference();
    let pinned = reference.at(Digest::of(b"other"));
    let error = client.fetch(&pinned).await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    let error = client
        .fetch_blob(&reference.repository, &blob(b"content", 7), 100)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    for size in [6, 8] {
        let error = client
            .fetch_blob(&reference.repository, &blob(b"changed", size), 100)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{size}: {error}");
    }
    let error = fails(|_| {
        let lie = [
            ("Content-Type", media::INDEX),
            ("Docker-Content-Digest", "sha256:0"),
            ("Content-Length", "0"),
        ];
        Act::Send(format!("{}\r\n", head("200 OK", &lie)).into_bytes())
    })
    .await;
    assert!(error.to_string().contains("is not a digest"), "{error}");
}

#[tokio::test]
async fn ten_gigabytes_of_zeros_are_not_read() {
    let server = Server::start(|_| {
        Act::Endless(head("200 OK", &[("Content-Length", "10737418240")]) + "\r\n")
    })
    .await;
    let client = client(Keychain::anonymous());
    let repository = server.reference().repository;
    let error = client
        .fetch_blob(&repository, &blob(b"", 10 << 30), 8 << 20)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("more than 8388608"), "{error}");
    assert!(
        server.heads().is_empty(),
        "content with too large a declared size must not be requested"
    );
    let mut pieces = 0;
    let small = blob(b"", 1 << 20);
    let reading = client.stream_blob(&repository, &small, 8 << 20, |piece| pieces += piece.len());
    let error = reading.await.unwrap_err();
    assert!(
        error.to_string().contains("more than 1048576 bytes"),
        "{error}"
    );
    assert!(pieces <= 1 << 20, "{pieces}");
}

#[tokio::test]
async fn tags_without_an_end_are_an_error() {
    let page = format!("{{\"tags\":[{}]}}", vec!["\"t\""; 5_000].join(","));
    let server = Server::start(move |_| {
        let length = page.len().to_string();
        let head = head(
            "200 OK",
            &[
                ("Link", "</v2/a/b/tags/list?last=t>; rel=\"next\""),
                ("Content-Length", &length),
            ],
        );
        Act::Send(format!("{head}\r\n{page}").into_bytes())
    })
    .await;
    let error = client(Keychain::anonymous())
        .tags(&server.reference().repository)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("more than 100000"), "{error}");
}
