//! Generated Secrets: they are created once and renewed when they are due; and their certificates.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_engine::reconcile::{reason::Reason, step::Intent};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    report::at,
    world::{World, key, words},
};

const LOGIN: &str = "onCreate:
  secrets:
    - name: login
      once: true
      data: { user: '{{ .spec.user }}', password: '{{ randomAlphanumeric 16 }}' }";

/// A login whose password changes every hour.
const HOURLY: &str = "onCreate:
  secrets:
    - name: login
      rotateAfter: 1h
      data: { user: '{{ .spec.user }}', password: '{{ randomAlphanumeric 16 }}' }";

const TLS: &str = "onReconcile:
  secrets:
    - name: web
      tls: { dnsNames: ['{{ .spec.host }}', '*.example.org'], validFor: 3d }";

fn world(declared: &str, spec: &Value) -> World {
    let mut world = World::new(&operator(declared), pond(spec, &json!({})));
    world.now = at(0);
    world
}

/// Returns the text under a key of a Secret.
fn text(world: &World, name: &str, part: &str) -> String {
    let object = world.objects[&key("Secret", name)].object();
    let encoded = object["data"][part].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

fn annotation(world: &World, name: &str) -> Value {
    let object = world.objects[&key("Secret", "login")].object();
    object["metadata"]["annotations"][format!("orkestra.orkspace.io/{name}")].clone()
}

#[test]
fn a_secret_that_exists_is_not_even_rendered() {
    let mut world = world(LOGIN, &json!({ "user": "ann" }));
    assert_eq!(world.settle().cycle.failures, []);
    let password = text(&world, "login", "password");
    assert_eq!(password.len(), 16);
    world.cr["spec"]["user"] = json!({ "not": "text" });
    let pass = world.pass();
    assert_eq!((pass.cycle.failures, pass.written), (vec![], vec![]));
    assert_eq!(pass.cycle.wake, None);
    assert_eq!(text(&world, "login", "password"), password);
    assert_eq!(text(&world, "login", "user"), "ann");
}

#[test]
fn a_secret_that_somebody_deletes_is_made_again_with_other_values() {
    let mut world = world(LOGIN, &json!({ "user": "ann" }));
    world.settle();
    let before = text(&world, "login", "password");
    world.objects.clear();
    let pass = world.settle();
    assert_ne!(text(&world, "login", "password"), before);
    assert!(pass.cycle.inventory.made.is_empty());
}

#[test]
fn values_that_are_too_old_are_made_again_in_place_at_their_moment() {
    let mut world = world(HOURLY, &json!({ "user": "ann" }));
    let first = world.pass();
    assert_eq!(first.cycle.wake, Some(at(3600)));
    assert_eq!(annotation(&world, "generated-at"), at(0).to_string());
    let before = text(&world, "login", "password");
    for moment in [1, 3599] {
        world.now = at(moment);
        let pass = world.pass();
        assert_eq!((pass.written, pass.cycle.wake), (vec![], Some(at(3600))));
    }
    world.now = at(3600);
    world.cr["spec"]["user"] = json!("eve");
    let due = world.pass();
    assert_eq!(words(&due.cycle), ["apply Secret east/login"]);
    assert_eq!(due.cycle.wake, Some(at(7200)));
    let after = text(&world, "login", "password");
    assert_ne!(after, before);
    assert_eq!(text(&world, "login", "user"), "eve");
    assert_eq!(annotation(&world, "generated-at"), at(3600).to_string());
    let next = world.pass();
    assert_eq!((next.written, next.cycle.wake), (vec![], Some(at(7200))));
    assert_eq!(text(&world, "login", "password"), after);
}

#[test]
fn values_of_unknown_age_are_as_old_as_their_secret() {
    let mut world = world(HOURLY, &json!({ "user": "ann" }));
    world.pass();
    let record = world.record_of(&key("Secret", "login"));
    let made = record.created().unwrap();
    world.stored("Secret", "login").update("kubectl", |leaves| {
        leaves.retain(|trail, _| !format!("{trail:?}").contains("generated-at"));
    });
    world.now = made;
    let pass = world.pass();
    assert_eq!(pass.written, []);
    let due = made
        .checked_add(jiff::SignedDuration::from_hours(1))
        .unwrap();
    assert_eq!(pass.cycle.wake, Some(due));
}

#[test]
fn a_certificate_is_made_and_stays_until_two_thirds_of_its_life() {
    let mut world = world(TLS, &json!({ "host": "web.example.org" }));
    let first = world.settle();
    assert_eq!(first.cycle.failures, []);
    let object = world.objects[&key("Secret", "web")].object();
    assert_eq!(object["type"], "kubernetes.io/tls");
    let days = |days: i64| at(days * 86_400);
    let expected = format!(
        "tls.crt for web.example.org,*.example.org until {}",
        days(3)
    );
    assert_eq!(text(&world, "web", "tls.crt"), expected);
    assert!(text(&world, "web", "tls.key").starts_with("tls.key"));
    assert!(text(&world, "web", "ca.crt").starts_with("ca.crt"));
    assert_eq!(first.cycle.wake, Some(days(2)));
    world.now = days(2);
    let renewed = world.pass();
    assert_eq!(words(&renewed.cycle), ["apply Secret east/web"]);
    assert!(text(&world, "web", "tls.crt").ends_with(&days(5).to_string()));
    assert_eq!(world.pass().written, []);
}

#[test]
fn a_certificate_follows_what_it_is_for_and_is_repaired() {
    let mut world = world(TLS, &json!({ "host": "web.example.org" }));
    world.settle();
    world.cr["spec"]["host"] = json!("shop.example.org");
    world.now = at(60);
    assert_eq!(world.pass().written.len(), 1);
    assert!(text(&world, "web", "tls.crt").contains("shop.example.org"));
    assert_eq!(world.pass().written, []);
    world.stored("Secret", "web").update("kubectl", |leaves| {
        for (trail, value) in leaves.iter_mut() {
            if format!("{trail:?}").contains("tls.key") {
                *value = json!("bm9uZQ==");
            }
        }
    });
    assert_eq!(world.pass().written.len(), 1);
    assert!(text(&world, "web", "tls.key").starts_with("tls.key"));
    assert_eq!(world.pass().written, []);
}

#[test]
fn a_certificate_that_is_made_once_follows_nothing_but_time() {
    let once = TLS.replace("tls:", "once: true\n      tls:");
    let mut world = world(&once, &json!({ "host": "web.example.org" }));
    world.settle();
    world.cr["spec"]["host"] = json!("shop.example.org");
    let pass = world.pass();
    assert_eq!(pass.written, []);
    assert_eq!(pass.cycle.wake, Some(at(2 * 86_400)));
}

#[test]
fn what_is_no_host_is_reported_and_leaves_the_certificate_there_is() {
    let mut world = world(TLS, &json!({ "host": "web.example.org" }));
    world.settle();
    world.cr["spec"]["host"] = json!("no host");
    let pass = world.pass();
    assert_eq!(pass.written, []);
    let [failure] = &*pass.cycle.failures else {
        panic!("{:?}", pass.cycle.failures)
    };
    assert_eq!(failure.reason, Reason::InvalidName);
    assert!(failure.message.contains("not a valid host"), "{failure:?}");
    assert!(matches!(&pass.cycle.intents[..], [Intent::Keep(_)]));
}

const INGRESS: &str = "onReconcile:
  ingresses:
    - name: '{{ .item }}'
      forEach: { field: spec.sites }
      when: [{ field: spec.open, equals: true }]
      host: '{{ .item }}.example.org'
      serviceName: web
      servicePort: 80
      tls: { create: true }";

#[test]
fn an_ingress_has_its_secret_made_before_it_kept_and_removed_with_it() {
    let spec = json!({ "sites": ["shop", "blog"], "open": true });
    let mut world = world(INGRESS, &spec);
    let first = world.pass();
    assert_eq!(first.cycle.failures, []);
    assert_eq!(
        words(&first.cycle),
        [
            "create Secret east/shop-tls",
            "create Secret east/blog-tls",
            "apply Ingress.networking.k8s.io east/shop",
            "apply Ingress.networking.k8s.io east/blog",
        ]
    );
    for site in ["shop", "blog"] {
        let ingress = world.objects[&key("Ingress.networking.k8s.io", site)].object();
        let wanted = json!([{ "hosts": [format!("{site}.example.org")], "secretName": format!("{site}-tls") }]);
        assert_eq!(ingress["spec"]["tls"], wanted);
        let secret = format!("{site}-tls");
        let object = world.objects[&key("Secret", &secret)].object();
        assert_eq!(object["type"], "kubernetes.io/tls");
        let expected = format!("tls.crt for {site}.example.org until {}", at(365 * 86_400));
        assert_eq!(text(&world, &secret, "tls.crt"), expected);
    }
    assert_eq!(world.pass().written, []);
    // Two thirds of the certificate's life, which is one year.
    world.now = at(365 * 86_400 * 2 / 3);
    assert_eq!(world.pass().written.len(), 2);
    assert_eq!(world.pass().written, []);
    world.cr["spec"]["sites"] = json!(["blog"]);
    assert_eq!(world.pass().written.len(), 2);
    world.cr["spec"]["open"] = json!(false);
    assert_eq!(world.pass().written.len(), 2);
    assert!(world.objects.is_empty());
}
