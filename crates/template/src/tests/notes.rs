//! Notes beyond their examples: missing values, values of other types, limits of ranges.

use super::*;
use serde_json::Value;

pub(crate) fn root() -> Node {
    node!({
        "spec": {
            "n": 3, "f": 2.5, "whole": 4.0, "text": "Größe", "num": " 7 ", "on": true, "off": false, "zero": 0,
            "list": ["a", 1, null, true], "ports": [80, 443], "map": {"b": 2, "a": {"x": 1}}, "empty": [], "none": {},
            "big": 9_007_199_254_740_993_i64, "huge": 18_446_744_073_709_551_615_u64, "yaml": "k: [1, 2]\nz: {y: x}",
        },
    })
}

/// A template, and the JSON of its value.
const RULES: &[(&str, &str)] = &[
    // Math: integers are exact, floats remain only where necessary, null is 0.
    ("{{ add .spec.big 1 }}", "9007199254740994"),
    ("{{ add .spec.huge 0 }}", "18446744073709551615"),
    ("{{ sub .spec.huge .spec.huge }}", "0"),
    ("{{ add 0.5 0.5 }}", "1"),
    ("{{ add .spec.num .spec.on }}", "8"),
    ("{{ add .nope 2 }}", "2"),
    ("{{ mul .spec.f 2 }}", "5"),
    ("{{ mul .spec.big 1.0 }}", "9007199254740992"),
    ("{{ mul 9223372036854775807 4 }}", "3.6893488147419103e19"),
    ("{{ div 7 -2 }}", "-3.5"),
    ("{{ div .spec.big 1 }}", "9007199254740993"),
    ("{{ div 0 5 }}", "0"),
    ("{{ mod -7 3 }}", "-1"),
    ("{{ mod 7.9 2.9 }}", "1"),
    ("{{ min .spec.big 9007199254740992.5 }}", "9007199254740992"),
    ("{{ max \"3\" 2 }}", "3"),
    ("{{ max .nope -1 }}", "0"),
    ("{{ min 1.5 2 }}", "1.5"),
    ("{{ clamp 5 1 .nope }}", "0"),
    ("{{ clamp 0.5 1 20 }}", "1"),
    ("{{ abs -0.5 }}", "0.5"),
    ("{{ abs -9223372036854775808 }}", "9223372036854775808"),
    ("{{ 2 | sub 10 }}", "8"),
    // Texts
    ("{{ trim \"éxé\" \"é\" }}", r#""x""#),
    ("{{ trim \" x \" }}", r#""x""#),
    ("{{ trim \"x\" \"\" }}", r#""x""#),
    ("{{ trim .nope \"-\" }}", r#""""#),
    ("{{ trim \"---\" \"-\" }}", r#""""#),
    ("{{ trimPrefix \"aab\" \"a\" }}", r#""ab""#),
    ("{{ trimPrefix \"b\" \"a\" }}", r#""b""#),
    ("{{ trimSuffix .nope .nope }}", r#""""#),
    ("{{ hasPrefix .nope \"\" }}", "true"),
    ("{{ hasSuffix .nope \"x\" }}", "false"),
    ("{{ contains \"a\" .nope }}", "true"),
    ("{{ concat }}", r#""""#),
    ("{{ concat \"a\" .nope 1 true .spec.f }}", r#""a1true2.5""#),
    ("{{ repeat \"ab\" 0 }}", r#""""#),
    ("{{ repeat .nope 5 }}", r#""""#),
    ("{{ repeat \"\" 100000000000 }}", r#""""#),
    ("{{ truncate \"abcdef\" 6 }}", r#""abcdef""#),
    ("{{ truncate \"abcdef\" 5 }}", r#""ab...""#),
    ("{{ truncate \"abcdef\" 3 }}", r#""abc""#),
    ("{{ truncate \"abcdef\" 0 }}", r#""""#),
    ("{{ truncate \"abcdef\" -1 }}", r#""""#),
    ("{{ truncate .spec.text 6 }}", r#""Gr...""#),
    ("{{ truncate .spec.text 3 }}", r#""Gr""#),
    ("{{ truncate .nope 3 }}", r#""""#),
    ("{{ camelToKebab \"HTTPProxy\" }}", r#""http-proxy""#),
    ("{{ camelToKebab \"V2Api\" }}", r#""v2api""#),
    ("{{ camelToKebab \"myApp\" }}", r#""my-app""#),
    ("{{ camelToKebab \"myAppURL\" }}", r#""my-app-url""#),
    ("{{ camelToKebab \"A\" }}{{ camelToKebab \"\" }}", r#""a""#),
    ("{{ upper \"a\" }}{{ lower \"B\" }}", r#""Ab""#),
    // Conditions
    ("{{ boolTernary .nope 1 2 }}", "2"),
    ("{{ boolTernary (not .spec.off) 1 2 }}", "1"),
    ("{{ boolDefault .spec.off true }}", "false"),
    ("{{ boolDefault .nope true }}", "true"),
    ("{{ getBoolOr .nope .nope }}", "false"),
    ("{{ eqTernary .nope .nope 1 2 }}", "2"),
    ("{{ eqTernary .nope \"\" 1 2 }}", "2"),
    (
        "{{ eqTernary .spec.n \"3\" .spec.list 2 }}",
        r#"["a", 1, null, true]"#,
    ),
    ("{{ eqTernary .spec.whole 4 1 2 }}", "1"),
    (
        "{{ coalesce .nope \"\" false .spec.empty .spec.none 0 }}",
        "null",
    ),
    (
        "{{ coalesce .nope .spec.map }}",
        r#"{"b": 2, "a": {"x": 1}}"#,
    ),
    ("{{ empty .nope }}{{ notEmpty .nope }}", r#""truefalse""#),
    (
        "{{ isEmpty .nope }} {{ isEmpty false }} {{ isEmpty .spec.none }} {{ Empty \"\" }}",
        r#""true false true true""#,
    ),
    ("{{ getOr 0 .spec.n }}", "3"),
    ("{{ .spec.n | getOr .nope }}", "3"),
    ("{{ getStringOr \"\" \"x\" }}", r#""x""#),
    ("{{ getStringOr .nope .nope }}", r#""""#),
    ("{{ getIntOr .spec.f 9 }}", "2"),
    ("{{ getIntOr true 9 }}", "9"),
    ("{{ getIntOr .nope .nope }}", "0"),
    // Types
    ("{{ toFloat .spec.n }}", "3.0"),
    ("{{ toFloat .nope }}", "0.0"),
    ("{{ toFloat true }}", "1.0"),
    ("{{ toInt .spec.huge }}", "18446744073709551615"),
    (
        "{{ toInt \"18446744073709551615\" }}",
        "18446744073709551615",
    ),
    ("{{ toInt .spec.num }}", "7"),
    (
        "{{ toBool .nope }}{{ toBool \"\" }}{{ toBool \"FALSE\" }}{{ toBool \" no \" }}",
        r#""falsefalsefalsefalse""#,
    ),
    (
        "{{ toBool \"Yes\" }}{{ toBool 0.5 }}{{ toBool \"1\" }}",
        r#""truetruetrue""#,
    ),
    ("{{ toJson .nope }}", r#""null""#),
    ("{{ toJSON .spec.map }}", r#""{\"a\":{\"x\":1},\"b\":2}""#),
    ("{{ toJson \"<\\\">\" }}", r#""\"<\\\">\"""#),
    // Numbers in JSON are as in text: whole floats without decimals, none with an exponent.
    ("{{ toJson .spec.whole }}", r#""4""#),
    (
        "{{ toJson (asList \"[1e6, 2.5, 1e21, 1e-7]\") }}",
        r#""[1000000,2.5,1000000000000000000000,0.0000001]""#,
    ),
    ("{{ asString (asMap \"{f: 2.0}\") }}", r#""{\"f\":2}""#),
    ("{{ toList .nope }}", "[]"),
    ("{{ toList \"\" }}", "[]"),
    ("{{ toList \" , a,,b \" }}", r#"["a", "b"]"#),
    ("{{ toList .spec.ports }}", "[80, 443]"),
    ("{{ asList .spec.ports }}", "[80, 443]"),
    ("{{ asList \"- a\\n- {b: 1}\" }}", r#"["a", {"b": 1}]"#),
    (
        "{{ asList \"{}\" }}{{ asList .nope }}{{ asList \"[1\" }}{{ asList 5 }}",
        r#""[][][][]""#,
    ),
    (
        "{{ asMap .spec.yaml }}",
        r#"{"k": [1, 2], "z": {"y": "x"}}"#,
    ),
    ("{{ (asMap .spec.yaml).z.y }}", r#""x""#),
    ("{{ asMap \"[1]\" }}", "{}"),
    ("{{ asMap .nope }}", "{}"),
    ("{{ asMap .spec.map }}", r#"{"b": 2, "a": {"x": 1}}"#),
    ("{{ asString .nope }}", r#""""#),
    ("{{ asString .spec.f }}", r#""2.5""#),
    ("{{ asString .spec.map }}", r#""{\"a\":{\"x\":1},\"b\":2}""#),
    (
        "{{ typeOf .nope }} {{ typeOf .spec.n }} {{ typeOf 1.5 }} {{ typeOf (split \"a\" \",\") }}",
        r#""null number number slice""#,
    ),
    (
        "{{ isScalar .nope }}{{ isComposite .nope }}",
        r#""falsefalse""#,
    ),
    // Collections
    (
        "{{ listHas .spec.ports 80 }}{{ listHas .spec.ports 80.0 }}{{ listHas .spec.ports \"80\" }}",
        r#""truetruefalse""#,
    ),
    (
        "{{ listHas .nope 1 }}{{ listHas .spec.map 1 }}{{ listHas .spec.list .nope }}",
        r#""falsefalsetrue""#,
    ),
    ("{{ listGet .spec.list -1 }}", "null"),
    ("{{ listGet .spec.list 4 }}", "null"),
    ("{{ listGet .nope 0 }}", "null"),
    ("{{ listGet \"text\" 0 }}", "null"),
    ("{{ listLen .spec.map }}{{ listLen .spec.list }}", r#""04""#),
    ("{{ mapGet .spec.map \"a\" }}", r#"{"x": 1}"#),
    ("{{ mapGet .spec.list \"0\" }}", "null"),
    ("{{ mapGet .spec.map .nope }}", "null"),
    ("{{ mapGet . \"spec\" | mapKeys | listLen }}", "16"),
    ("{{ mapKeys .nope }}{{ mapValues .spec.list }}", r#""[][]""#),
    ("{{ mapValues .spec.map }}", r#"[{"x": 1}, 2]"#),
    (
        "{{ mapPick .spec.map \"b\" \"nope\" .nope }}",
        r#"{"b": 2}"#,
    ),
    (
        "{{ mapPick .spec.map (split \"a,b\" \",\") }}",
        r#"{"b": 2, "a": {"x": 1}}"#,
    ),
    ("{{ mapPick .spec.map }}", "{}"),
    ("{{ mapOmit .spec.map \"b\" }}", r#"{"a": {"x": 1}}"#),
    ("{{ mapOmit .nope \"b\" }}", "{}"),
    ("{{ slice .spec.text 2 3 }}", r#""""#),
    ("{{ slice .spec.text 0 99 }}", r#""Größe""#),
    ("{{ slice .spec.text 99 }}", r#""""#),
    ("{{ slice .spec.ports 1 }}", "[443]"),
    ("{{ slice .spec.ports 0 1 2 }}", "[80]"),
    ("{{ slice .nope 1 2 }}", "null"),
    // Encodings
    (
        "{{ fromBase64 \"aGk\" }}{{ fromBase64 .nope }}{{ fromBase64 \"aG\\nk=\" }}",
        r#""hihi""#,
    ),
    ("{{ toBase64 .nope }}", r#""""#),
    ("{{ sha256sum .nope }}", r#""e3b0c442""#),
    ("{{ slugify \"--Große Straße--\" }}", r#""gro-e-stra-e""#),
    ("{{ slugify .nope }}", r#""""#),
    ("{{ truncateName .spec.text 3 }}", r#""Gr""#),
    ("{{ truncateName \"ab\" 9 }}", r#""ab""#),
    (
        "{{ repoSlug \"https://h.io/o/My.App.git/\" }}",
        r#""my-app""#,
    ),
    ("{{ repoSlug \"plain\" }}", r#""plain""#),
    ("{{ lookup .spec.n \"3\" \"three\" }}", r#""three""#),
    ("{{ lookup \"x\" \"a\" 1 \"x\" }}", r#""""#),
    ("{{ lookup \"x\" }}", r#""""#),
    ("{{ lookup \"b\" \"a\" 1 \"b\" .spec.ports }}", "[80, 443]"),
    // Go's functions
    ("{{ html .nope }}", r#""""#),
    ("{{ html \"a\" \"<b>\" 1 2 }}", r#""a&lt;b&gt;1 2""#),
    ("{{ urlquery \"é&=\" }}", r#""%C3%A9%26%3D""#),
    ("{{ print }}{{ print .nope }}", r#""<nil>""#),
    ("{{ println }}", r#""\n""#),
];

#[test]
fn notes_follow_their_rules() {
    let root = root();
    for (source, expected) in RULES {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let given = value(source, &root).map(|node| node.to_json());
        assert_eq!(given, Ok(expected), "{source}");
    }
}
