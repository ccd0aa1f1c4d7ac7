//! No template exceeds its budget.

use super::*;
use crate::EvalErrorKind;
use std::time::{Duration, Instant};

/// Runs an evaluation that must fail, and returns its duration.
fn exhausts(source: &str, root: &Node) -> Duration {
    let template = template(source);
    let start = Instant::now();
    let error = template
        .render_text(&Data::of(root), &mut EvalBudget::default())
        .map(|text| text.len())
        .expect_err(source);
    let took = start.elapsed();
    assert_eq!(error.kind, EvalErrorKind::Budget, "{source}: {error}");
    took
}

/// The time limit of an evaluation: the budget guarantees 100 ms on an idle core, but tests share cores, and are rarely optimized.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 20_000 } else { 400 });

#[test]
fn bombs_end_soon_and_small() {
    let doubled = |what: &str| {
        format!(
            "{{{{ $s := \"xxxxxxxxxxxxxxxx\" }}}}{{{{ range 60 }}}}{{{{ $s = {what} }}}}{{{{ end }}}}{{{{ len $s }}}}"
        )
    };
    let bombs = [
        doubled("printf \"%s%s\" $s $s"),
        doubled("replace $s \"x\" \"xx\""),
        doubled("replace $s \"\" $s"),
        doubled("join (split $s \"\") $s"),
        doubled("printf \"%q%x\" $s $s"),
        "{{ range 1000000000 }}{{ end }}".into(),
        "{{ range 1000000000000 }}x{{ end }}".into(),
        "{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}".into(),
        "{{ range 9999999 }}{{ if and true (not false) }}{{ continue }}{{ end }}{{ end }}".into(),
        "{{ printf \"%1000000d%1000000d\" 1 2 }}".into(),
        "{{ printf \"%.1000000f%.1000000f\" 1.5 2.5 }}".into(),
        "{{ range 100 }}{{ $x := printf \"%1000000s\" \"\" }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := eq $.big $.big }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := replace $.big \"y\" \"z\" }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := split $.big \"x\" }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := toUpper $.big }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := trimSpace $.big }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := printf \"%d\" $.list }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := join $.list \"\" }}{{ end }}".into(),
        "{{ range 100000 }}{{ $x := printf \"%.1s\" $.big }}{{ end }}".into(),
        "{{ $l := split .big \"x\" }}".into(),
        "{{ range 100 }}{{ $.big }}{{ end }}".into(),
        "{{ range 100000 }}{{ len (toString $) }}{{ end }}".into(),
    ];
    let root = node!({"big": "x".repeat(1 << 20), "list": vec![0; 10_000]});
    for bomb in bombs {
        let took = exhausts(&bomb, &root);
        assert!(took < PATIENCE, "{took:?} for {bomb}");
    }
}

#[test]
fn output_may_have_one_mebibyte_and_no_more() {
    let root = node!({"big": "x".repeat((1 << 20) - 1)});
    assert_eq!(text("{{ .big }}y", &root).unwrap().len(), 1 << 20);
    exhausts("{{ .big }}yy", &root);
}

#[test]
fn a_budget_is_shared_by_the_evaluations_it_is_handed_to() {
    let root = node!({"a": "0123456789"});
    let template = template("a{{ .a }}");
    let mut budget = EvalBudget {
        bytes: 25,
        ..EvalBudget::default()
    };
    assert!(template.render_text(&Data::of(&root), &mut budget).is_ok());
    assert!(template.render_text(&Data::of(&root), &mut budget).is_ok());
    let error = template
        .render_text(&Data::of(&root), &mut budget)
        .unwrap_err();
    assert_eq!(error.kind, EvalErrorKind::Budget);
    assert_eq!(budget.depth, EvalBudget::default().depth);
}

#[test]
fn a_budget_without_depth_refuses_nesting_and_is_left_as_it_was() {
    let template = template("{{ len (len (len (len .a))) }}");
    let mut budget = EvalBudget {
        depth: 3,
        ..EvalBudget::default()
    };
    let error = template.eval(&Data::new(), &mut budget).unwrap_err();
    assert_eq!(error.kind, EvalErrorKind::Budget);
    assert_eq!(budget.depth, 3);
}

#[test]
fn nesting_beyond_the_limit_is_an_error_and_no_stack_overflow() {
    let many = 10_000;
    let nested = [
        format!("{{{{ {}1{} }}}}", "(".repeat(many), ")".repeat(many)),
        format!("{{{{ {}1{} }}}}", "(len ".repeat(many), ")".repeat(many)),
        format!(
            "{}{}",
            "{{ if true }}".repeat(many),
            "{{ end }}".repeat(many)
        ),
        format!(
            "{}{}",
            "{{ range 1 }}".repeat(many),
            "{{ end }}".repeat(many)
        ),
        "{{ with . }}".repeat(many),
        "{{ define \"a\" }}".repeat(many),
        "{{ if - }}".repeat(many),
    ];
    for source in nested {
        assert!(Template::parse(&source).is_err(), "{}", &source[..20]);
    }
}

#[test]
fn what_is_long_but_flat_is_no_error() {
    let many = 10_000;
    let flat = [
        format!("{{{{ 1{} }}}}", " | printf \"%v\"".repeat(many)),
        format!(
            "{{{{ if false }}}}{}{{{{ end }}}}",
            "{{ else if false }}".repeat(many)
        ),
        format!("{{{{ .a{} }}}}", ".a".repeat(many)),
        format!("{{{{ and{} }}}}", " 1".repeat(many)),
        "{{ $x := 1 }}".repeat(1000),
        "{{ if true }}{{ $x := 1 }}{{ end }}".repeat(many),
        "{{ \"a\" }}".repeat(many),
    ];
    for source in flat {
        assert!(text(&source, &Node::Null).is_ok(), "{}", &source[..30]);
    }
    assert!(
        Template::parse(&format!(
            "{{{{ if true }}}}{}{{{{ end }}}}",
            "{{ else }}".repeat(many)
        ))
        .is_err()
    );
}

#[test]
fn deep_data_prints_up_to_the_depth_of_the_budget() {
    let mut deep = Node::Null;
    for _ in 0..1000 {
        deep = Node::from(vec![deep]);
    }
    let data = Data::new().with("deep", &deep);
    for source in [
        "{{ .deep }}x",
        "{{ printf \"%d\" .deep }}",
        "{{ join .deep \"\" }}",
    ] {
        let error = template(source).render_text(&data, &mut EvalBudget::default());
        assert_eq!(error.unwrap_err().kind, EvalErrorKind::Budget, "{source}");
    }
}

#[test]
fn a_source_full_of_errors_is_given_up_soon() {
    let start = Instant::now();
    for piece in [
        "{{ nope }}",
        "{{/* ",
        "{{ \"",
        "{{ $x }}",
        "{{ end }}",
        "{{ if - }}",
        "{{ $x := 1 }}",
    ] {
        let errors = errors(&piece.repeat((1 << 20) / piece.len()));
        assert!(errors.len() <= 32, "{piece}: {}", errors.len());
    }
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_source_beyond_one_mebibyte_is_refused_unless_it_is_plain_text() {
    let long = "x".repeat((1 << 20) + 1);
    assert!(Template::parse(&long).is_ok());
    assert!(Template::parse(&format!("{long}{{{{ .a }}}}")).is_err());
}

#[test]
fn a_simple_path_takes_less_than_half_a_microsecond() {
    let root = node!({"metadata": {"name": "web", "uid": "u"}, "spec": {"image": "nginx:1.25", "replicas": 3}});
    let data = Data::of(&root);
    let rounds = 20_000;
    for source in [
        "{{ .spec.replicas }}",
        "{{ .spec.image }}",
        "{{ .spec.nope | default .metadata.name }}",
    ] {
        let template = template(source);
        let start = Instant::now();
        for _ in 0..rounds {
            let value = template.eval(&data, &mut EvalBudget::default());
            assert!(std::hint::black_box(value).is_ok());
        }
        let each = start.elapsed() / rounds;
        println!("{each:?} for {source}");
        if !cfg!(debug_assertions) {
            assert!(each < Duration::from_nanos(500), "{each:?} for {source}");
        }
    }
}
