//! TLS: the server's certificate must be trusted and contain the host.

use std::sync::Arc;

use orkestra_egress as egress;
use rustls::{RootCertStore, ServerConfig, pki_types::PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    super::{Client, Resolver, Variables},
    failure_of, get, guard,
};

#[tokio::test]
async fn a_certificate_must_be_trusted_and_name_the_host() {
    // Tests share a process, so another test may have installed the provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = JoinSet::new();
    server.spawn(serve(listener, Arc::new(config)));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = |roots: RootCertStore| {
        let local = Resolver::new(|_| Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) }));
        let egress = egress::Client::new(guard(&["https://127.0.0.1"]), local).trusting(roots);
        Client::over(egress, Variables::default())
    };
    let url = |host: &str| get(format!("https://{host}:{port}/"));
    let answer = client(roots.clone()).call(&url("shop.example")).await;
    assert_eq!((answer.status, &*answer.body), (Some(200), "ok"));
    let other = client(roots).call(&url("other.example")).await;
    assert!(
        failure_of(&other).contains("cannot be trusted"),
        "{other:?}"
    );
    let stranger = client(RootCertStore::empty())
        .call(&url("shop.example"))
        .await;
    assert!(
        failure_of(&stranger).contains("UnknownIssuer"),
        "{stranger:?}"
    );
}

async fn serve(listener: TcpListener, config: Arc<ServerConfig>) {
    let acceptor = TlsAcceptor::from(config);
    while let Ok((tcp, _)) = listener.accept().await {
        // A client that does not trust the certificate disconnects.
        let Ok(mut stream) = acceptor.accept(tcp).await else {
            continue;
        };
        let _ = stream.read(&mut [0; 4096]).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        let _ = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
    }
}
