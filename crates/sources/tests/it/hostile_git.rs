//! Hostile Git servers: what they send is refused with a reason, and nothing of it reaches a terminal.

use orkestra_sources::Source;

use crate::{
    hostile::error_of,
    server::{Server, ok},
};

#[tokio::test]
async fn git_servers_that_lie_are_refused() {
    let line = |text: &str| format!("{:04x}{text}\n", text.len() + 5);
    let capabilities = format!("{}{}0000", line("version 2"), line("fetch=shallow"));
    let id = "0123456789012345678901234567890123456789";
    let tip = format!("{}0000", line(&format!("{id} refs/heads/main")));
    let pack = |bytes: &[u8]| {
        let mut framed = line("packfile").into_bytes();
        framed.extend(format!("{:04x}\u{1}", bytes.len() + 5).as_bytes());
        framed.extend(bytes);
        framed.extend(b"0000");
        framed
    };
    let mut empty = b"PACK\0\0\0\x02\0\0\0\0".to_vec();
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &empty);
    empty.extend(sum.as_ref());
    let mut huge = b"PACK\0\0\0\x02\xff\xff\xff\xff".to_vec();
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &huge);
    huge.extend(sum.as_ref());
    for (capabilities, tip, why) in [
        ("<html>", &*tip, "packet format"),
        (&*line("version 1"), &*tip, "version 2"),
        (&*capabilities, "0000", "the branch or tag main"),
        (
            &*capabilities,
            &*line("ERR planted"),
            "the server says: planted",
        ),
    ] {
        let error = git_error(capabilities, tip, Vec::new()).await;
        assert!(error.contains(why), "{why}: {error}");
    }
    for (pack, why) in [
        (b"0000".to_vec(), "sent no pack"),
        (pack(&empty[..20]), "malformed"),
        (pack(&empty), "is not in the pack"),
        (pack(&huge), "more than 100000"),
        (pack(&[&empty[..31], b"x"].concat()), "checksum"),
        (
            pack(b"no pack at all, but long enough to be one"),
            "version 2",
        ),
    ] {
        let error = git_error(&capabilities, &tip, pack).await;
        assert!(error.contains(why), "{why}: {error}");
    }
}

fn framed(lines: &[&[u8]]) -> Vec<u8> {
    let line = |text: &&[u8]| [format!("{:04x}", text.len() + 4).as_bytes(), text].concat();
    lines.iter().flat_map(line).collect()
}

/// Returns what a server offers.
fn offered(fetch: &str, format: &str) -> String {
    let lines = framed(&[
        b"version 2\n",
        format!("fetch={fetch}\n").as_bytes(),
        format!("object-format={format}\n").as_bytes(),
    ]);
    String::from_utf8(lines).unwrap() + "0000"
}

/// Returns a list of one reference.
fn listed(line: &str) -> String {
    let line = framed(&[format!("{line}\n").as_bytes()]);
    String::from_utf8(line).unwrap() + "0000"
}

const MAIN: &str = "0123456789012345678901234567890123456789 refs/heads/main";

#[tokio::test]
async fn git_servers_with_odd_offers_and_references_are_refused() {
    let good = offered("shallow", "sha1");
    let main = listed(MAIN);
    let other = |name: &str| listed(&MAIN.replace("refs/heads/main", name));
    for (offered, tip, why) in [
        (&offered("filter", "sha1"), &main, "shallow fetches"),
        (&offered("shallow", "sha256"), &main, "SHA-256"),
        (&"0000".to_owned(), &main, "version 2"),
        (&"000".to_owned(), &main, "packet format"),
        (&"ffff".to_owned(), &main, "packet format"),
        (&good, &other("refs/heads/main2"), "the branch or tag main"),
        (&good, &other("REFS/HEADS/MAIN"), "the branch or tag main"),
        (&good, &listed("x refs/heads/main"), "packet format"),
        (&good, &other(""), "packet format"),
        (&good, &main[..60].to_owned(), "packet format"),
    ] {
        let error = git_error(offered, tip, Vec::new()).await;
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[tokio::test]
async fn git_servers_with_odd_answers_are_refused() {
    let begun = |line: &[u8]| framed(&[b"packfile\n", line]);
    for (answer, why) in [
        (Vec::new(), "packet format"),
        (
            begun(b"\x03planted\x1b[2J\n"),
            "the server says: planted[2J",
        ),
        (begun(b"\x02working"), "packet format"),
        (begun(b"\x04x"), "packet format"),
        (begun(b"\x01PACK"), "packet format"),
        (begun(b"ERR planted\n"), "the server says: planted"),
        (framed(&[b"ERR planted\n"]), "the server says: planted"),
        (
            framed(&[b"shallow-info\n", b"shallow x\n"]),
            "packet format",
        ),
        (framed(&[b"something else\n"]), "packet format"),
    ] {
        let error = git_error(&offered("shallow", "sha1"), &listed(MAIN), answer).await;
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// Returns the error of a Git server with these answers.
async fn git_error(capabilities: &str, tip: &str, pack: Vec<u8>) -> String {
    let (capabilities, tip) = (capabilities.to_owned(), tip.to_owned());
    let server = Server::start(move |request| match &*request.method {
        "GET" => ok("", &capabilities),
        _ if request.body.windows(7).any(|word| word == b"ls-refs") => ok("", &tip),
        _ => ok("", &pack),
    })
    .await;
    let source = Source::Git {
        url: server.url("/r.git"),
        reference: "main".to_owned(),
        path: "katalog.yaml".to_owned(),
    };
    error_of(&source).await
}
