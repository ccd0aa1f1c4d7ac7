use proptest::prelude::*;

use super::super::{SAMPLE, all};
use crate::tests::{node, text};
use crate::{Data, EvalBudget, Template};
use orkestra_object::value::{Node, Path, project};

/// Returns the object of the language reference without its Pods, which are in the sample of all notes.
fn root() -> Node {
    node!({"d": {
        "metadata": {
            "name": "web", "namespace": "prod", "uid": "u1", "resourceVersion": "77", "generation": 2,
            "labels": {"app": "web", "n": "3", "empty": ""}, "annotations": {"a/min": "2", "a/text": "x"},
            "ownerReferences": [{"kind": "App", "name": "shop"}, {"kind": "Other", "name": "o"}],
            "deletionTimestamp": "2026-01-09T08:00:00Z",
        },
        "spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "app", "image": "nginx:1.25", "env": [{"name": "MODE", "value": "fast"}, {"name": "KEY", "valueFrom": {}}],
             "ports": [{"name": "http", "containerPort": 80}, {"name": "admin", "containerPort": 81}]},
            {"name": "side", "image": "side:2", "ports": [{"containerPort": 90}]},
        ]}}},
        "status": {"readyReplicas": 2, "zero": 0, "none": [], "conditions": [
            {"type": "Available", "status": "True", "reason": "R"}, {"type": "Odd", "status": true}, "text",
        ]},
    }})
}

// Over 60 lines: a table of templates and their output.
#[test]
fn objects_show_what_they_have() {
    let cases = [
        (
            "{{ resourceName .d }}/{{ resourceNamespace .d }}",
            "web/prod",
        ),
        ("{{ ownerKind .d }} {{ ownerName .d }}", "App shop"),
        (
            "{{ getLabelInt .d \"n\" }} {{ getLabelInt .d \"app\" }} {{ getAnnotationInt .d \"a/text\" }}",
            "3 0 0",
        ),
        (
            "{{ hasLabel .d \"empty\" }} {{ hasAnnotation .d \"a/min\" }}",
            "false true",
        ),
        (
            "{{ labelMatches .d \"app\" \"web\" \"n\" \"4\" }} {{ labelMatches .d \"zz\" \"\" }}",
            "false false",
        ),
        ("{{ labelMatches .d \"app\" \"web\" \"odd\" }}", "true"),
        (
            "{{ getStatus .d \"readyReplicas\" }}|{{ getStatus .d \"conditions\" }}",
            "2|",
        ),
        (
            "{{ hasStatus .d \"zero\" }} {{ hasStatus .d \"none\" }} {{ hasStatus .d \"nope\" }}",
            "true false false",
        ),
        (
            "{{ hasCondition .d \"Available\" }} {{ hasCondition .d \"Odd\" }} {{ hasCondition .d \"\" }}",
            "true false false",
        ),
        (
            "{{ conditionReason .d \"Available\" }}{{ conditionMessage .d \"Available\" }}",
            "R",
        ),
        (
            "{{ isTerminating .d }} {{ isSynced .d }} {{ generation .d }}",
            "true false 2",
        ),
        (
            "{{ allReplicasReady .d }} {{ replicasReady .d }} {{ rolloutComplete .d }}",
            "true true false",
        ),
        (
            "{{ containerCount .d }} {{ containerPorts .d }} {{ containerPorts .d 1 }}",
            "2 80, 81, 90 90",
        ),
        (
            "{{ containerPort .d }} {{ containerPort .d 1 }} {{ containerPort .d 0 81 }} {{ containerPort .d 0 \"81\" }}",
            "80 90 true true",
        ),
        (
            "{{ hasContainerPort .d 1 80 }} {{ hasContainerPort .d 9 80 }}",
            "false false",
        ),
        (
            "{{ containerPortByName .d 0 \"admin\" }} {{ containerPortByName .d 0 \"x\" }}",
            "81 0",
        ),
        (
            "{{ containerEnv .d 0 \"MODE\" }}|{{ containerEnv .d 0 \"KEY\" }}|{{ containerEnv .d -1 \"MODE\" }}",
            "fast||",
        ),
        (
            "{{ containerImage .d 1 }} {{ containerImage .d.spec.template }}",
            "side:2 nginx:1.25",
        ),
        ("{{ .d | name }}", "web"),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source, &root()).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_no_object_has_the_zero_value_but_for_four() {
    let other = [
        ("desiredReplicas", "1"),
        ("hpaMinReplicas", "1"),
        ("jobFirstExitCode", "-1"),
        ("isSynced", "true"),
    ];
    let root = node!({"text": "x", "list": [{"metadata": {"name": "n"}}], "number": 3, "placeholder": {"_placeholder": true}});
    for note in all().filter(|note| note.reads_parts()) {
        let rest = match note.min_args {
            1 => "",
            2 => ".nope",
            _ => ".nope .nope",
        };
        for object in [".nope", ".text", ".list", ".number", ".placeholder"] {
            let source = format!("{{{{ {} {object} {rest} }}}}", note.name);
            let given = text(&source, &root).unwrap();
            match other.iter().find(|(name, _)| *name == note.name) {
                Some((_, expected)) => assert_eq!(given, *expected, "{source}"),
                None => assert!(
                    ["", "0", "false", "[]", "map[]"].contains(&&*given),
                    "{source}: {given}"
                ),
            }
        }
    }
}

#[test]
fn the_root_is_an_object_that_need_not_be_copied() {
    let sample: Node = serde_saphyr::from_str(SAMPLE).unwrap();
    let data = Data::of(&sample);
    let mut budget = EvalBudget {
        bytes: 64,
        ..EvalBudget::default()
    };
    for (source, expected) in [
        ("{{ name . }}", "koi"),
        ("{{ resourceExists . }}", "true"),
        ("{{ getLabel . \"app\" }}", "pond"),
        ("{{ (spec .).region }}", "eu_west"),
    ] {
        let given = Template::parse(source)
            .unwrap()
            .render_text(&data, &mut budget);
        assert_eq!(given.as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_not_enriched_is_read_from_the_object_where_it_is_there() {
    let root = node!({
        "hpa": {"spec": {"scaleTargetRef": {"kind": "A", "name": "a"}}, "_scaleTarget": {"metadata": {"name": "b"}}},
        "pvc": {"spec": {"volumeMode": "Filesystem"}, "_pv": {"metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "x.csi"}}}},
        "ingress": {"_loadBalancerIPs": ["1.2.3.4", "lb.x"], "_tlsSecrets": [{}, {}], "spec": {"tls": [{"secretName": "s"}]}},
        "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]},
        "slice": {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}, {"addresses": []}]},
        "v6": {"_endpoints": [{"ip": "fd00::1", "port": 80}, {"ip": "10.0.0.1"}, {}]},
        "cronJob": {"_lastJob": {"metadata": {"name": "j"}, "status": {"succeeded": 1}}},
        "pod": {"spec": {"nodeName": "n1", "containers": [{"image": "i"}]}},
    });
    let cases = [
        (
            "{{ hpaScaleTargetName .hpa }} {{ hpaScaleTargetKind .hpa }}",
            "b A",
        ),
        (
            "{{ pvcProvisioner .pvc }} {{ pvcVolumeMode .pvc }}",
            "x.csi Filesystem",
        ),
        (
            "{{ ingressLoadBalancerIPs .ingress }} {{ ingressTLSSecretCount .ingress }}",
            "1.2.3.4, lb.x 2",
        ),
        (
            "{{ endpointsReady .endpoints }} {{ endpointsReady .slice }}",
            "true false",
        ),
        ("{{ serviceEndpoints .v6 }}", "[fd00::1]:80, 10.0.0.1"),
        (
            "{{ cronJobLastJobName .cronJob }} {{ cronJobLastJobSucceeded .cronJob }}",
            "j true",
        ),
        ("{{ podNodeName .pod }} {{ containerImage .pod }}", "n1 i"),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source, &root).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_pod_is_found_by_the_number_at_the_end_of_its_name() {
    let root = node!({"s": {"_pods": [{"name": "a-7d4b"}, {"name": "a-1x"}, {"name": "a-+1"}, {"name": "a-10", "ip": "x"}, {"name": "a-1", "ready": true}]}});
    let cases = [
        ("{{ (podByOrdinal .s 10).ip }}", "x"),
        (
            "{{ podByOrdinal .s 1 }}",
            "map[name:a-1 ordinal:1 ready:true]",
        ),
        ("{{ podByOrdinal .s 2 }}{{ podByOrdinal .s -1 }}", ""),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source, &root).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn only_the_parts_that_are_declared_are_read() {
    let reads = |source| {
        let template = Template::parse(source).unwrap();
        template
            .reads()
            .iter()
            .map(Path::to_string)
            .collect::<Vec<_>>()
    };
    let cases: &[(&str, &[&str])] = &[
        (
            "{{ readyReplicas .children.deployment }}",
            &["children.deployment.status.readyReplicas"],
        ),
        ("{{ name . }}", &["metadata.name"]),
        (
            "{{ getLabel .a \"x.y/z\" }}",
            &["a.metadata.labels[\"x.y/z\"]"],
        ),
        ("{{ \"x\" | getStatus .a }}", &["a.status"]),
        ("{{ getLabel .a .b }}", &["a.metadata.labels", "b"]),
        (
            "{{ $d := .d }}{{ with $d }}{{ phase . }}{{ end }}",
            &["d", "d.status.phase"],
        ),
        ("{{ .d | phase }}", &["d"]),
        ("{{ name (get .d \"x\") }}", &["d.x.metadata.name"]),
        ("{{ range .l }}{{ name . }}{{ end }}", &["l"]),
        ("{{ resourceExists .d }}", &["d._placeholder"]),
    ];
    for (source, expected) in cases {
        assert_eq!(reads(*source), *expected, "{source}");
    }
}

/// Generates objects that have some of the parts that notes read, and values of other types in place of the other parts.
fn object() -> impl Strategy<Value = Node> {
    let sample: Node = serde_saphyr::from_str(SAMPLE).unwrap();
    let children = sample.get("children").and_then(Node::as_map).unwrap();
    let objects: Vec<Node> = children.iter().map(|(_, node)| node.clone()).collect();
    let paths: Vec<&str> = all().flat_map(|note| note.reads.iter().copied()).collect();
    let odd = prop::sample::select(vec![
        Node::Null,
        Node::from("x"),
        Node::Int(7),
        Node::from(""),
        Node::from(-1.5),
        node!([1, null, {"name": 3}]),
        node!({"0": {"ip": "x"}}),
        node!([]),
        node!({}),
    ]);
    let changes = prop::collection::vec((prop::sample::select(paths), odd), 0..4);
    (prop::sample::select(objects), changes).prop_map(|(mut object, changes)| {
        for (path, node) in changes {
            orkestra_object::value::set(&mut object, &Path::parse(path).unwrap(), node);
        }
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_a_note_declares_is_all_that_matters(object in object()) {
        let root = Node::object([("d", object)]);
        for note in all().filter(|note| note.reads_parts()) {
            let rest = match note.min_args {
                1 => "",
                2 => "\"Available\"",
                _ => "0 \"http\"",
            };
            let rest = if note.name == "podByOrdinal" { "1" } else { rest };
            let rest = if note.name == "hasContainerPort" { "0 8080" } else { rest };
            let rest = if note.name == "labelMatches" { "\"app\" \"pump\"" } else { rest };
            let source = format!("{{{{ {} .d {rest} }}}}", note.name);
            let template = Template::parse(&source).unwrap();
            let on = |root: &Node| template.render_text(&Data::of(root), &mut EvalBudget::default());
            let part = project(&root, template.reads());
            prop_assert_eq!(on(&part), on(&root), "{}", source);
            prop_assert!(on(&root).is_ok(), "{}", source);
        }
    }
}
