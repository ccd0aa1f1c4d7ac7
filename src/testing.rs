//! What unit tests share.

use std::path::Path;

use orkestra_core::{
    plan::{
        ChildPlan, Coerce, KatalogRef, Leaf, Mode, NameRule, OnFalse, OperatorPlan, Reads,
        ResourceType, StatusPlan, Tree,
    },
    template::Template,
};

/// Compares a committed document with what it is generated from; `UPDATE=1` writes it.
pub(crate) fn assert_document(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, expected).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == expected,
        "{path} is stale; run the test again with UPDATE=1"
    );
}

/// The operator of `Pond.v1.water.example`, with a Deployment, a Secret and an Ingress beside each pond.
pub(crate) fn operator_plan(name: &str) -> OperatorPlan {
    let kind = |group: &str, version: &str, kind: &str, plural: &str| ResourceType {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: Some(plural.into()),
        namespaced: Some(true),
    };
    OperatorPlan {
        katalog: KatalogRef {
            namespace: "marsh".to_owned(),
            name: "reeds".to_owned(),
        },
        name: name.to_owned(),
        resource: kind("water.example", "v1", "Pond", "ponds"),
        workers: 3,
        resync: std::time::Duration::from_secs(90),
        finalizer: true,
        imports: Box::default(),
        children: Box::new([
            child(kind("apps", "v1", "Deployment", "deployments")),
            child(kind("", "v1", "Secret", "secrets")),
            child(kind("networking.k8s.io", "v1", "Ingress", "ingresses")),
        ]),
        status: StatusPlan {
            conditions: true,
            fields: Box::default(),
        },
        reads: Reads::default(),
        children_names: Box::default(),
        hash: String::new(),
    }
}

fn child(kind: ResourceType) -> ChildPlan {
    let name = Leaf {
        template: Template::parse("{{ .metadata.name }}").unwrap(),
        coerce: Coerce::Text,
        path: "name".into(),
    };
    ChildPlan {
        path: "spec".into(),
        import: None,
        kind,
        mode: Mode::Reconciled,
        when: Box::default(),
        on_false: OnFalse::Delete,
        name,
        name_rule: NameRule::Subdomain,
        namespace: None,
        body: Tree::Map(Box::default()),
        force_conflict: false,
        adopt: false,
    }
}
