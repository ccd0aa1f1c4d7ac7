//! Which hosts and addresses a guard permits.

use super::*;

/// A server that leads elsewhere, at an unknown address.
fn leader(url: &str) -> Leader {
    Leader {
        server: target(url),
        address: None,
    }
}

fn guard(entries: &[&str]) -> Guard {
    Guard::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn without_entries_nothing_is_called_and_the_flag_is_named() {
    let refused = guard(&[])
        .judge_host(&target("http://shop.example:81/secret"))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "external calls are off: to permit this one, start with --external-allow http://shop.example:81"
    );
}

#[test]
fn a_host_is_permitted_at_public_addresses_alone() {
    let guard = guard(&["shop.example"]);
    let shop = target("https://shop.example/");
    assert_eq!(guard.judge_host(&shop), Ok(()));
    assert_eq!(guard.judge_address(&shop, address("93.184.215.14")), Ok(()));
    for inside in [
        "10.0.0.1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fd00::1",
    ] {
        let refused = guard.judge_address(&shop, address(inside)).unwrap_err();
        assert!(matches!(refused, Refusal::Closed { .. }), "{refused}");
    }
    let other = target("https://shop.example.evil.example/");
    assert!(matches!(
        guard.judge_host(&other),
        Err(Refusal::NotAllowed { .. })
    ));
    let plain = guard
        .judge_host(&target("http://shop.example/"))
        .unwrap_err();
    assert!(
        plain
            .to_string()
            .ends_with("--external-allow http://shop.example would permit plain HTTP")
    );
}

#[test]
fn a_network_permits_any_name_at_its_addresses() {
    let guard = guard(&["10.96.0.0/12:8080"]);
    let api = target("http://api.shop.svc:8080/");
    assert_eq!(guard.judge_host(&api), Ok(()));
    assert_eq!(guard.judge_address(&api, address("10.97.0.9")), Ok(()));
    assert!(guard.judge_address(&api, address("10.112.0.1")).is_err());
    assert!(guard.judge_address(&api, address("93.184.215.14")).is_err());
    assert!(guard.judge_host(&target("http://api.shop.svc/")).is_err());
}

#[test]
fn a_range_that_is_not_public_is_opened_by_an_entry_within_it_alone() {
    let all = guard(&["0.0.0.0/0", "::/0"]);
    let name = target("http://shop.example/");
    assert_eq!(all.judge_address(&name, address("93.184.215.14")), Ok(()));
    assert_eq!(all.judge_address(&name, address("2600:1f18::1")), Ok(()));
    for inside in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "::1",
    ] {
        assert!(
            all.judge_address(&name, address(inside)).is_err(),
            "{inside}"
        );
    }
    let metadata = guard(&["169.254.169.254"]);
    let url = target("http://169.254.169.254/latest");
    assert_eq!(metadata.judge_host(&url), Ok(()));
    assert!(
        metadata
            .judge_host(&target("http://169.254.169.253/"))
            .is_err()
    );
}

#[test]
fn localhost_is_the_loopback_and_nothing_else() {
    let guard = guard(&["localhost:81"]);
    let near = target("http://localhost:81/");
    assert_eq!(guard.judge_host(&near), Ok(()));
    assert_eq!(guard.judge_address(&near, address("127.0.0.1")), Ok(()));
    assert!(guard.judge_address(&near, address("10.0.0.1")).is_err());
    assert!(guard.judge_host(&target("http://127.0.0.1:81/")).is_err());
    assert!(guard.judge_host(&target("http://localhost:82/")).is_err());
}

#[test]
fn the_api_server_is_permitted_by_an_entry_with_its_port_alone() {
    let server = "https://10.96.0.1:443";
    let by_network = guard(&["10.0.0.0/8"]).with_api_server(server);
    let api = target("https://kubernetes.default.svc/");
    let refused = by_network
        .judge_address(&api, address("10.96.0.1"))
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("--external-allow 10.96.0.1:443"),
        "{refused}"
    );
    assert_eq!(by_network.judge_address(&api, address("10.96.0.2")), Ok(()));
    let named = guard(&["10.96.0.1:443"]).with_api_server(server);
    assert_eq!(named.judge_address(&api, address("10.96.0.1")), Ok(()));
    let by_name = guard(&["*.example.org"]).with_api_server("https://k8s.example.org:6443");
    let refused = by_name.judge_host(&target("https://k8s.example.org:6443/"));
    assert!(matches!(refused, Err(Refusal::ApiServer { .. })));
    assert_eq!(
        by_name.judge_host(&target("https://k8s.example.org/")),
        Ok(())
    );
}

#[test]
fn at_a_desk_public_hosts_and_the_machine_itself_are_open_and_private_networks_are_not() {
    let desk = Guard::at_desk(Vec::new());
    let public = target("https://charts.example/");
    assert_eq!(desk.judge_host(&public), Ok(()));
    assert_eq!(
        desk.judge_address(&public, address("93.184.215.14")),
        Ok(())
    );
    for inside in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"] {
        let refused = desk.judge_address(&public, address(inside)).unwrap_err();
        assert!(
            refused.to_string().contains("--source-allow"),
            "{inside}: {refused}"
        );
    }
    for near in ["http://127.0.0.1:81/", "http://localhost/", "http://[::1]/"] {
        let near = target(near);
        assert_eq!(desk.judge_host(&near), Ok(()));
    }
    let local = target("http://localhost:81/");
    assert_eq!(desk.judge_address(&local, address("127.0.0.1")), Ok(()));
    assert!(desk.judge_address(&local, address("10.0.0.1")).is_err());
    for refused in [
        "http://charts.example/",
        "https://10.0.0.1/",
        "http://169.254.169.254/",
    ] {
        assert!(desk.judge_host(&target(refused)).is_err(), "{refused}");
    }
}

#[test]
fn a_server_elsewhere_does_not_lead_to_this_machine() {
    let desk = Guard::at_desk(Vec::new());
    let near = target("http://127.0.0.1:81/");
    let led = desk.led_by(&leader("https://charts.example/"));
    assert!(led.judge_host(&near).is_err());
    assert_eq!(led.judge_host(&target("https://cdn.example/")), Ok(()));
    assert_eq!(
        desk.led_by(&leader("http://127.0.0.1:81/"))
            .judge_host(&near),
        Ok(())
    );
    let named = Guard::at_desk(vec!["127.0.0.1".parse().unwrap()]);
    let led = named.led_by(&leader("https://charts.example/"));
    assert_eq!(led.judge_host(&near), Ok(()));
}

#[test]
fn a_server_of_the_user_leads_to_public_addresses_and_to_its_own_kind() {
    let user = Guard::of_user();
    for named in ["http://10.0.0.1/", "https://a.example/", "http://[::1]/"] {
        assert_eq!(user.judge_host(&target(named)), Ok(()), "{named}");
    }
    let name = target("https://cdn.example/");
    assert_eq!(user.judge_address(&name, address("10.0.0.1")), Ok(()));
    let led = user.led_by(&leader("https://registry.example/"));
    assert_eq!(led.judge_address(&name, address("93.184.215.14")), Ok(()));
    for inside in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
    ] {
        let refused = led.judge_address(&name, address(inside)).unwrap_err();
        assert!(matches!(refused, Refusal::Led { .. }), "{refused}");
        let url = match address(inside) {
            IpAddr::V4(v4) => format!("https://{v4}/"),
            IpAddr::V6(v6) => format!("https://[{v6}]/"),
        };
        assert!(led.judge_host(&target(&url)).is_err(), "{url}");
    }
    let mut registry = leader("https://registry.example/");
    registry.address = Some(address("10.1.1.1"));
    let private = user.led_by(&registry);
    assert_eq!(private.judge_address(&name, address("10.0.0.1")), Ok(()));
    assert!(private.judge_address(&name, address("127.0.0.1")).is_err());
    let further = private.led_by(&leader("https://cdn.example/"));
    assert!(further.judge_address(&name, address("10.0.0.1")).is_err());
}
