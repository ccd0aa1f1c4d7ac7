//! Connections through HTTP and SOCKS5 proxies, and a proxy that stops forwarding.

use std::net::Ipv4Addr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};

use super::*;

/// The protocol of a proxy.
enum Speaks {
    Http,
    Https(TlsAcceptor),
    /// RFC 1928, with the names and passwords of RFC 1929.
    Socks5,
}

/// A proxy that records its requests. Once `dead` is set, it forwards nothing.
async fn proxy(speaks: Speaks, seen: Arc<Seen>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            match &speaks {
                Speaks::Http => drop(tokio::spawn(connect(near, seen))),
                Speaks::Https(tls) => {
                    let near = tls.accept(near).await.unwrap();
                    tokio::spawn(connect(near, seen));
                }
                Speaks::Socks5 => drop(tokio::spawn(socks5(near, seen))),
            }
        }
    });
    address
}

/// Serves one connection of a proxy with CONNECT.
async fn connect(mut near: impl AsyncRead + AsyncWrite + Unpin, seen: Arc<Seen>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(near.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    seen.requests.lock().push(head.clone());
    let target = head.split_whitespace().nth(1).unwrap();
    let far = TcpStream::connect(target).await.unwrap();
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    pass_on(near, far, &seen).await;
}

/// Serves one connection of a proxy with SOCKS5, to an IPv4 address.
async fn socks5(mut near: TcpStream, seen: Arc<Seen>) {
    assert_eq!(near.read_u8().await.unwrap(), 5);
    let methods = short(&mut near).await;
    let method = methods[0];
    near.write_all(&[5, method]).await.unwrap();
    let mut who = String::new();
    if method == 2 {
        assert_eq!(near.read_u8().await.unwrap(), 1);
        let (user, password) = (short(&mut near).await, short(&mut near).await);
        who = String::from_utf8([user, password].join(&b':')).unwrap();
        near.write_all(&[1, 0]).await.unwrap();
    }
    let mut head = [0; 4];
    near.read_exact(&mut head).await.unwrap();
    assert_eq!(head, [5, 1, 0, 1], "not a CONNECT to an IPv4 address");
    let (ip, port) = (
        near.read_u32().await.unwrap(),
        near.read_u16().await.unwrap(),
    );
    let target = SocketAddr::from((Ipv4Addr::from(ip), port));
    let line = format!("{who} connects to {target}");
    seen.requests.lock().push(line);
    let far = TcpStream::connect(target).await.unwrap();
    near.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    pass_on(near, far, &seen).await;
}

/// Reads bytes that are prefixed with their length.
async fn short(near: &mut TcpStream) -> Vec<u8> {
    let mut bytes = vec![0; near.read_u8().await.unwrap().into()];
    near.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn pass_on(mut near: impl AsyncRead + AsyncWrite + Unpin, mut far: TcpStream, seen: &Seen) {
    let dead = async {
        while !seen.dead.load(Ordering::SeqCst) {
            seen.cut.notified().await;
        }
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        // Both connections stay open and receive nothing.
        () = dead => std::future::pending().await,
    }
}

/// Returns what a proxy receives from a client that connects through it, and the server's address. `scheme` is the scheme of the
/// proxy's address in the kubeconfig, `authority` the CA that the client trusts.
async fn asked_through(
    speaks: Speaks,
    authority: Option<Vec<u8>>,
    scheme: &str,
) -> (String, SocketAddr) {
    let server = Server::start(HTTP2).await;
    let seen = Arc::new(Seen::default());
    let address = proxy(speaks, seen.clone()).await;
    let mut config = server.config();
    config.proxy_url = Some(format!("{scheme}{address}").parse().unwrap());
    config.root_cert.as_mut().unwrap().extend(authority);
    let client = build(&config).unwrap();
    assert!(ask(&client, "/version").await.contains("/version"));
    let head = seen.requests.lock()[0].clone();
    (head, server.address)
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_is_asked_with_its_name_and_password() {
    let (tls, authority) = tls(b"http/1.1");
    for (speaks, authority, scheme) in [
        (Speaks::Http, None, "http://ana:p%40ss@"),
        (Speaks::Https(tls), Some(authority), "https://ana:p%40ss@"),
    ] {
        let (head, server) = asked_through(speaks, authority, scheme).await;
        let head = head.to_lowercase();
        assert!(head.contains(&format!("connect {server}")), "{head}");
        // base64 of `ana:p@ss`
        let wanted = "proxy-authorization: basic YW5hOnBAc3M=".to_lowercase();
        assert!(head.contains(&wanted), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_by_socks5_is_asked_with_its_name_and_password_or_without() {
    for (who, scheme) in [("ana:p@ss", "socks5://ana:p%40ss@"), ("", "socks5://")] {
        let (line, server) = asked_through(Speaks::Socks5, None, scheme).await;
        assert_eq!(line, format!("{who} connects to {server}"));
    }
}

#[tokio::test]
async fn a_peer_that_is_dead_is_found_out_and_its_watch_ends() {
    let server = Server::start(HTTP2).await;
    let seen = Arc::new(Seen::default());
    let address = proxy(Speaks::Http, seen.clone()).await;
    let mut config = server.config();
    config.proxy_url = Some(format!("http://{address}").parse().unwrap());
    let client = build(&config).unwrap();
    let mut body = watch(&client).await;
    seen.dead.store(true, Ordering::SeqCst);
    seen.cut.notify_waiters();
    // From here on, time advances whenever no task is runnable.
    tokio::time::pause();
    let before = Instant::now();
    assert!(body.frame().await.unwrap().is_err());
    let took = before.elapsed();
    assert!(
        took <= PING_AFTER + PING_TIMEOUT + Duration::from_secs(1),
        "{took:?}"
    );
}
