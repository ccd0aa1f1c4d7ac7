//! The configuration of webhooks: their client configuration, the hosts of the certificate, and the namespaces.

mod overload;

use std::time::Duration;

use super::{webhooks::client_config, *};
use orkestra_controller::Namespaces;

pub(crate) fn options(reach: Reach) -> GatewayOptions {
    GatewayOptions {
        name: NAME.to_owned(),
        installation: "system/orkestra".to_owned(),
        namespace: "system".to_owned(),
        secret: SECRET.to_owned(),
        reach,
        conversion: false,
        author_check: AuthorCheck::Enforce,
        life: Duration::from_hours(1),
        files: None,
        katalogs: Namespaces::All,
        callers: Callers::default(),
        user: "system:serviceaccount:system:it's".to_owned(),
        ephemeral: false,
    }
}

pub(crate) fn service() -> GatewayOptions {
    options(Reach::Service {
        name: "orkestra".to_owned(),
    })
}

#[test]
fn without_katalogs_only_our_own_kinds_are_reviewed_in_all_namespaces_and_whoever_writes_them() {
    let all = desired::desired(&service(), &Catalogue::default(), "PEM", None);
    assert_eq!(all.len(), 1);
    let body = all[0].body.to_json();
    assert_eq!(body["kind"], "ValidatingWebhookConfiguration");
    let webhook = &body["webhooks"][0];
    assert_eq!(webhook["sideEffects"], "None");
    assert!(webhook["timeoutSeconds"].as_u64().unwrap() <= 3);
    // No namespace and no identity is exempt.
    assert_eq!(webhook["namespaceSelector"], serde_json::Value::Null);
    let conditions = webhook["matchConditions"].to_string();
    assert!(!conditions.contains("userInfo"), "{conditions}");
}

#[test]
fn a_url_of_the_process_wins_over_services_and_the_certificate_names_every_host() {
    let reached = |options: &GatewayOptions, endpoint| {
        let config = client_config(options, Some("other"), endpoint, "/x", "PEM");
        (config["url"].clone(), config["service"]["name"].clone())
    };
    let url = options(Reach::Url("https://127.0.0.1:9443/".to_owned()));
    let (at, none) = reached(&url, Some("https://gate.example.org"));
    assert_eq!(
        (at, none),
        ("https://127.0.0.1:9443/x".into(), serde_json::Value::Null)
    );
    let (at, _) = reached(&service(), Some("https://gate.example.org"));
    assert_eq!(at, "https://gate.example.org/x");
    assert_eq!(reached(&service(), None).1, "other");

    let none = Catalogue::default();
    assert_eq!(desired::hosts(&url, &none), ["127.0.0.1"]);
    assert_eq!(
        desired::hosts(&service(), &none),
        ["orkestra.system.svc", "orkestra.system.svc.cluster.local"]
    );
    let v6 = options(Reach::Url("https://[::1]:1".to_owned()));
    assert_eq!(desired::hosts(&v6, &none), ["::1"]);
}
