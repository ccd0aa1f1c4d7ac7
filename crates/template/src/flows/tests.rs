use super::*;

fn words<'a>(paths: impl IntoIterator<Item = &'a Flow>) -> Vec<String> {
    let word = |flow: &Flow| {
        let steps = flow.iter();
        let steps = steps.map(|step| step.as_ref().map_or("*", |key| key));
        steps.collect::<Vec<_>>().join(".")
    };
    paths.into_iter().map(word).collect()
}

fn flows(source: &str) -> Flows {
    Template::parse(source).unwrap().flows()
}

#[test]
fn what_is_printed_or_made_into_something_is_in_the_result() {
    for (source, expected) in [
        ("{{ .a.b }}", &["a.b"][..]),
        ("{{ .a.b | toUpper | trimSpace }}", &["a.b"]),
        ("{{ printf \"%s-%s\" .a .b }}", &["a", "b"]),
        ("{{ $x := .a }}{{ $x.b }}", &["a.b"]),
        ("{{ with .a }}{{ .b }}{{ end }}", &["a.b"]),
        ("{{ range .a }}{{ .b }}{{ end }}", &["a.*.b"]),
        ("{{ range $k, $v := .a }}{{ $v }}{{ end }}", &["a.*"]),
        ("{{ index .a \"b\" .c }}", &["a.b.*"]),
        ("{{ .a | default .b }}", &["a", "b"]),
        (
            "{{ $x := \"\" }}{{ range .a }}{{ $x = .b }}{{ end }}",
            &["a.*.b"],
        ),
        ("{{ toJson . }}", &[""]),
        // The value determines the number of iterations, the length of a text, and the keys of a map.
        ("{{ range toInt .a }}x{{ end }}", &["a"]),
        ("{{ len (repeat \"x\" .a) }}", &["a"]),
        ("{{ mapKeys (mapPick .b .a) }}", &["a", "b"]),
        (
            "{{ range $k, $v := mapPick .b .a }}{{ $k }}{{ end }}",
            &["a", "b"],
        ),
    ] {
        assert_eq!(words(&flows(source).visible), expected, "{source}");
    }
}

#[test]
fn what_is_only_tested_or_counted_is_not() {
    for source in [
        "{{ if .a }}yes{{ else }}no{{ end }}",
        "{{ if eq .a \"x\" }}yes{{ end }}",
        "{{ if and .a .b }}yes{{ else if not .c }}no{{ end }}",
        "{{ if or .a (hasPrefix .b \"x\") }}yes{{ end }}",
        "{{ if eq .a (toUpper \"x\") }}yes{{ end }}",
        "{{ if \"x\" | trimSpace | eq .a }}yes{{ end }}",
        "{{ if default .a .b }}yes{{ end }}",
        "{{ if coalesce .a .b | empty }}yes{{ end }}",
        "{{ ternary (not .a) \"yes\" \"no\" }}",
        "{{ empty .a }}",
        "{{ eq .a \"x\" }}",
        "{{ .a | empty }}",
        "{{ len .a }}",
        "{{ mapKeys .a.b }}",
        "{{ typeOf (len .a) }}",
        "{{ range $k, $v := .a }}{{ $k }}{{ end }}",
        "{{ with .a }}there{{ end }}",
    ] {
        let flows = flows(source);
        assert_eq!(words(&flows.visible), [""; 0], "{source}");
        assert_eq!(words(flows.compared.keys()), [""; 0], "{source}");
    }
}

#[test]
fn what_is_compared_with_other_data_is_learned_from_the_result() {
    for (source, by) in [
        ("{{ eq .a .b }}", "eq"),
        ("{{ not (eq .a .b) }}", "eq"),
        ("{{ if eq .a .b }}x{{ end }}", "eq"),
        ("{{ if .c }}{{ else if eq .a .b }}x{{ end }}", "eq"),
        ("{{ if hasPrefix .b .a }}x{{ end }}", "hasPrefix"),
        ("{{ if contains .b .a }}x{{ end }}", "contains"),
        ("{{ if .a | hasPrefix .b }}x{{ end }}", "hasPrefix"),
        ("{{ with eq .a .b }}x{{ end }}", "eq"),
        ("{{ if and .c (eq .a .b) }}x{{ end }}", "eq"),
        ("{{ if or .c (eq .a .b) | not }}x{{ end }}", "eq"),
        ("{{ if eq .a .b | default false }}x{{ end }}", "eq"),
        ("{{ ternary (eq .a .b) 1 2 }}", "eq"),
        ("{{ if eqTernary .a .b 1 0 }}x{{ end }}", "eqTernary"),
        ("{{ if coalesce .c (eq .a .b) }}x{{ end }}", "eq"),
        (
            "{{ if eq (printf \"%s%s\" .a .b) \"x\" }}x{{ end }}",
            "printf",
        ),
        (
            "{{ if printf \"%s%s\" .a .b | len | eq 4 }}x{{ end }}",
            "printf",
        ),
        ("{{ if index .b .a }}x{{ end }}", "index"),
        ("{{ index .b .a }}", "index"),
        ("{{ range .b }}{{ if eq . $.a }}x{{ end }}{{ end }}", "eq"),
        ("{{ with .a }}{{ if eq . $.b }}x{{ end }}{{ end }}", "eq"),
        ("{{ $x := eq .a .b }}{{ if $x }}x{{ end }}", "eq"),
        (
            "{{ $x := \"\" }}{{ $x = .b }}{{ if eq .a $x }}x{{ end }}",
            "eq",
        ),
        (
            "{{ $x := false }}{{ if eq .a .b }}{{ $x = true }}{{ end }}{{ $x }}",
            "eq",
        ),
    ] {
        let flows = flows(source);
        let named = flows.compared.get(&Flow::from([Some(Key::new("a"))]));
        assert_eq!(named.map(|name| &**name), Some(by), "{source}");
    }
}

#[test]
fn a_key_does_not_show_what_it_does_not_find() {
    let flows = flows("{{ if index .a .b }}x{{ end }}");
    assert_eq!(words(&flows.visible), [""; 0]);
    assert_eq!(words(flows.compared.keys()), ["b"]);
}
