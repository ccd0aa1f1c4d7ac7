//! Servers that ask for credentials that are not for them, or that answer with what is none.

use orkestra_registry::{Credential, Digest, Error, Keychain, Reference, media};

use super::{Act, Server, answer, client, head, redirect};

fn user() -> Keychain {
    Keychain::given(Credential::Basic {
        user: "planted".to_owned(),
        password: "planted".to_owned(),
    })
}

/// Returns a response that asks for credentials.
fn challenge(text: &str) -> Act {
    let headers = [("WWW-Authenticate", text), ("Content-Length", "0")];
    Act::Send(format!("{}\r\n", head("401 Unauthorized", &headers)).into_bytes())
}

/// Returns a response with JSON.
fn json(body: &'static str) -> impl Fn(&str) -> Act + Send + Sync + 'static {
    move |_| answer("application/json", body)
}

fn is_authorized(head: &str) -> bool {
    head.to_lowercase().contains("authorization:")
}

const INDEX: &str =
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;

#[tokio::test]
async fn the_challenge_of_a_server_behind_a_redirect_is_not_answered() {
    let tokens = Server::start(json(r#"{"token":"planted"}"#)).await;
    let realm = tokens.address;
    for text in [
        "Basic realm=\"r\"".to_owned(),
        format!("Bearer realm=\"http://{realm}/token\",service=\"s\""),
    ] {
        let text: &'static str = text.leak();
        let other = Server::start(move |_| challenge(text)).await;
        let to = format!("http://{}/x", other.address);
        let server = Server::start(move |_| redirect(&to)).await;
        let error = client(user()).fetch(&server.reference()).await.unwrap_err();
        assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
        let named = format!("http://{}", other.address);
        assert!(error.to_string().contains(&named), "{error}");
        for head in server.heads().iter().chain(&other.heads()) {
            assert!(!is_authorized(head), "{head}");
        }
    }
    assert!(tokens.heads().is_empty(), "{:?}", tokens.heads());
}

#[tokio::test]
async fn a_token_server_does_not_pass_credentials_on() {
    let other = Server::start(json(r#"{"token":"t"}"#)).await;
    let to = format!("http://{}/token", other.address);
    let tokens = Server::start(move |_| redirect(&to)).await;
    let realm = tokens.address;
    let server =
        Server::start(move |_| challenge(&format!("Bearer realm=\"http://{realm}/token\""))).await;
    let error = client(user()).fetch(&server.reference()).await.unwrap_err();
    assert!(matches!(error, Error::Status { .. }), "{error}");
    assert!(is_authorized(&tokens.heads()[0]));
    assert!(other.heads().is_empty(), "the redirect was followed");
}

#[tokio::test]
async fn a_token_server_that_answers_nonsense_is_an_error() {
    for body in [
        "<html>",
        "{}",
        r#"{"token":""}"#,
        r#"{"token":"a\nb"}"#,
        r#"{"token":"a\u0000"}"#,
    ] {
        let tokens = Server::start(json(body)).await;
        let realm = tokens.address;
        let server =
            Server::start(move |_| challenge(&format!("Bearer realm=\"http://{realm}/token\"")))
                .await;
        let error = client(user()).fetch(&server.reference()).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{body}: {error}");
    }
    for realm in ["", "token", "file:///etc/passwd", "http://u@127.0.0.1/"] {
        let server = Server::start(move |_| challenge(&format!("Bearer realm=\"{realm}\""))).await;
        let error = client(user()).fetch(&server.reference()).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{realm}: {error}");
    }
}

#[tokio::test]
async fn an_upload_elsewhere_gets_no_credentials() {
    let other = Server::start(|_| {
        let created = head("201 Created", &[("Content-Length", "0")]);
        Act::Send(format!("{created}\r\n").into_bytes())
    })
    .await;
    let place = format!("http://{}/upload", other.address);
    let server = Server::start(move |request| {
        if !is_authorized(request) {
            return challenge("Basic realm=\"r\"");
        }
        let (status, place) = match request.split(' ').next() {
            Some("POST") => ("202 Accepted", &*place),
            _ => ("404 Not Found", "/"),
        };
        let headers = [("Location", place), ("Content-Length", "0")];
        Act::Send(format!("{}\r\n", head(status, &headers)).into_bytes())
    })
    .await;
    let repository = server.reference().repository;
    // The server reads up to an empty line.
    let content = b"content\r\n\r\n".as_slice().into();
    let client = client(user());
    let pushed = client.push_blob(&repository, &content, |_| {});
    assert!(pushed.await.unwrap());
    let heads = other.heads();
    assert!(heads[0].starts_with("PUT /upload?digest="), "{}", heads[0]);
    assert!(!is_authorized(&heads[0]), "{}", heads[0]);
}

#[tokio::test]
async fn the_next_page_of_a_list_is_at_the_same_registry() {
    let other = Server::start(json(r#"{"tags":["planted"]}"#)).await;
    let next = format!("<http://{}/tags>; rel=\"next\"", other.address);
    let server = Server::start(move |_| {
        let headers = [("Link", &*next), ("Content-Length", "14")];
        let page = format!("{}\r\n{{\"tags\":[\"a\"]}}", head("200 OK", &headers));
        Act::Send(page.into_bytes())
    })
    .await;
    let tags = client(user()).tags(&server.reference().repository).await;
    assert_eq!(tags.unwrap(), ["a"]);
    assert!(other.heads().is_empty());
}

#[tokio::test]
async fn the_text_of_a_registry_does_not_control_a_terminal() {
    let text = r#"{"errors":[{"code":"\u001b[2J","message":"a\u202eb\u009bc\u2066"}]}"#;
    let server = Server::start(move |_| {
        let length = text.len().to_string();
        let head = head("403 Forbidden", &[("Content-Length", &length)]);
        Act::Send(format!("{head}\r\n{text}").into_bytes())
    })
    .await;
    let error = client(user()).fetch(&server.reference()).await.unwrap_err();
    let error = error.to_string();
    let is_plain = |c: char| !c.is_control() && !('\u{2000}'..='\u{206f}').contains(&c);
    assert!(error.chars().all(is_plain), "{error:?}");
}

#[test]
fn a_path_has_one_spelling() {
    for text in [
        "registry.example/legacy/../prod:v1",
        "registry.example/./prod:v1",
        "registry.example/%61cme/prod:v1",
        "registry.example//acme/prod:v1",
        "registry.example/acme/prod?x=y:v1",
        "registry.example/acme/prod#x:v1",
        "registry.example/ACME/prod:v1",
        "user@registry.example/acme/prod:v1",
    ] {
        assert!(text.parse::<Reference>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_registry_that_asks_itself_gets_the_credentials_once() {
    let server = Server::start(|request| {
        if is_authorized(request) {
            answer(media::INDEX, INDEX)
        } else {
            challenge("Basic realm=\"r\"")
        }
    })
    .await;
    let fetched = client(user()).fetch(&server.reference()).await.unwrap();
    assert_eq!(fetched.digest, Digest::of(INDEX.as_bytes()));
    let authorized = server
        .heads()
        .iter()
        .filter(|head| is_authorized(head))
        .count();
    assert_eq!((server.heads().len(), authorized), (2, 1));
}
