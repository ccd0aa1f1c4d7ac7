//! Malicious charts and archives: an error within the limits, never a crash.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails where something is missing"
)]

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use orkestra_charts::archive::{ArchiveError, Limits, unpack};
use orkestra_charts::{Budget, Capabilities, Chart, Error, Release, Rendered, render};
use orkestra_object::value::Node;

const CHART: &str = "apiVersion: v2\nname: c\nversion: 0.1.0\n";

/// The maximum time for the worst input, in a debug build on a busy machine.
const LONGEST: Duration = Duration::from_mins(1);

fn rendered(files: &[(&str, &str)]) -> Result<Rendered, Error> {
    rendered_within(files, &Budget::default())
}

fn rendered_within(files: &[(&str, &str)], budget: &Budget) -> Result<Rendered, Error> {
    let files = files.iter().chain([&("Chart.yaml", CHART)]);
    let chart = Chart::from_files(files.map(|(path, text)| (*path, *text)))?;
    render(
        &chart,
        &Node::Null,
        &Release::new("r"),
        &Capabilities::default(),
        budget,
    )
}

/// Returns an archive of these entries, written byte for byte: paths are not checked, as in an attacker's archive.
fn packed(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, kind, data) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

const FILE: tar::EntryType = tar::EntryType::Regular;

#[test]
fn large_numbers_of_values_are_floats_for_the_pretty_form_alone() {
    let source = "a: {{ toYamlPretty .Values.big }}\nb: {{ toYaml .Values.big }}\nc: {{ toYamlPretty 1000000 }}\n\
                  d: {{ toYamlPretty .Values.small }}\ne: {{ toYamlPretty .Values.list | nindent 2 }}\nkind: A";
    let values = "{ big: 1000000, small: 123456, list: [1234567, 0.5, 2] }";
    let rendered = rendered(&[("templates/a.yaml", source), ("values.yaml", values)]).unwrap();
    let notes = &rendered.documents[0];
    for line in [
        "a: 1e+06\n",
        "b: 1000000\n",
        "c: 1000000\n",
        "d: 123456\n",
        "- 1.234567e+06\n  - 0.5\n  - 2\n",
    ] {
        assert!(notes.text.contains(line), "{line:?}: {}", notes.text);
    }
}

#[test]
fn a_packed_chart_renders_and_so_does_one_within_it() {
    let kid = packed(&[
        (
            "kid/Chart.yaml",
            FILE,
            b"{apiVersion: v2, name: kid, version: 1.0.0}",
        ),
        (
            "kid/templates/k.yaml",
            FILE,
            b"kind: {{ .Chart.Name | title }}",
        ),
    ]);
    let chart = packed(&[
        ("c/", tar::EntryType::Directory, b""),
        ("c/Chart.yaml", FILE, CHART.as_bytes()),
        ("c/templates/a.yaml", FILE, b"kind: A"),
        ("c/charts/kid-1.0.0.tgz", FILE, &kid),
    ]);
    let chart = Chart::from_archive(&chart, &Limits::default()).unwrap();
    let rendered = render(
        &chart,
        &Node::Null,
        &Release::new("r"),
        &Capabilities::default(),
        &Budget::default(),
    )
    .unwrap();
    let sources: Vec<&str> = rendered.documents.iter().map(|d| &*d.source).collect();
    assert_eq!(
        sources,
        ["c/templates/a.yaml", "c/charts/kid/templates/k.yaml"]
    );
}

#[test]
fn an_archive_stays_within_its_folder() {
    for path in [
        "../x",
        "c/../../x",
        "/etc/x",
        "c/..",
        "c\\..\\x",
        "C:/x",
        "c/a\nb",
    ] {
        let bytes = packed(&[(path, FILE, b"x")]);
        let result = unpack(&bytes, &Limits::default());
        assert!(
            matches!(result, Err(ArchiveError::Path(_))),
            "{path}: {result:?}"
        );
    }
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Char,
        tar::EntryType::Fifo,
    ] {
        let bytes = packed(&[("c/x", kind, b"")]);
        let result = unpack(&bytes, &Limits::default());
        assert!(
            matches!(result, Err(ArchiveError::Kind(_))),
            "{kind:?}: {result:?}"
        );
    }
    let twice = packed(&[("c/x", FILE, b"1"), ("c/./x", FILE, b"2")]);
    assert!(matches!(
        unpack(&twice, &Limits::default()),
        Err(ArchiveError::Twice(_))
    ));
}

#[test]
fn an_archive_costs_no_more_than_its_limits() {
    let limits = Limits {
        bytes: 1 << 20,
        file_bytes: 1 << 18,
        files: 10,
        depth: 3,
    };
    let limit = |bytes: &[u8]| {
        let result = unpack(bytes, &limits);
        assert!(matches!(result, Err(ArchiveError::Limit(_))), "{result:?}");
    };
    limit(&packed(&[("c/big", FILE, &vec![0; (1 << 18) + 1])]));
    let part = vec![0; 1 << 18];
    let names: Vec<String> = (0..5).map(|n| format!("c/{n}")).collect();
    limit(&packed(
        &names
            .iter()
            .map(|name| (&**name, FILE, &*part))
            .collect::<Vec<_>>(),
    ));
    let names: Vec<String> = (0..11).map(|n| format!("c/{n}")).collect();
    limit(&packed(
        &names
            .iter()
            .map(|name| (&**name, FILE, &b""[..]))
            .collect::<Vec<_>>(),
    ));
    limit(&packed(&[("a/b/c/d", FILE, b"")]));
    // A gigabyte of zeros, compressed to a megabyte. The header declares one file of that length.
    let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = tar::Header::new_ustar();
    header.set_path("c/zeros").unwrap();
    header.set_size(1 << 30);
    header.set_entry_type(FILE);
    header.set_cksum();
    zeros.write_all(header.as_bytes()).unwrap();
    let block = vec![0; 1 << 20];
    for _ in 0..64 {
        zeros.write_all(&block).unwrap();
    }
    let zeros = zeros.finish().unwrap();
    let start = Instant::now();
    limit(&zeros);
    assert!(start.elapsed() < LONGEST);
    for malformed in [&b""[..], b"x", &zeros[..zeros.len() / 2], &packed(&[])] {
        assert!(unpack(malformed, &limits).is_err());
    }
}

/// Templates that would take unlimited time, memory or stack.
const BOMBS: &[(&str, &str)] = &[
    ("loop", r"{{ range until 1000000000 }}x{{ end }}"),
    (
        "nested loops",
        r"{{ range until 9999 }}{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}{{ end }}",
    ),
    (
        "include of itself",
        r#"{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}"#,
    ),
    (
        "template of itself",
        r#"{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}"#,
    ),
    ("tpl of itself", r"{{ tpl .Values.again . }}"),
    (
        "include that doubles",
        r#"{{ define "x" }}{{ if lt (int .) 60 }}{{ include "x" (add1 .) }}{{ include "x" (add1 .) }}{{ end }}{{ end }}{{ include "x" 0 }}"#,
    ),
    ("repeat", r#"{{ repeat 1000000000 "x" }}"#),
    (
        "doubled text",
        r#"{{ $s := "xxxxxxxx" }}{{ range until 60 }}{{ $s = cat $s $s }}{{ end }}"#,
    ),
    (
        "replace that grows",
        r#"{{ $s := "x" }}{{ range until 60 }}{{ $s = replace "x" "xxxxxxxx" $s }}{{ end }}"#,
    ),
    (
        "map in itself",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}"#,
    ),
    (
        "map in itself, printed",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}"#,
    ),
    (
        "map in itself, compared",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepEqual $d $d }}"#,
    ),
    (
        "map in itself, merged",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ merge (dict) $d }}"#,
    ),
    (
        "deep map",
        r#"{{ $d := dict }}{{ range until 200000 }}{{ $d = dict "d" $d }}{{ end }}{{ toYaml $d }}"#,
    ),
    (
        "deep list",
        r"{{ $d := list }}{{ range until 200000 }}{{ $d = list $d }}{{ end }}{{ deepCopy $d }}",
    ),
    (
        "doubled list",
        r"{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ toJson $d }}",
    ),
    (
        "long list",
        r"{{ $d := list 1 }}{{ range until 60 }}{{ $d = concat $d $d }}{{ end }}",
    ),
    (
        "wide field",
        r#"{{ range 1000 }}{{ printf "%1000000d" 1 }}{{ end }}"#,
    ),
    ("indent", r#"{{ indent 1000000000 "a\nb" }}"#),
    ("random text", r"{{ randAlphaNum 1000000000 }}"),
    ("sequence", r"{{ seq 1 1000000000 }}"),
    (
        "large regex",
        r#"{{ regexMatch "((((a{100}){100}){100}){100})" "a" }}"#,
    ),
    (
        "YAML aliases",
        r#"{{ fromYaml "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]" | toJson | len }}"#,
    ),
    ("parentheses", ""),
];

#[test]
fn hostile_templates_end_within_the_budget() {
    for (name, source) in BOMBS {
        let deep = format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000));
        let source = if source.is_empty() { &deep } else { *source };
        let start = Instant::now();
        let values = "again: '{{ tpl .Values.again . }}'\n";
        let result = rendered(&[("templates/a.yaml", source), ("values.yaml", values)]);
        let took = start.elapsed();
        assert!(took < LONGEST, "{name}: {took:?}");
        // In Helm's charts, a YAML error is a value: an error under a key.
        if *name == "YAML aliases" {
            continue;
        }
        let error = result.expect_err(name);
        assert!(matches!(error, Error::Template { .. }), "{name}: {error}");
    }
}

#[test]
fn what_is_nested_deeply_and_never_printed_is_dropped_without_recursion() {
    let source = r#"{{ $d := dict }}{{ range until 300000 }}{{ $d = dict "d" $d }}{{ end }}{{ $l := list }}{{ range until 300000 }}{{ $l = list $l }}{{ end }}kind: A"#;
    assert_eq!(
        rendered(&[("templates/a.yaml", source)])
            .unwrap()
            .documents
            .len(),
        1
    );
}

#[test]
fn the_deepest_nesting_that_is_allowed_fits_on_the_stack_of_a_test() {
    // The maximum nesting of statements, of parentheses and of templates.
    let ifs = format!("{}x{}", "{{ if true }}".repeat(95), "{{ end }}".repeat(95));
    assert!(rendered(&[("templates/a.yaml", &ifs)]).is_ok());
    let deep = format!(
        r#"{{{{ define "x" }}}}{}{{{{ include "x" . }}}}{}{{{{ end }}}}{{{{ include "x" . }}}}"#,
        "{{ with . }}".repeat(90),
        "{{ end }}".repeat(90),
    );
    let error = rendered(&[("templates/a.yaml", &deep)]).unwrap_err();
    assert!(
        matches!(error, Error::Template { budget: true, .. }),
        "{error}"
    );
}

#[test]
fn errors_name_the_innermost_place_and_who_called() {
    let helpers = "{{ define \"name\" }}\n  {{ fail \"no name\" }}{{ end }}";
    let error = rendered(&[
        ("templates/_h.tpl", helpers),
        (
            "templates/a.yaml",
            "kind: A\nname: {{ include \"name\" . }}\n",
        ),
    ])
    .unwrap_err();
    assert_eq!(error.to_string(), "c/templates/_h.tpl:2:6: no name");
    let Error::Template { called_from, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(called_from.len(), 1);
    assert_eq!(called_from[0].to_string(), "c/templates/a.yaml:2:10");
}

#[test]
fn what_is_not_supported_says_so_when_it_is_called_and_not_before() {
    let unused = "{{ if false }}{{ htpasswd \"a\" \"b\" }}{{ end }}kind: A";
    assert!(rendered(&[("templates/a.yaml", unused)]).is_ok());
    let error = rendered(&[("templates/a.yaml", "{{ htpasswd \"a\" \"b\" }}")]).unwrap_err();
    assert!(
        error.to_string().contains("`htpasswd` is not supported"),
        "{error}"
    );
}

#[test]
fn the_same_seed_gives_the_same_documents() {
    let source = "kind: A\nx: {{ randAlphaNum 20 }}\nca: {{ (genCA \"a\" 3).Cert | quote }}\nat: {{ now | date \"2006\" }}";
    let files = [("templates/a.yaml", source)];
    assert_eq!(rendered(&files).unwrap(), rendered(&files).unwrap());
}

#[test]
fn a_budget_of_nothing_is_an_error() {
    let budget = Budget {
        steps: 3,
        ..Budget::default()
    };
    let error =
        rendered_within(&[("templates/a.yaml", "kind: {{ upper \"a\" }}")], &budget).unwrap_err();
    assert!(
        matches!(error, Error::Template { budget: true, .. }),
        "{error}"
    );
}
