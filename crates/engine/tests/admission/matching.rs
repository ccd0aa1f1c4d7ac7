//! What policies match, and the permissions that count for what custom resources decide.

use orkestra_engine::admission::{Permission, derived_permissions, policies, protection};
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{
    cel::Request,
    plan,
    policies::{options, refused, secured},
};

#[test]
fn what_custom_resources_decide_counts_as_every_permission() {
    let with = |children: &str| {
        let entry = format!(
            "      allowedNamespaces: [team]\n      operatorBox: {{ onReconcile: {{ {children} }} }}"
        );
        let words = derived_permissions(&secured("{}", &entry));
        let words = words.iter().map(Permission::to_string);
        words
            .filter(|word| word.starts_with("every permission"))
            .collect::<Vec<_>>()
    };
    let role = |rules: &str| format!("roles: [{{ name: r, rules: [{rules}] }}]");
    let literal = "{ apiGroups: [''], resources: [pods], verbs: [get] }";
    let template = "{ apiGroups: ['{{ .spec.text }}'], resources: [pods], verbs: [get] }";
    let team = ["every permission in namespace team"];
    let none: [&str; 0] = [];
    assert_eq!(with(&role(literal)), none);
    assert_eq!(with(&role(template)), team);
    assert_eq!(with(&role(&format!("{literal}, {template}"))), team);
    let bind = |name: &str| {
        format!(
            "{}, roleBindings: [{{ name: b, roleRef: {{ name: {name} }}, subjects: [{{ kind: User, name: u }}] }}]",
            role(literal)
        )
    };
    assert_eq!(with(&bind("r")), none);
    assert_eq!(with(&bind("elsewhere")), none);
    assert_eq!(with(&bind("'{{ .spec.text }}'")), team);
    let custom = |object: &str| format!("custom: [{{ {object} }}]");
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    let all = ["every permission in all namespaces"];
    for object in [
        format!(
            "{rbac}, kind: ClusterRole, metadata: {{ name: c }}, rules: [{{ nonResourceURLs: ['*'], verbs: [get] }}]"
        ),
        format!(
            "{rbac}, kind: ClusterRole, metadata: {{ name: c }}, aggregationRule: {{ clusterRoleSelectors: [] }}, rules: []"
        ),
    ] {
        assert_eq!(with(&custom(&object)), all, "{object}");
    }
}

#[test]
fn orkestra_is_exempt_for_a_purpose_and_not_as_such() {
    let plan = secured(
        "{ webhooks: { admission: { enabled: true } }, deletionProtection: {} }",
        "      validation: { rules: [{ field: spec.text, notEquals: bad, message: 'bad text' }] }",
    );
    let options = options();
    let user = &*options.users[0];
    let (rules, protection) = (policies(&plan, &options), protection(&plan, &options));
    let pond = |generation: u64| {
        json!({
            "metadata": { "name": "a", "namespace": "b", "generation": generation },
            "spec": { "text": "bad" },
        })
    };
    let is_judged = |operation: &str, (old, new): (&Value, &Value), manager: &str| {
        let request = Request {
            operation,
            object: new,
            old,
            user,
            options: &json!({ "fieldManager": manager }),
        };
        !refused(&rules, "deny.", &request).is_empty()
    };
    let (same, other) = (pond(1), pond(2));
    let metadata = "orkestra-metadata/ponds.water.example";
    // Its own metadata and normalized fields.
    assert!(!is_judged("UPDATE", (&same, &same), metadata));
    assert!(!is_judged("UPDATE", (&same, &same), "orkestra"));
    assert!(!is_judged(
        "UPDATE",
        (&same, &other),
        "orkestra-normalize/ponds.water.example"
    ));
    // Anything else: a child of another operator, another field, a person with the same identity.
    assert!(is_judged("UPDATE", (&same, &other), metadata));
    assert!(is_judged("UPDATE", (&same, &other), "kubectl-edit"));
    for manager in [metadata, "orkestra/lakes.water.example"] {
        assert!(is_judged("CREATE", (&Value::Null, &same), manager));
        assert!(is_judged("UPDATE", (&same, &other), manager));
    }
    let is_kept = |options: &Value, user: &str| {
        let request = Request {
            operation: "DELETE",
            object: &Value::Null,
            old: &same,
            user,
            options,
        };
        !refused(&protection, "delete-protection.", &request).is_empty()
    };
    let one = json!({ "preconditions": { "uid": "u" } });
    assert!(!is_kept(&one, user));
    assert!(is_kept(&json!({}), user));
    assert!(is_kept(&one, "somebody"));
}

#[test]
fn policies_of_a_built_in_kind_match_only_what_is_operated_and_never_fail_closed() {
    let text = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: apps }
spec:
  security:
    webhooks: { admission: { enabled: true }, failurePolicy: Fail }
    deletionProtection: { failurePolicy: Fail }
    namespaceProtection: { restrictedNamespaces: [closed], failurePolicy: Fail }
  crds:
    app:
      apiTypes: { kind: Deployment, group: apps, version: v1 }
      labelSelector: { team: water }
      validation: { rules: [{ field: spec.replicas, max: 5, message: 'too many' }] }
      operatorBox: { onReconcile: { configMaps: [{ name: a, data: { b: c } }] } }
";
    let plan = plan(text, &[]);
    let options = options();
    let nodes = [policies(&plan, &options), protection(&plan, &options)].concat();
    for policy in nodes.iter().map(Node::to_json) {
        if policy["kind"] == "ValidatingAdmissionPolicy" {
            assert_eq!(policy["spec"]["failurePolicy"], "Ignore", "{policy:#}");
        }
    }
    let app = |namespace: &str, labels: Value| json!({ "metadata": { "name": "a", "namespace": namespace, "labels": labels }, "spec": { "replicas": 9 } });
    let operated = json!({ "team": "water" });
    let child = json!({ "team": "water", "orkestra.orkspace.io/owner-uid": "u" });
    let judged = |object: &Value, deletes: bool| {
        let request = Request {
            operation: if deletes { "DELETE" } else { "CREATE" },
            object: if deletes { &Value::Null } else { object },
            old: if deletes { object } else { &Value::Null },
            user: "somebody",
            options: &Value::Null,
        };
        !refused(&nodes, "", &request).is_empty()
    };
    for deletes in [true, false] {
        assert!(judged(&app("shop", operated.clone()), deletes));
        for (namespace, labels) in [
            ("shop", json!({ "team": "other" })),
            ("shop", json!({})),
            ("shop", child.clone()),
            ("kube-system", operated.clone()),
            ("orkestra-system", operated.clone()),
        ] {
            let object = app(namespace, labels);
            assert!(!judged(&object, deletes), "{deletes} {object}");
        }
    }
    // Namespace protection is about what would be operated elsewhere.
    assert!(judged(&app("closed", operated), false));
    assert!(!judged(&app("closed", json!({})), false));
}
