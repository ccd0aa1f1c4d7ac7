//! Inputs that would use unlimited time or memory without limits: templates, documents, plans and passes.
//!
//! Each one ends in an error, or in a result if the input is only large. The tests limit its time and memory; the benchmark
//! prints them.
//!
//! There is no bomb with a user's regular expression, because no note of the language compiles one.

use std::fmt::Write as _;

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::document::read_stream;
use orkestra_object::value::Node;
use orkestra_plan::{self, KatalogRef, definitions::Schemas};
use orkestra_template::{Data, EvalBudget, FunctionSource, Functions, Template};
use serde_json::json;

/// The length of the longest text.
const MEBIBYTE: usize = 1 << 20;

/// The notes that parse a text as JSON or YAML.
const READERS: &[&str] = &["asMap .text", "asList .text", "isValidJSON .text"];

/// The notes that parse a text as another type.
const PARSERS: &[&str] = &[
    "semverValid .text",
    "semverConstraint \"1.2.3\" .text",
    "cronValid .text",
    "nextCron .text",
    "cronNormalize .text",
    "isValidImageRef .text",
    "isValidURL .text",
    "isValidGitRepository .text",
    "parseQuantity .text",
    "sumQuantity .text .text",
    "durationValid .text",
    "timeFormat \"2026-05-08\" .text",
    "cidrContains .text \"10.0.0.1\"",
    "domainBare .text",
    "toFloat .text",
    "fromBase64 .text",
];

/// The result of a bomb; an error has the first line of the message.
pub(crate) type End = Result<(), String>;

/// A bomb: its name, a function that builds the input, and a function that runs it. The time of the former is not counted.
pub(crate) struct Bomb {
    pub(crate) name: &'static str,
    build: fn() -> String,
    run: fn(&str) -> End,
}

impl Bomb {
    /// Returns the input.
    pub(crate) fn input(&self) -> String {
        (self.build)()
    }

    /// Runs the bomb and returns the error's message.
    pub(crate) fn explode(&self, input: &str) -> String {
        match (self.run)(input) {
            Ok(()) => panic!("{} is not refused", self.name),
            Err(said) => said,
        }
    }
}

macro_rules! bombs {
    ($($name:literal: $run:ident($build:expr),)*) => {
        /// All of them.
        pub(crate) static BOMBS: &[Bomb] = &[$(Bomb { name: $name, build: || $build, run: $run },)*];
    };
}

bombs! {
    "an endless loop": evaluated("{{ range 9000000000000000000 }}{{ end }}".into()),
    "an endless loop that prints": evaluated("{{ range 9000000000000000000 }}x{{ end }}".into()),
    "ten nested loops": evaluated(nested("{{ range 1000 }}", "x", "{{ end }}", 10)),
    "ten nested loops over a list": evaluated(nested("{{ range $.list }}", "", "{{ end }}", 10)),
    "a text that doubles": evaluated(doubling("printf \"%s%s\" $s $s")),
    "a text that replaces itself by itself": evaluated(doubling("replace $s \"\" $s")),
    "a list that doubles": evaluated(doubling("join (split $s \"\") $s")),
    "a mebibyte, printed a hundred times": evaluated("{{ range 100 }}{{ $.big }}{{ end }}".into()),
    "a mebibyte, made a hundred times": evaluated("{{ range 100 }}{{ $x := printf \"%1000000s\" \"\" }}{{ end }}".into()),
    "a mebibyte, compared for ever": evaluated("{{ range 1000000 }}{{ $x := eq $.big $.big }}{{ end }}".into()),
    "all of the data, as text, for ever": evaluated("{{ range 1000000 }}{{ len (toString $) }}{{ end }}".into()),
    "widths and precisions of a million": evaluated("{{ printf \"%1000000d%.1000000f%1000000s\" 1 1.5 \"\" }}".into()),
    "data that is nested a thousand levels deep": evaluated("{{ .deep }}".into()),
    "ten thousand lists in a text that notes read": reported(noted(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)), READERS)),
    "ten thousand open lists in a text that notes read": reported(noted(&"[".repeat(10_000), READERS)),
    "ten thousand maps in a text that notes read": reported(noted(&format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)), READERS)),
    "ten thousand dashes in a text that notes read": reported(noted(&"- ".repeat(10_000), READERS)),
    "as many levels as a text that notes read may have": reported(noted(&format!("{}{}", "[ ".repeat(63), "]".repeat(63)), READERS)),
    "a mebibyte of lists in a text that notes read": reported(noted(&"[".repeat(MEBIBYTE), READERS)),
    "a mebibyte of values in a text that notes read": reported(noted(&format!("[{}1]", "1,".repeat(MEBIBYTE / 2 - 2)), READERS)),
    "a billion laughs in a text that notes read": reported(noted(&laughs(), READERS)),
    "a mebibyte of digits": reported(noted(&"1".repeat(MEBIBYTE), PARSERS)),
    "a mebibyte of digits and dots": reported(noted(&"1.".repeat(MEBIBYTE / 2), PARSERS)),
    "a mebibyte of letters": reported(noted(&"a".repeat(MEBIBYTE), PARSERS)),
    "a mebibyte of slashes": reported(noted(&"a/".repeat(MEBIBYTE / 2), PARSERS)),
    "a mebibyte of constraints": reported(noted(&">=1.0.0 <2 || ".repeat(MEBIBYTE / 14), PARSERS)),
    "a mebibyte of constraints with commas": reported(noted(&format!("{}1", ">=1,".repeat(MEBIBYTE / 4 - 1)), PARSERS)),
    "a mebibyte of minutes": reported(noted(&format!("{}1 * * * *", "1-59/2,".repeat(MEBIBYTE / 7 - 2)), PARSERS)),
    "a mebibyte of stars": reported(noted(&"* ".repeat(MEBIBYTE / 2), PARSERS)),
    "a mebibyte of durations": reported(noted(&"1h".repeat(MEBIBYTE / 2), PARSERS)),
    "a mebibyte of colons": reported(noted(&":".repeat(MEBIBYTE), PARSERS)),
    "a mebibyte of percent signs": reported(noted(&"%".repeat(MEBIBYTE), PARSERS)),
    "notes that call others twice, fifty levels deep": with_notes(String::new()),
    "ten thousand parentheses": parsed(format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000))),
    "ten thousand calls in each other": parsed(format!("{{{{ {}1{} }}}}", "(len ".repeat(10_000), ")".repeat(10_000))),
    "ten thousand blocks in each other": parsed(nested("{{ if .x }}", "", "{{ end }}", 10_000)),
    "a mebibyte of unknown notes": parsed("{{ frobnicate . }}".repeat((1 << 20) / 18)),
    "a mebibyte of openings": parsed("{{ if ".repeat((1 << 20) / 6)),
    "a mebibyte of variables": parsed("{{ $x := 1 }}".repeat((1 << 20) / 13)),
    "ten thousand lists in each other": read(format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000))),
    "ten thousand maps in each other": read("{a: ".repeat(10_000)),
    "ten thousand levels of indentation": read((0..2_000).fold(String::new(), |text, n| text + &" ".repeat(n) + "a:\n")),
    "ten thousand dashes": read("- ".repeat(10_000)),
    "a billion laughs": read(laughs()),
    "merge keys that double": read(merges()),
    "an alias of itself": read("a: &a [*a]".into()),
    "four mebibytes of escapes": read(format!("a: \"{}\"", "\\\"".repeat((2 << 20) - 10))),
    "two million values": read(format!("a: [{}]", "1,".repeat(2_000_000))),
    "four mebibytes and more": read(format!("a: \"{}\"", "x".repeat(4 << 20))),
    "a thousand documents and more": read("---\na\n".repeat(2_000)),
    "a Katalog whose template is nested too deeply": compiled(katalog(&format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)))),
    "a Katalog of ten thousand wrong templates": compiled(wrong_templates()),
    "a Katalog of ten thousand unknown fields": compiled(unknown_fields()),
    "a Katalog of ten thousand warnings and a mistake": compiled(warnings()),
    "a Katalog whose templates are bombs": passed(katalog("range 9000000000000000000 }}{{ end")),
    "a Katalog whose texts double": passed(katalog(
        "$s := \"xxxxxxxxxxxxxxxx\" }}{{ range 60 }}{{ $s = printf \"%s%s\" $s $s }}{{ end }}{{ $s"
    )),
}

fn nested(open: &str, inner: &str, close: &str, levels: usize) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

fn doubling(what: &str) -> String {
    format!(
        "{{{{ $s := \"xxxxxxxxxxxxxxxx\" }}}}{{{{ range 60 }}}}{{{{ $s = {what} }}}}{{{{ end }}}}{{{{ len $s }}}}"
    )
}

fn laughs() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let alias = format!("*a{}", n - 1);
        let _ = writeln!(text, "a{n}: &a{n} [{}]", [alias.as_str(); 10].join(", "));
    }
    text
}

fn merges() -> String {
    let mut text = "a0: &a0 {x: 1}\n".to_owned();
    for n in 1..30 {
        let alias = format!("*a{}", n - 1);
        let _ = writeln!(
            text,
            "a{n}: &a{n} {{k{n}: {alias}, l{n}: {alias}, <<: {alias}}}"
        );
    }
    text
}

/// Returns a Katalog with one `ConfigMap` whose data is this action.
fn katalog(action: &str) -> String {
    let action = action.replace('\\', "\\\\").replace('"', "\\\"");
    with_data(&format!("a: \"{{{{ {action} }}}}\""))
}

fn wrong_templates() -> String {
    let entries = (0..10_000).map(|n| format!("a{n}: \"{{{{ frobnicate{n} .spec.x }}}}\""));
    with_data(&entries.collect::<Vec<_>>().join(", "))
}

fn unknown_fields() -> String {
    let fields = (0..10_000).map(|n| format!("conffigMap{n}: 1"));
    with_data("").replace("data: {  }", &fields.collect::<Vec<_>>().join(", "))
}

fn warnings() -> String {
    let entries = (0..10_000).map(|n| format!("a{n}: \"{{{{ spec.x{n} }}}}\""));
    with_data(&(entries.collect::<Vec<_>>().join(", ") + ", b: \"{{ nope }}\""))
}

fn with_data(entries: &str) -> String {
    format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: bombs }}\nspec: {{ crds: {{ pond: {{ \
         apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}, operatorBox: {{ onReconcile: {{ \
         configMaps: [{{ data: {{ {entries} }} }}] }} }} }} }} }}\n"
    )
}

fn parsed(source: &str) -> End {
    match Template::parse(source) {
        Ok(_) => Ok(()),
        Err(errors) => Err(errors[0].to_string()),
    }
}

fn evaluated(source: &str) -> End {
    let template = Template::parse(source).map_err(|errors| errors[0].to_string())?;
    let mut deep = Node::Null;
    for _ in 0..1000 {
        deep = Node::from(vec![deep]);
    }
    let (big, list) = (
        Node::from("x".repeat(1 << 20)),
        Node::from(&json!(vec![0; 1_000])),
    );
    let data = Data::new().with("deep", &deep);
    let data = data.with("big", &big).with("list", &list);
    let text = template.render_text(&data, &mut EvalBudget::default());
    text.map(|_| ()).map_err(|error| error.to_string())
}

/// Returns one line for each note that reads the text, and then the text.
fn noted(text: &str, notes: &[&str]) -> String {
    let actions = notes.iter().map(|note| format!("{{{{ {note} }}}}\n"));
    actions.chain(["\n".to_owned(), text.to_owned()]).collect()
}

/// Runs the notes on a text, one after the other. If the text is only large, they may return a result.
fn reported(input: &str) -> End {
    let (actions, text) = input.split_once("\n\n").unwrap();
    let text = Node::from(text);
    let data = Data::new().with("text", &text);
    let mut said = String::new();
    for action in actions.lines() {
        let template = Template::parse(action).unwrap();
        said += &match template.render_text(&data, &mut EvalBudget::default()) {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
    }
    Err(said)
}

/// Compiles a user's notes: `n0` calls `n1` twice, and so on.
fn with_notes(_: &str) -> End {
    let names: Vec<String> = (0..50).map(|n| format!("n{n}")).collect();
    let expressions: Vec<String> = (1..=50)
        .map(|n| match n {
            50 => "x".to_owned(),
            n => format!("{{{{ n{n} }}}}{{{{ n{n} }}}}"),
        })
        .collect();
    let declared: Vec<FunctionSource<'_>> = names
        .iter()
        .zip(&expressions)
        .map(|(name, expression)| FunctionSource {
            name,
            expression,
            shadow: false,
        })
        .collect();
    let (functions, problems) = Functions::compile(&declared);
    if let Some(problem) = problems.first() {
        return Err(problem.error.to_string());
    }
    let template = Template::parse_with("{{ n0 }}", &functions).map_err(|e| e[0].to_string())?;
    let text = template.render_text(&Data::new(), &mut EvalBudget::default());
    text.map(|_| ()).map_err(|error| error.to_string())
}

fn read(text: &str) -> End {
    let read = read_stream("bomb.yaml", text);
    read.map(|_| ()).map_err(|problems| problems.to_string())
}

fn compile(text: &str) -> Result<orkestra_plan::Plan, String> {
    let (documents, _) = read_stream("bomb.yaml", text).map_err(|problems| problems.to_string())?;
    let katalog = KatalogRef::new("default".into(), "bombs".into());
    let spec = &documents.katalogs[0].spec;
    let compiled = compile::katalog(&katalog, spec, &Schemas::default(), &Library::default());
    let (plan, _) = compiled.map_err(|mut problems| {
        problems.locate(&documents.katalogs[0].tree, Some("bomb.yaml"));
        problems.to_string()
    })?;
    Ok(plan)
}

fn compiled(text: &str) -> End {
    compile(text).map(|_| ())
}

fn passed(text: &str) -> End {
    let plan = compile(text)?;
    let object = json!({
        "apiVersion": "water.example/v1", "kind": "Pond", "spec": {},
        "metadata": { "name": "pond", "namespace": "east", "uid": "u", "resourceVersion": "1" },
    });
    let cycle = super::passes::first(&plan.operators[0], &object);
    match cycle.failures.first() {
        Some(failure) => Err(failure.message.clone()),
        None => Ok(()),
    }
}
