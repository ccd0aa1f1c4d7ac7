use super::*;

#[test]
fn a_port_that_another_process_took_meanwhile_costs_only_a_second_try() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let mut asked = 0;
    let cluster = ControlPlane::start_on(Options::default(), || {
        asked += 1;
        let mut ports = Ports::choose()?;
        match asked {
            1 => ports.etcd = port,
            2 => ports.api = port,
            _ => {}
        }
        Ok(ports)
    })
    .expect("it starts");
    cluster.check().expect("all servers run");
    assert_eq!(asked, 3);
    let folder = cluster.folder().to_owned();
    drop(cluster);
    assert!(!folder.exists(), "the folder is left after an orderly end");
}
