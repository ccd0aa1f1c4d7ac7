//! What is indexed of Katalogs whose entries are in force, not in force, or undecided.

use orkestra_plan::Revised;
use tokio::sync::watch;

use super::*;
use crate::{GatewayOptions, Reach, desired};
use orkestra_controller::{KatalogInfo, OperatorView, Readiness};
use orkestra_operator::OperatorStatus;

/// A Katalog `katalog` of two kinds, the first of which it converts.
fn katalog(name: &str, in_force: [InForce; 2]) -> KatalogView {
    let text = format!(
        "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: {name} }}
spec:
  security: {{ webhooks: {{ admission: {{ enabled: true }} }}, conversion: {{ enabled: true }} }}
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v2, kind: Pond, plural: ponds }}
      conversion:
        storageVersion: v2
        paths:
          - {{ from: v1, to: v2, spec: {{ depth: '{{{{ .spec.deep }}}}' }} }}
          - {{ from: v2, to: v1, spec: {{ deep: '{{{{ .spec.depth }}}}' }} }}
    lake:
      apiTypes: {{ group: water.example, version: v1, kind: Lake, plural: lakes }}
      validation: {{ rules: [{{ field: spec.tier, notEquals: deep, message: too deep }}] }}
"
    );
    let reference = KatalogRef::new("default".to_owned(), name.to_owned());
    let plan = orkestra_testkit::compiled_as(&reference, &text);
    let operators = ["pond", "lake"].into_iter().zip(in_force);
    let operators = operators.map(|(entry, in_force)| OperatorView {
        wanted: Revised {
            plan: (plan.operators.iter().find(|one| one.name == entry))
                .unwrap()
                .clone(),
            revision: "r-1".into(),
        },
        status: watch::channel(OperatorStatus::default()).1,
        conflict: None,
        in_force,
        reported: None,
    });
    KatalogView {
        reference: plan.katalog.clone(),
        kind: plan.katalog.kind,
        sources: Vec::new(),
        operators: operators.collect(),
        about: KatalogInfo::default(),
        plan: Some(Arc::new(plan)),
        ready: Readiness {
            status: None,
            reason: "Unknown".into(),
            message: String::new(),
        },
        revision: None,
        disabled: Vec::new(),
        settled: true,
        decided: true,
        had_policies: false,
    }
}

fn indexed(katalogs: &[KatalogView], before: &Catalogue) -> Catalogue {
    Catalogue::new(katalogs, before, false)
}

/// Returns the Katalogs that have the operators of ponds and lakes, and the conversion of ponds.
fn holders(catalogue: &Catalogue) -> [Option<String>; 3] {
    let operator = |version, plural| {
        let found = catalogue.operator("water.example", version, plural);
        found.map(|one| one.katalog.name.clone())
    };
    let converts = catalogue.conversions().next();
    [
        operator("v2", "ponds"),
        operator("v1", "lakes"),
        converts.map(|one| one.katalog.name.clone()),
    ]
}

const YES: InForce = InForce::Yes;
const NO: InForce = InForce::No;
const UNDECIDED: InForce = InForce::Undecided;

#[test]
fn only_entries_in_force_are_indexed_whatever_the_order_of_their_names() {
    let first = katalog("aaa", [NO, NO]);
    let holder = katalog("zzz", [YES, NO]);
    let catalogue = indexed(&[first, holder], &Catalogue::default());
    assert!(catalogue.complete);
    let of = Some("zzz".to_owned());
    assert_eq!(holders(&catalogue), [of.clone(), None, of]);
    // Policies, certificates and configurations read the plans: they have the same entries.
    assert_eq!(catalogue.katalogs.len(), 1);
    assert_eq!(catalogue.katalogs[0].1.operators.len(), 1);
}

#[test]
fn an_undecided_entry_adds_nothing_and_keeps_what_it_had() {
    let unknown = katalog("aaa", [UNDECIDED, UNDECIDED]);
    let fresh = indexed(std::slice::from_ref(&unknown), &Catalogue::default());
    assert!(!fresh.complete);
    assert_eq!(holders(&fresh), [None, None, None]);

    let before = indexed(&[katalog("aaa", [YES, NO])], &Catalogue::default());
    let kept = indexed(std::slice::from_ref(&unknown), &before);
    assert!(!kept.complete);
    let of = Some("aaa".to_owned());
    assert_eq!(holders(&kept), [of.clone(), None, of]);
    // Another Katalog that is known to hold the kind replaces it.
    let replaced = indexed(&[unknown, katalog("zzz", [YES, NO])], &before);
    let of = Some("zzz".to_owned());
    assert_eq!(holders(&replaced), [of.clone(), None, of]);
}

#[test]
fn a_katalog_whose_revisions_were_not_read_keeps_its_plan_and_one_that_is_gone_does_not() {
    let before = indexed(&[katalog("aaa", [YES, YES])], &Catalogue::default());
    let mut unread = katalog("aaa", [YES, YES]);
    (unread.plan, unread.decided) = (None, false);
    unread.operators.clear();
    let kept = indexed(std::slice::from_ref(&unread), &before);
    assert!(!kept.complete);
    assert_eq!(holders(&kept)[1].as_deref(), Some("aaa"));

    unread.decided = true;
    for katalogs in [vec![unread], Vec::new()] {
        let gone = indexed(&katalogs, &kept);
        assert!(gone.complete);
        assert_eq!(holders(&gone), [None, None, None]);
        // Stored objects may need the conversion.
        assert!(gone.conversion("water.example", "Pond").is_some());
    }
}

/// A Katalog with `security`, all of whose entries are in force.
fn secured(security: &str) -> KatalogView {
    let mut view = katalog("own", [InForce::Yes; 2]);
    let text = format!(
        "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: own }}
spec:
  security: {security}
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v2, kind: Pond, plural: ponds }}
    lake:
      apiTypes: {{ group: water.example, version: v1, kind: Lake, plural: lakes }}
      validation: {{ rules: [{{ field: spec.tier, notEquals: deep, message: too deep }}] }}
"
    );
    view.plan = Some(Arc::new(orkestra_testkit::compiled_as(
        &view.reference,
        &text,
    )));
    view
}

#[test]
fn without_webhooks_only_policies_are_kept() {
    let katalogs = [secured(
        "{ webhooks: { admission: { enabled: true } }, deletionProtection: {} }",
    )];
    let catalogue = indexed(&katalogs, &Catalogue::default());
    let kinds = |options: &GatewayOptions| -> BTreeSet<String> {
        let all = desired::desired(options, &catalogue, "PEM", None);
        all.iter().map(|one| one.served.kind.to_string()).collect()
    };
    let served = crate::tests::service();
    let policies = [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    let unserved = GatewayOptions {
        reach: Reach::Unserved,
        ..served.clone()
    };
    assert_eq!(kinds(&unserved), policies.map(str::to_owned).into());
    assert!(kinds(&served).contains("ValidatingWebhookConfiguration"));
}

#[test]
fn a_host_that_a_certificate_cannot_name_is_left_out_of_it() {
    let mut view = secured("{ gatewayEndpoint: 'https://gate.example.org' }");
    let hosts = |view: &KatalogView| {
        let catalogue = indexed(std::slice::from_ref(view), &Catalogue::default());
        desired::hosts(&crate::tests::service(), &catalogue)
    };
    assert!(hosts(&view).contains(&"gate.example.org".to_owned()));
    // The plan of an earlier version, which did not check it.
    let mut plan = Arc::into_inner(view.plan.take().unwrap()).unwrap();
    plan.security.gateway_endpoint = Some("https://münchen.example".into());
    view.plan = Some(Arc::new(plan));
    let found = hosts(&view);
    assert_eq!(
        found,
        ["orkestra.system.svc", "orkestra.system.svc.cluster.local"]
    );
}
