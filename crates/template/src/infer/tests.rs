use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Data, Entropy, EvalBudget, FunctionSource, Functions, Template, notes};
use orkestra_language::schema::{BuiltIn, Kinds, Schema, Type};
use orkestra_object::value::Node;

const CRD: &str = r#"{"type": "object", "properties": {
    "spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "image": {"type": "string"}, "ratio": {"type": "number"}, "ha": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["dev", "prod"]}, "level": {"type": "integer", "enum": [1, 2]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "number": {"type": "integer"}}}},
        "raw": {"x-kubernetes-preserve-unknown-fields": true}
    }},
    "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
}}"#;

/// Returns the type of a template and the findings as lines of `byte: severity: message (hint)`.
fn infer(source: &str) -> (String, Vec<String>) {
    let node: Node = serde_json::from_str(CRD).unwrap();
    let built_in = BuiltIn::new();
    let root = Schema::of_objects(&node, Some(&built_in));
    let names = ["metadata", "apiVersion", "kind", "spec", "status"];
    let names = names.map(|name| (name.to_owned(), Type::of_below(root.field(name))));
    let template = Template::parse(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
    let inference = template.infer(&Type::of_names(names), false);
    let reported = inference.findings.iter().map(|(severity, found)| {
        let hint = found.hint.as_deref().unwrap_or("-");
        format!("{}: {severity}: {} ({hint})", found.offset, found.message)
    });
    (inference.gives.to_string(), reported.collect())
}

#[test]
fn types_follow_paths_notes_variables_and_loops() {
    for (source, expected) in [
        ("{{ .spec.replicas }}", "integer"),
        ("{{ .spec.mode }}", "one of dev, prod"),
        ("{{ .spec.labels }}", "map of text"),
        ("{{ .spec.ports }}", "list of object"),
        ("{{ .spec.raw.x }}", "anything"),
        ("{{ .unknown.x }}", "anything"),
        ("{{ .metadata.generation }}", "integer"),
        ("{{ . }}", "map"),
        ("x{{ .spec.replicas }}", "text"),
        ("{{ .spec.image | toUpper }}", "text"),
        ("{{ .spec.replicas | default 3 }}", "integer"),
        (
            "{{ .spec.replicas | default \"three\" }}",
            "integer or text",
        ),
        ("{{ ternary .spec.ha 3 .spec.ratio }}", "number"),
        ("{{ or .spec.replicas .spec.ratio }}", "number"),
        ("{{ eq .spec.replicas 3 }}", "boolean"),
        ("{{ index .spec.ports 0 }}", "object"),
        ("{{ (index .spec.ports 0).number }}", "integer"),
        ("{{ get .spec \"labels\" \"a\" }}", "text"),
        ("{{ index .spec.labels .spec.image }}", "text"),
        ("{{ (listGet .spec.ports 0).number }}", "integer"),
        ("{{ mapGet .spec.labels .spec.image }}", "text"),
        ("{{ coalesce .spec.replicas .spec.ratio 3 }}", "number"),
        ("{{ len .spec.ports }}", "integer"),
        ("{{ split .spec.image \"/\" }}", "list"),
    ] {
        assert_eq!(infer(source), (expected.to_owned(), vec![]), "{source}");
    }
}

#[test]
fn each_expression_is_listed_with_its_type() {
    let source = "{{ range $i, $p := .spec.ports }}{{ $i }}{{ with $p.number }}{{ . }}{{- end }}{{ end }}{{ $x := \"}}\" }}{{ $x -}}";
    let schema: Node = serde_json::from_str(CRD).unwrap();
    let spec = Schema::of_objects(&schema, None).field("spec");
    let root = Type::of_names([("spec".to_owned(), Type::of_below(spec))]);
    let inference = Template::parse(source).unwrap().infer(&root, true);
    let reported: Vec<String> = inference
        .expressions
        .iter()
        .map(|one| format!("{} {}: {}", one.offset, one.source, one.type_name))
        .collect();
    assert_eq!(
        reported,
        [
            "19 .spec.ports: list of object",
            "36 $i: integer",
            "49 $p.number: integer",
            "64 .: integer",
            "96 \"}}\": text",
            "106 $x: text",
        ]
    );
}

// Over 60 lines: a table of templates and their findings.
#[test]
fn what_cannot_be_is_reported_with_its_place() {
    for (source, expected) in [
        (
            "{{ .spec.replcas }}",
            "9: error: the schema has no `replcas` here (did you mean `replicas`?)",
        ),
        (
            "{{ if .status.fase }}x{{ end }}",
            "14: error: the schema has no `fase` here (known fields: `phase`)",
        ),
        (
            "{{ .metadata.nam }}",
            "13: error: the schema has no `nam` here (did you mean `name`?)",
        ),
        (
            "{{ .spec.replicas.x }}",
            "18: error: there is no `x` in a value of type integer (-)",
        ),
        (
            "{{ range .spec.ports }}{{ .nmber }}{{ end }}",
            "27: error: the schema has no `nmber` here (did you mean `number`?)",
        ),
        (
            "{{ $p := index .spec.ports 0 }}{{ $p.nummer }}",
            "37: error: the schema has no `nummer` here (did you mean `number`?)",
        ),
        (
            "{{ with .spec }}{{ $.spec.imag }}{{ end }}",
            "26: error: the schema has no `imag` here (did you mean `image`?)",
        ),
        (
            "{{ get .spec \"imag\" }}",
            "13: error: the schema has no `imag` here (did you mean `image`?)",
        ),
        (
            "{{ mapGet .spec \"imag\" }}",
            "16: error: the schema has no `imag` here (did you mean `image`?)",
        ),
        (
            "{{ .spec.ports.name }}",
            "15: error: there is no `name` in a value of type list of object (-)",
        ),
        (
            "{{ toUpper .spec.replicas }}",
            "11: error: `toUpper` expects text as argument 1, not an integer (-)",
        ),
        (
            "{{ .spec.ha | join .spec.ports }}",
            "3: error: `join` expects text as argument 2, not a boolean (-)",
        ),
        (
            "{{ eq .spec.replicas \"3\" }}",
            "21: warning: `eq` compares an integer with text (write 3 without quotes)",
        ),
        (
            "{{ if eq .spec.mode \"prd\" }}{{ end }}",
            "20: error: `prd` is none of dev, prod (did you mean `prod`?)",
        ),
        (
            "{{ ne \"stage\" .spec.mode }}",
            "6: error: `stage` is none of dev, prod (-)",
        ),
        (
            "{{ eq .spec.level 3 }}",
            "18: error: `3` is none of 1, 2 (-)",
        ),
    ] {
        let (_, found) = infer(source);
        assert_eq!(found, [expected], "{source}");
    }
}

#[test]
fn what_is_not_known_to_be_wrong_is_not_reported() {
    for source in [
        "{{ .spec.raw.any.thing }}{{ .other.x.y }}{{ .spec.labels.whatever }}",
        "{{ toUpper .spec.raw.x }}{{ toUpper .nothing }}{{ toUpper nil }}",
        "{{ eq .spec.mode \"\" }}{{ eq .spec.mode \"dev\" \"prod\" }}{{ eq .spec.raw.n \"3\" }}",
        "{{ eq .spec.replicas .spec.ratio 3 }}{{ eq nil .spec.replicas }}",
        "{{ $n := \"\" }}{{ range .spec.ports }}{{ $n = .number }}{{ end }}{{ eq $n 3 }}",
        "{{ $n := 1 }}{{ range .spec.ports }}{{ toUpper $n }}{{ $n = .name }}{{ end }}",
        "{{ $m := .spec }}{{ if .spec.ha }}{{ $m = .status }}{{ end }}{{ $m.phase }}{{ $m.image }}",
        "{{ (default .spec .spec.raw).x }}",
        "{{ eq (default \"none\" .spec.mode) \"none\" }}",
        "{{ range 3 }}{{ . }}{{ end }}{{ range $k, $v := .spec.labels }}{{ toUpper $k }}{{ toUpper $v }}{{ end }}",
        "{{ index .spec.labels \"a.b/c\" }}{{ index .metadata.annotations \"x\" }}",
    ] {
        assert_eq!(infer(source).1, Vec::<String>::new(), "{source}");
    }
}

#[test]
fn notes_of_a_user_have_the_types_that_they_give() {
    let deep: Vec<(String, String)> = (0..40)
        .map(|level| {
            let below = level + 1;
            (
                format!("n{level}"),
                format!("{{{{ add n{below} n{below} }}}}"),
            )
        })
        .collect();
    let mut declared: Vec<FunctionSource<'_>> = deep
        .iter()
        .map(|(name, expression)| FunctionSource {
            name,
            expression: if name == "n39" {
                "{{ .spec.replicas }}"
            } else {
                expression
            },
            shadow: false,
        })
        .collect();
    declared.push(FunctionSource {
        name: "tier",
        expression: "{{ .spec.nothing }}x",
        shadow: false,
    });
    declared.push(FunctionSource {
        name: "yes",
        expression: "{{ .spec.ha }}",
        shadow: false,
    });
    let expressions: Vec<String> = declared
        .iter()
        .map(|one| one.expression.replace("add", "or"))
        .collect();
    for (one, expression) in declared.iter_mut().zip(&expressions) {
        one.expression = expression;
    }
    let (functions, problems) = Functions::compile(&declared);
    assert!(problems.is_empty(), "{problems:?}");
    let node: Node = serde_json::from_str(CRD).unwrap();
    let spec = Schema::of_objects(&node, None).field("spec");
    let root = Type::of_names([("spec".to_owned(), Type::of_below(spec))]);
    for (source, expected) in [
        ("{{ n0 }}", "text"),
        ("{{ tier }}", "text"),
        ("{{ yes }}", "boolean or text"),
    ] {
        let inference = Template::parse_with(source, &functions)
            .unwrap()
            .infer(&root, false);
        assert_eq!(inference.gives.to_string(), expected);
        assert!(inference.findings.is_empty(), "{:?}", inference.findings);
    }
}

/// Generates a spec for the CRD; each field has a value or null.
fn any_spec() -> impl Strategy<Value = Value> {
    fn maybe(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        prop_oneof![1 => Just(Value::Null), 3 => value]
    }
    let text = || maybe("[a-z0-9./ ]{0,6}|true|7|2.5".prop_map(Value::from));
    let int = || maybe((-3i64..4).prop_map(Value::from));
    let ports = prop::collection::vec((text(), int()), 0..3).prop_map(|ports| {
        let port = |(name, number)| json!({ "name": name, "number": number });
        ports.into_iter().map(port).collect::<Value>()
    });
    let labels = prop::collection::btree_map("[a-c]", text(), 0..3)
        .prop_map(|labels| Value::Object(labels.into_iter().collect()));
    let raw = prop_oneof![int(), text(), Just(json!({ "x": [1, "a", { "y": null }] }))];
    let numbers = (
        int(),
        maybe((-2.0f64..2.0).prop_map(Value::from)),
        maybe(any::<bool>().prop_map(Value::from)),
    );
    let mode = maybe(prop_oneof![Just(json!("dev")), Just(json!("prod"))]);
    (numbers, text(), mode, maybe(labels), maybe(ports), raw).prop_map(
        |((replicas, ratio, ha), image, mode, labels, ports, raw)| {
            json!({
                "replicas": replicas, "ratio": ratio, "ha": ha, "image": image, "mode": mode,
                "labels": labels, "ports": ports, "raw": raw,
            })
        },
    )
}

/// Operands of random templates: paths and constants.
const OPERANDS: &[&str] = &[
    ".spec.replicas",
    ".spec.ratio",
    ".spec.ha",
    ".spec.image",
    ".spec.mode",
    ".spec.labels",
    ".spec.labels.a",
    ".spec.ports",
    ".spec.raw",
    ".spec.raw.x",
    ".spec",
    "$.spec.replicas",
    "3",
    "2.5",
    "true",
    "\"a\"",
    "\"7\"",
    "nil",
    "(index .spec.ports 0)",
    "(index .spec.ports 0).number",
    "(get .spec \"labels\" \"b\")",
    "(index .spec.raw.x 1)",
    "(split .spec.image \"/\")",
];

/// Templates with randomly nested expressions.
fn any_template() -> impl Strategy<Value = String> {
    let note = |count| match count {
        1 => vec![
            "toString",
            "toInt",
            "toUpper",
            "len",
            "not",
            "trimSpace",
            "index",
        ],
        2 => vec![
            "default",
            "and",
            "or",
            "eq",
            "lt",
            "get",
            "index",
            "printf \"%v %v\"",
        ],
        _ => vec!["ternary", "or", "replace", "and"],
    };
    let expression = prop::sample::select(OPERANDS)
        .prop_map(str::to_owned)
        .prop_recursive(3, 16, 3, move |inner| {
            (1usize..4)
                .prop_flat_map(move |count| {
                    let args = prop::collection::vec(inner.clone(), count);
                    (prop::sample::select(note(count)), args)
                })
                .prop_map(|(note, args)| format!("({note} {})", args.join(" ")))
        });
    (expression.clone(), expression, 0..9).prop_map(|(one, two, form)| match form {
        0 => format!("{{{{ if {one} }}}}{{{{ {two} }}}}{{{{ else }}}}-x{{{{ end }}}}"),
        1 => format!("{{{{ range $k, $v := .spec.ports }}}}{{{{ $v.number }}}}{{{{ $k }}}}{{{{ end }}}}{{{{ {one} }}}}"),
        2 => format!("{{{{ $x := {one} }}}}{{{{ range .spec.ports }}}}{{{{ $x = {two} }}}}{{{{ end }}}}{{{{ $x }}}}"),
        3 => format!("{{{{ with {one} }}}}{{{{ . }}}}{{{{ end }}}}"),
        4 => format!("{{{{ if {one} }}}}3{{{{ else }}}}4{{{{ end }}}}"),
        5 => format!("{{{{ {one} | default {two} }}}}"),
        6 => format!("{{{{ {one} }}}}-{{{{ {two} }}}}"),
        _ => format!("{{{{ {one} }}}}"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// For data that fits the schema, the value of a template has the inferred type, and is missing if it was inferred to be
    /// missing.
    #[test]
    fn what_is_inferred_holds_for_every_value(source in any_template(), spec in any_spec()) {
        let Ok(template) = Template::parse(&source) else {
            return Ok(());
        };
        let node: Node = serde_json::from_str(CRD).unwrap();
        let schema = Schema::of_objects(&node, None).field("spec");
        let root = Type::of_names([("spec".to_owned(), Type::of_below(schema))]);
        let gives = template.infer(&root, false).gives;
        let spec = Node::from(&spec);
        let data = Data::new().with("spec", &spec);
        if let Ok(value) = template.eval(&data, &mut EvalBudget::default()) {
            let kind = Kinds::of(&value);
            prop_assert!(*value == Node::Null || kind.within(gives.may), "{source} gives {value:?}, inferred {gives}");
            if gives.is_constant() && *value != Node::Null {
                let constants = gives.constants();
                prop_assert!(constants.iter().any(|one| one.node == *value), "{source} gives {value:?}");
            }
        }
    }
}

#[test]
fn every_note_gives_what_it_declares_and_takes_its_example() {
    let sample: Node = serde_saphyr::from_str(notes::SAMPLE).unwrap();
    let entropy = Entropy::seeded([0; 32]);
    let data = Data::of(&sample)
        .at(notes::SAMPLE_TIME.parse().unwrap())
        .random(&entropy);
    for note in notes::all() {
        let source = note.example.0;
        let template = Template::parse(source).unwrap();
        let inference = template.infer(&Type::any(), false);
        assert!(
            inference.findings.is_empty(),
            "{source}: {:?}",
            inference.findings
        );
        let value = template.eval(&data, &mut EvalBudget::default()).unwrap();
        let kind = Kinds::of(&value);
        let gives = &inference.gives;
        assert!(
            *value == Node::Null || kind.within(gives.may),
            "{source} gives {value:?}, inferred {gives}"
        );
    }
}
