//! Notes that a document declares: their scope, their results and rejected declarations.

mod refused;

use super::*;
use crate::tests::node;
use crate::{Data, EvalBudget, EvalError};
use orkestra_object::value::{Node, Path};

fn source<'a>((name, expression): &(&'a str, &'a str)) -> FunctionSource<'a> {
    FunctionSource {
        name,
        expression,
        shadow: false,
    }
}

/// Compiles notes, and returns them and the problems as lines such as `0 name error: message`.
fn compile(declared: &[(&str, &str)]) -> (Functions, Vec<String>) {
    let declared: Vec<FunctionSource<'_>> = declared.iter().map(source).collect();
    let (functions, problems) = Functions::compile(&declared);
    let reported = problems.iter().map(|problem| {
        let part = match problem.part {
            FunctionPart::Name => "name",
            FunctionPart::Expression => "expression",
        };
        let grade = if problem.is_warning {
            "warning"
        } else {
            "error"
        };
        format!("{} {part} {grade}: {}", problem.index, problem.error)
    });
    (functions, reported.collect())
}

fn sound(declared: &[(&str, &str)]) -> Functions {
    let (functions, problems) = compile(declared);
    assert_eq!(problems, Vec::<String>::new());
    functions
}

fn parsed(source: &str, functions: &Functions) -> Template {
    Template::parse_with(source, functions).unwrap_or_else(|errors| panic!("{source}: {errors:?}"))
}

fn value(source: &str, functions: &Functions, root: &Node) -> Result<Node, EvalError> {
    let data = Data::of(root);
    let value = parsed(source, functions).eval(&data, &mut EvalBudget::default());
    value.map(std::borrow::Cow::into_owned)
}

#[test]
fn a_note_gives_trimmed_text_and_the_two_words_give_booleans() {
    let functions = sound(&[
        ("padded", "  {{ .spec.name }} \n"),
        ("yes", "{{ eq .spec.n 3 }}"),
        ("no", " false "),
        ("number", "{{ .spec.n }}"),
        ("nothing", "{{ .spec.nope }}"),
        ("list", "{{ .spec.list }}"),
    ]);
    let root = node!({"spec": {"name": "pond", "n": 3, "list": [1, 2]}});
    let cases = [
        ("{{ padded }}", node!("pond")),
        ("{{ yes }}", node!(true)),
        ("{{ no }}", node!(false)),
        ("{{ number }}", node!("3")),
        ("{{ nothing }}", node!("")),
        ("{{ list }}", node!("[1 2]")),
        ("<{{ padded }}|{{ no }}>", node!("<pond|false>")),
        ("{{ padded | toUpper }}", node!("POND")),
        (
            "{{ printf \"%s-%v\" padded (toInt number) }}",
            node!("pond-3"),
        ),
        ("{{ ternary yes \"a\" \"b\" }}", node!("a")),
        ("{{ if not no }}{{ padded }}{{ end }}", node!("pond")),
        ("{{ $x := padded }}{{ $x }}", node!("pond")),
    ];
    for (source, expected) in cases {
        assert_eq!(value(source, &functions, &root), Ok(expected), "{source}");
    }
}

#[test]
fn a_note_sees_the_root_data_and_neither_the_callers_variables_nor_its_dot() {
    let functions = sound(&[
        ("where", "{{ .item }}:{{ $.item }}"),
        (
            "inner",
            "{{ $x := .item }}{{ $x }}{{ with .spec }}{{ .a }}{{ end }}",
        ),
    ]);
    let root = node!({"item": "east", "spec": {"a": 1, "list": [{"item": "wrong"}]}});
    for source in [
        "{{ where }}",
        "{{ range .spec.list }}{{ where }}{{ end }}",
        "{{ with .spec }}{{ where }}{{ end }}",
        "{{ $item := 7 }}{{ where }}",
    ] {
        let given = value(source, &functions, &root);
        assert_eq!(given, Ok(Node::from("east:east")), "{source}");
    }
    let given = value("{{ $x := 9 }}{{ inner }}{{ $x }}", &functions, &root);
    assert_eq!(given, Ok(Node::from("east19")));
    let (_, problems) = compile(&[("bad", "{{ $caller }}")]);
    assert_eq!(
        problems,
        ["0 expression error: undeclared variable `$caller`"]
    );
}

#[test]
fn notes_call_each_other_in_whatever_order_they_are_declared() {
    let functions = sound(&[
        ("host", "{{ label }}.{{ zone }}"),
        ("zone", "{{ .spec.zone | default region }}"),
        ("label", "{{ .metadata.name }}"),
        ("region", "eu"),
    ]);
    let root = node!({"metadata": {"name": "pond"}});
    assert_eq!(
        value("{{ host }}", &functions, &root),
        Ok(Node::from("pond.eu"))
    );
}

#[test]
fn a_note_hides_a_built_in_one_with_a_warning_unless_that_is_meant() {
    let (functions, problems) = compile(&[("toUpper", "mine")]);
    assert_eq!(
        problems,
        ["0 name warning: `toUpper` hides the built-in function of this name"]
    );
    assert_eq!(
        value("{{ toUpper }}", &functions, &Node::Null),
        Ok(Node::from("mine"))
    );
    let meant = FunctionSource {
        name: "toUpper",
        expression: "mine",
        shadow: true,
    };
    assert_eq!(Functions::compile(&[meant]).1, []);
    // Aliases are checked like names.
    assert_eq!(compile(&[("upper", "x")]).1.len(), 1);
    // Without the declared notes, the built-in note is visible again.
    assert_eq!(
        Template::parse("{{ toUpper \"a\" }}")
            .map_err(|_| ())
            .map(|_| ()),
        Ok(())
    );
}

#[test]
fn a_note_takes_no_arguments_and_has_no_fields() {
    let functions = sound(&[("tier", "x")]);
    for (source, message) in [
        (
            "{{ tier 1 }}",
            "`tier` is a function of the Katalog and takes no arguments",
        ),
        (
            "{{ .a | tier }}",
            "`tier` is a function of the Katalog and takes no arguments",
        ),
        ("{{ tier.x }}", "`tier` is text, which has no fields"),
        ("{{ tear }}", "unknown function `tear`"),
    ] {
        let errors = Template::parse_with(source, &functions).unwrap_err();
        assert_eq!(errors.len(), 1, "{source}");
        assert_eq!(errors[0].message, message, "{source}");
    }
}

#[test]
fn a_mistyped_name_is_answered_with_the_note_that_is_near() {
    let functions = sound(&[("replicasByTier", "x")]);
    let errors = Template::parse_with("{{ replicaByTier }}", &functions).unwrap_err();
    assert_eq!(
        errors[0].hint.as_deref(),
        Some("did you mean `replicasByTier`?")
    );
}

#[test]
fn an_error_inside_a_note_is_an_error_of_its_caller_and_says_where() {
    let functions = sound(&[
        ("outer", "{{ inner }}"),
        ("inner", "{{ toInt .spec.secret }}"),
    ]);
    let root = node!({"spec": {"secret": "hunter2"}});
    let error = value("{{ .spec.x }}-{{ outer }}", &functions, &root).unwrap_err();
    assert_eq!(error.offset, 17);
    assert_eq!(
        error.message,
        "in the function `inner`: `toInt` was given text that is not a number"
    );
}

#[test]
fn a_template_reads_what_the_notes_that_it_calls_read() {
    let functions = sound(&[("a", "{{ .spec.a }}{{ b }}"), ("b", "{{ .status.b }}")]);
    let template = parsed(
        "{{ .metadata.name }}{{ if .x }}{{ a }}{{ end }}",
        &functions,
    );
    let reads: Vec<String> = template.reads().iter().map(Path::to_string).collect();
    assert_eq!(reads, ["metadata.name", "spec.a", "status.b", "x"]);
}

#[test]
fn templates_of_one_source_with_other_notes_are_other_templates() {
    let (one, other) = (sound(&[("a", "1")]), sound(&[("a", "2")]));
    let same = sound(&[("a", "1"), ("unrelated", "{{ .x }}")]);
    let template = |functions: &Functions| parsed("{{ a }}!", functions);
    assert_ne!(template(&one), template(&other));
    assert_eq!(template(&one), template(&same));
    let text = |functions: &Functions| value("{{ a }}!", functions, &Node::Null);
    assert_eq!(text(&one), Ok(Node::from("1!")));
    assert_eq!(text(&other), Ok(Node::from("2!")));
    // The template also depends on the notes that a called note calls.
    let deep = |b| sound(&[("a", "{{ b }}"), ("b", b)]);
    assert_ne!(template(&deep("1")), template(&deep("2")));
    assert_eq!(template(&deep("1")), template(&deep("1")));
    // A template that calls no note is shared between all sets of notes.
    let plain = |functions: &Functions| parsed("{{ .spec.plain }}", functions);
    assert!(std::ptr::eq(plain(&one).source(), plain(&other).source()));
}

#[test]
fn one_budget_covers_all_notes_that_are_called() {
    let names: Vec<(String, String)> = (0..40)
        .map(|n| {
            let expression = match n {
                0 => "xxxxxxxxxxxxxxxx".to_owned(),
                n => format!("{{{{ n{} }}}}{{{{ n{} }}}}", n - 1, n - 1),
            };
            (format!("n{n}"), expression)
        })
        .collect();
    let declared: Vec<(&str, &str)> = names.iter().map(|(a, b)| (&**a, &**b)).collect();
    let functions = sound(&declared);
    let begun = std::time::Instant::now();
    let error = value("{{ n39 }}", &functions, &Node::Null).unwrap_err();
    assert_eq!(error.kind, crate::EvalErrorKind::Budget);
    assert!(begun.elapsed().as_millis() < 2000, "{:?}", begun.elapsed());
}

#[test]
fn notes_are_not_nested_without_end_and_not_without_number() {
    let chain = |count: usize| {
        let names: Vec<(String, String)> = (0..count)
            .map(|n| (format!("n{n}"), format!("{{{{ n{} }}}}", n + 1)))
            .chain([(format!("n{count}"), "x".to_owned())])
            .collect();
        let declared: Vec<(&str, &str)> = names.iter().map(|(a, b)| (&**a, &**b)).collect();
        compile(&declared)
    };
    let (functions, problems) = chain(49);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        value("{{ n0 }}", &functions, &Node::Null),
        Ok(Node::from("x"))
    );
    let (_, problems) = chain(50);
    assert_eq!(
        problems,
        ["0 name error: `n0` calls functions that call functions, 51 levels deep"]
    );
    let (_, problems) = chain(2000);
    assert!(
        problems
            .iter()
            .any(|reported| reported.contains("more than 1000 functions"))
    );
}

#[test]
fn what_a_note_draws_or_asks_for_counts_for_its_callers() {
    let functions = sound(&[
        ("plain", "x"),
        ("outer", "{{ plain }}{{ key }}"),
        ("key", "{{ randomHex 4 }}"),
        ("today", "{{ if weekday }}{{ plain }}{{ end }}"),
    ]);
    for (source, random, clock) in [
        ("{{ plain }}", None, false),
        ("ab {{ outer }}{{ key }}", Some(6), false),
        ("{{ today }}", None, true),
        (
            "{{ .x }}{{ if .y }}{{ key | print }}{{ today }}{{ end }}",
            Some(22),
            true,
        ),
    ] {
        let template = parsed(source, &functions);
        assert_eq!(template.random_offset(), random, "{source}");
        assert_eq!(
            (template.is_random(), template.reads_clock()),
            (random.is_some(), clock)
        );
    }
}
