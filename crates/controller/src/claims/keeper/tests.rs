//! Watches of the Leases of claims, with a scripted API server.

use futures::FutureExt as _;
use orkestra_cluster::{
    requests::Served,
    watch::{
        Informers,
        testing::{Server, list, settle, status},
    },
};
use orkestra_ground::Entropy;

use super::*;

const MINUTE: &str = "2026-03-01T10:00:00Z";

fn lease(name: &str, version: u64, spec: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"{CLAIMS_NAMESPACE}","name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{spec}}}"#
    )
}

fn leases(server: &Server) -> Watches<Lease> {
    let lease_kind = Served::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let informers = Informers::new(server.cluster(), Entropy::seeded(7));
    Watches::start(&informers, &lease_kind, [Some(CLAIMS_NAMESPACE.to_owned())])
}

async fn synced(watches: &mut Watches<Lease>) {
    let mut states = watches.states();
    while !watches.was_synced(0) {
        Watches::<Lease>::changed(&mut states).await;
    }
    while watches.changed.try_recv().is_ok() {}
}

fn names_in(watches: &Watches<Lease>) -> Vec<String> {
    let leases = watches.all(0);
    let records = leases
        .iter()
        .filter_map(|lease| Some(lease.0.as_ref()?.0.clone()));
    let mut names: Vec<String> = records.collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_is_the_claim_of_nobody_and_hides_no_other() {
    let server = Server::new();
    let deep = format!(
        r#"{{"holderIdentity":{}{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let alive = names::installation_lease("west");
    let beat = format!(r#"{{"holderIdentity":"west","renewTime":"{MINUTE}"}}"#);
    let items = [
        lease("kind-lake.water.example", 10, &deep),
        lease(
            "kind-pond.water.example",
            11,
            r#"{"holderIdentity":"west"}"#,
        ),
        lease("other", 12, "{}"),
        lease(&alive, 13, &beat),
    ];
    server.answer(200, list(20, "", &items));
    let mut watches = leases(&server);
    synced(&mut watches).await;
    assert_eq!(
        names_in(&watches),
        [
            alive.as_str(),
            "kind-lake.water.example",
            "kind-pond.water.example"
        ]
    );
    let mut book = ClaimTable::new("east".into());
    let records = watches
        .all(0)
        .iter()
        .filter_map(|one| one.0.clone())
        .collect();
    let now = MINUTE.parse().unwrap();
    book.replace(records, now);
    let standings = book.standings(now);
    let of = |kind: &str| {
        standings
            .of(&orkestra_plan::GroupKind::parse(kind))
            .cloned()
    };
    assert_eq!(of("Lake.water.example"), None);
    let pond = of("Pond.water.example");
    assert!(
        matches!(&pond, Some(super::super::ClaimState::Foreign(holder)) if holder.installation == "west"),
        "{pond:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_restored_etcd_replace_those_that_were_known() {
    let server = Server::new();
    let held = |version, holder: &str| {
        let spec = format!(r#"{{"holderIdentity":"{holder}"}}"#);
        lease("kind-pond.water.example", version, &spec)
    };
    let lost = lease(
        "kind-lake.water.example",
        40,
        r#"{"holderIdentity":"east"}"#,
    );
    server.answer(200, list(50, "", &[held(41, "east"), lost]));
    let feed = server.watch();
    let mut watches = leases(&server);
    synced(&mut watches).await;
    server.answer(200, list(30, "", &[held(20, "west")]));
    server.state(30);
    feed.break_off();
    let mut changed = Vec::new();
    for _ in 0..2 {
        let one = watches.changed.recv().await.unwrap();
        let content = watches.get(&one).and_then(|lease| lease.content.0.clone());
        let holder = content.map(|(_, record)| match record {
            LeaseContent::Claim(claim) => claim.installation,
            LeaseContent::Heartbeat(beat) => beat.installation,
        });
        changed.push((one.key.name.to_string(), holder));
    }
    changed.sort();
    assert_eq!(
        changed,
        [
            ("kind-lake.water.example".to_owned(), None),
            (
                "kind-pond.water.example".to_owned(),
                Some("west".to_owned())
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_distinguished_from_an_api_server_that_is_away() {
    for (code, reason, wanted) in [
        (403, "Forbidden", KatalogReason::Forbidden),
        (503, "ServiceUnavailable", KatalogReason::Unavailable),
    ] {
        let server = Server::new();
        server.answer(code, status(code, reason, "no leases for you"));
        let mut watches = leases(&server);
        settle().await;
        let problem = unlisted(watches.new_problem().unwrap());
        assert_eq!(problem.reason, wanted);
        assert!(
            problem
                .message
                .starts_with("cannot list leases.coordination.k8s.io in namespace orkestra-claims")
                && problem.message.contains("no leases for you"),
            "{}",
            problem.message
        );
        assert!(watches.new_problem().is_none(), "it is reported twice");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_look_at_a_watch_needs_no_change_of_it() {
    let server = Server::new();
    server.answer(200, list(5, "", &[]));
    let watches = leases(&server);
    // The initial list may be complete before `states` is called.
    let mut states = watches.states();
    let looked = Watches::<Lease>::changed(&mut states).now_or_never();
    assert_eq!(looked, Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_not_taken_from_an_installation_whose_renewal_the_watch_has_not_shown() {
    let west = names::installation_lease("west");
    let gone = |server: &Server, renewed: &str| {
        let beat = format!(r#"{{"holderIdentity":"west","renewTime":"{renewed}"}}"#);
        server.answer(200, lease(&west, 13, &beat));
        let read = serde_json::from_str(&lease(&west, 13, &beat)).unwrap();
        let Some((_, LeaseContent::Heartbeat(last))) = LeaseContent::read(&read) else {
            panic!()
        };
        Gone {
            lease: west.clone(),
            last: Some(last),
        }
    };
    let server = Server::new();
    let leases = ServedResource::leases(&server.cluster());
    let known = gone(&server, MINUTE);
    assert!(
        refuted(&leases, "kind-pond.water.example", &known)
            .await
            .is_none()
    );
    gone(&server, "2026-03-01T10:05:00Z");
    let (name, result) = refuted(&leases, "kind-pond.water.example", &known)
        .await
        .unwrap();
    assert!(name == west && matches!(result, Ok(Some(LeaseContent::Heartbeat(_)))));
    server.answer(403, status(403, "Forbidden", "no leases for you"));
    let (name, result) = refuted(&leases, "kind-pond.water.example", &known)
        .await
        .unwrap();
    assert!(name == "kind-pond.water.example" && result.is_err());
}
