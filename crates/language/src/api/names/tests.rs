use super::*;

#[test]
fn field_managers_are_cut_at_128_bytes_and_stay_apart() {
    assert_eq!(
        field_manager("ponds", "water.example"),
        "orkestra/ponds.water.example"
    );
    assert_eq!(field_manager("pods", ""), "orkestra/pods");
    let one = field_manager("ponds", &format!("{}a.example", "x".repeat(130)));
    let other = field_manager("ponds", &format!("{}b.example", "x".repeat(130)));
    assert_eq!((one.len(), other.len()), (128, 128));
    assert_ne!(one, other);
}

#[test]
fn leases_of_claims_have_legal_names() {
    assert_eq!(
        claim_lease("water.example", "Pond"),
        "kind-pond.water.example"
    );
    assert_eq!(claim_lease("", "ConfigMap"), "kind-configmap");
    let long = claim_lease(&format!("{}.example", "x".repeat(240)), "Pond");
    for name in [&long, &installation_lease("shop/orkestra")] {
        assert!(check_dns1123_subdomain(name).is_ok(), "{name}");
    }
}

#[test]
fn label_values_are_made_legal_and_stay_apart() {
    assert_eq!(label_value("pond-1.a_B"), "pond-1.a_B");
    assert_eq!(label_value(""), "");
    for text in [
        "a b",
        "-a-",
        "\u{e9}t\u{e9}",
        "/",
        "a/",
        &"y".repeat(64),
        &"\u{1f980}".repeat(40),
    ] {
        let value = label_value(text);
        assert!(check_label_value(&value).is_ok(), "{text}: {value}");
    }
    assert_ne!(label_value(&"y".repeat(64)), label_value(&"y".repeat(65)));
    assert_ne!(label_value("a b"), label_value("a/b"));
}

#[test]
fn names_are_checked_as_kubernetes_does() {
    for good in ["a", "0", "a-b.c-d", &"z".repeat(253)] {
        assert!(check_dns1123_subdomain(good).is_ok(), "{good}");
    }
    for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", &"z".repeat(254)] {
        assert!(check_dns1123_subdomain(bad).is_err(), "{bad}");
    }
    assert!(check_dns1035_label("a-0").is_ok());
    for bad in ["", "0a", "a.b", "a-", &"z".repeat(64)] {
        assert!(check_dns1035_label(bad).is_err(), "{bad}");
    }
    for good in ["a", "example.org/a_B.c", "A"] {
        assert!(check_label_key(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "/a",
        "a/",
        "a/b/c",
        "Example.org/a",
        "-a",
        &"k".repeat(64),
    ] {
        assert!(check_label_key(bad).is_err(), "{bad}");
    }
}
