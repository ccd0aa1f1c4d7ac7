//! `make bench-core`: the cost of compiling, passes and templates, compared with Go's text/template, and the outcome of the
//! bombs.
//!
//! Go's figures come from `hack/go-templates` in the same run. `GO_TEMPLATES` names the file with them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that fails has no meaning"
)]

#[path = "../tests/bombs/mod.rs"]
mod bombs;
#[path = "../tests/passes/mod.rs"]
mod passes;

use std::{
    collections::BTreeMap,
    env, fs,
    hint::black_box,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use divan::Bencher;
use jiff::Timestamp;
use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::{
    conversion,
    reconcile::step::{StepResult, step},
};
use orkestra_language::document::read_stream;
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, OperatorPlan, Plan, definitions::Schemas};
use orkestra_template::{Data, Entropy, EvalBudget, Template};
use serde_json::{Value, json};

/// The environment variable with the shape of expressions that a separate process measures.
const SHAPE: &str = "ORKESTRA_SHAPE";

fn main() {
    if let Ok(shape) = env::var(SHAPE) {
        println!("{}", bytes_of(&shape));
        return;
    }
    divan::main();
    // The other measurements take long and are not needed when the benchmarks run as tests.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    conversions_of_ten_kilobytes();
    bytes_an_expression();
    beside_go();
    ends_of_bombs();
}

/// Returns an object of 10 kB in version `v1`.
fn of_ten_kilobytes() -> Value {
    let mut spec = shop()["spec"].clone();
    spec["schedule"] = json!("30 3 * * *");
    json!({
        "apiVersion": "shop.example/v1", "kind": "Shop", "metadata": { "name": "a" }, "spec": spec,
    })
}

/// Measures 100,000 conversions from bytes to bytes. Prints percentiles, because the API server waits for each conversion.
fn conversions_of_ten_kilobytes() {
    const COUNT: usize = 100_000;
    let plan = plan_of(CONVERSION);
    let bytes = of_ten_kilobytes().to_string();
    let mut took = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let start = Instant::now();
        let object: Node = serde_json::from_str(&bytes).unwrap();
        let done = conversion::convert(&plan.conversions[0], object, "shop.example/v2").unwrap();
        black_box(serde_json::to_vec(&done).unwrap());
        took.push(start.elapsed());
    }
    took.sort_unstable();
    let [p50, p99] = [50, 99].map(|percent| took[COUNT * percent / 100 - 1]);
    println!(
        "{COUNT} conversions of {} bytes, from bytes to bytes: p50 {p50:?}, p99 {p99:?}, the slowest {:?}",
        bytes.len(),
        took[COUNT - 1]
    );
}

/// A conversion from one version to another, with a template and the schema of the result.
#[divan::bench]
fn a_conversion_of_ten_kilobytes(bencher: Bencher) {
    let plan = plan_of(CONVERSION);
    let object = Node::from(&of_ten_kilobytes());
    let convert = |object| conversion::convert(&plan.conversions[0], object, "shop.example/v2");
    bencher
        .with_inputs(|| object.clone())
        .bench_local_values(|object| convert(object).unwrap());
}

const CONVERSION: &str = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: bench }
spec:
  crds:
    shop:
      apiTypes: { group: shop.example, version: v1, kind: Shop, plural: shops }
      conversion:
        storageVersion: v2
        paths:
          - { from: v1, to: v2, spec: { schedule: '{{ cronToMap .spec.schedule }}' } }
          - { from: v2, to: v1, spec: { schedule: '{{ cronFromMap .spec.schedule }}' } }
";

/// From text to plan. The plan is dropped each time, so that no template of it is reused by the next one.
#[divan::bench]
fn read_and_compile_a_katalog_of_500_lines(bencher: Bencher) {
    let text = five_hundred_lines();
    bencher.bench_local(|| drop(plan_of(&text)));
}

/// A first pass, before any child exists.
#[divan::bench]
fn a_pass_of_ten_children_over_ten_kilobytes(bencher: Bencher) {
    let plan = ten_children();
    let (observed, scopes) = (passes::observed(&plan, &shop()), passes::scopes(&plan));
    let entropy = Entropy::seeded([7; 32]);
    let decide = || match step(&plan, &scopes, &observed, Timestamp::UNIX_EPOCH, &entropy) {
        StepResult::Done(cycle) => cycle,
        StepResult::Need(reads) => panic!("{reads:?}"),
    };
    let cycle = decide();
    assert_eq!((cycle.intents.len(), cycle.failures.len()), (10, 0));
    bencher.bench_local(decide);
}

/// One template for each note: the cost of a call.
#[divan::bench(args = [
    "{{ .spec.text }}",
    "{{ .spec.nope | default \"x\" }}",
    "{{ eq .spec.text \"a\" \"b\" }}",
    "{{ toLower .spec.text }}",
    "{{ replace .spec.text \"-\" \"_\" }}",
    "{{ printf \"%s-%d\" .spec.text 7 }}",
    "{{ index .spec.list 1 }}",
    "{{ join .spec.list \",\" }}",
    "{{ toInt \"42\" }}",
    "{{ ternary .spec.on \"a\" \"b\" }}",
])]
fn a_note(bencher: Bencher, source: &str) {
    let template = Template::parse(source).unwrap();
    let spec = Node::from(&json!({ "text": "Some-Text", "list": ["a", "b", "c"], "on": true }));
    let data = Data::new().with("spec", &spec);
    bencher.bench_local(|| {
        let value = template.eval(&data, &mut EvalBudget::default());
        black_box(value.is_ok())
    });
}

/// Returns a Katalog that contains each short form five times, in operators of five kinds.
fn five_hundred_lines() -> String {
    let text = include_str!("../tests/inputs/pass/everything.yaml");
    let (head, entry) = text.split_once("    pond:\n").unwrap();
    let mut all = head.to_owned();
    for n in 0..5 {
        let entry = entry.replace(
            "kind: Pond, plural: ponds",
            &format!("kind: Pond{n}, plural: pond{n}s"),
        );
        let entry = entry.replace(".spec.", &format!(".spec.p{n}."));
        all.extend([&format!("    pond{n}:\n"), &*entry]);
    }
    assert!((450..550).contains(&all.lines().count()));
    all
}

fn plan_of(text: &str) -> Plan {
    let (documents, _) = read_stream("bench.yaml", text).unwrap();
    let katalog = KatalogRef::new("default".into(), "bench".into());
    let spec = &documents.katalogs[0].spec;
    compile::katalog(&katalog, spec, &Schemas::default(), &Library::default())
        .unwrap()
        .0
}

fn ten_children() -> Arc<OperatorPlan> {
    plan_of(include_str!("ten-children.yaml")).operators[0].clone()
}

/// Returns a custom resource of ten kilobytes. Most of it is a list that the templates test and count.
fn shop() -> Value {
    let things: Vec<Value> = (0..185)
        .map(|n| json!({ "sku": format!("thing-{n:04}"), "price": n * 3, "stock": { "east": n } }))
        .collect();
    let object = json!({
        "apiVersion": "trade.example/v1", "kind": "Shop",
        "metadata": {
            "name": "teas", "namespace": "east", "uid": "0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10",
            "resourceVersion": "70", "labels": { "team": "tea" },
        },
        "spec": {
            "registry": "registry.example", "image": "shop", "tag": "1.4.2", "replicas": 3, "port": 8080,
            "tier": "front", "currency": "EUR", "region": "EU-West", "hosts": ["teas.example", "tea.example"],
            "catalogue": things,
        },
    });
    assert!(
        (9_000..12_000).contains(&object.to_string().len()),
        "{}",
        object.to_string().len()
    );
    object
}

/// Returns the resident memory of the process in bytes.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<usize>().ok())
        .unwrap_or(0)
        << 10
}

/// The name of a shape of expressions, and a function from a number to an expression of this shape.
type Shape = (&'static str, fn(usize) -> String);

static SHAPES: [Shape; 4] = [
    ("a path", |n| format!("{{{{ .spec.a{n}.name }}}}")),
    ("a path with a default", |n| {
        format!("{{{{ .spec.b{n} | default \"x\" }}}}")
    }),
    ("text and two paths", |n| {
        format!("{{{{ .metadata.name }}}}-{{{{ .spec.c{n} }}}}")
    }),
    ("a condition", |n| {
        format!("{{{{ if eq .spec.d{n} \"x\" }}}}a{{{{ else }}}}b{{{{ end }}}}")
    }),
];

/// Measures each shape in a separate process. In one process, memory that an earlier shape freed would be reused and not counted.
fn bytes_an_expression() {
    println!("\nbytes held per compiled expression, source, reads and sharing included");
    let program = env::current_exe().unwrap();
    for (name, _) in SHAPES {
        let ran = Command::new(&program).env(SHAPE, name).output().unwrap();
        let bytes = String::from_utf8(ran.stdout).unwrap();
        println!("{:>8}  {name}", bytes.trim());
    }
}

/// Compiles many different expressions and divides the growth of the process' memory by their number.
fn bytes_of(shape: &str) -> usize {
    const COUNT: usize = 100_000;
    let (_, source) = SHAPES.iter().find(|(name, _)| *name == shape).unwrap();
    // Allocate data that all expressions share before the measurement.
    let first = Template::parse(&source(COUNT)).unwrap();
    let before = resident_bytes();
    let held: Vec<Template> = (0..COUNT)
        .map(|n| Template::parse(&source(n)).unwrap())
        .collect();
    let grown = resident_bytes() - before;
    drop((first, held));
    grown / COUNT
}

/// Returns the time of one run: the fastest of several rounds, because other work of the machine affects it least.
fn time(mut run: impl FnMut()) -> Duration {
    const ROUNDS: u32 = 30;
    const TURNS: u32 = 1_000;
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..TURNS).for_each(|_| run());
        best = best.min(start.elapsed() / TURNS);
    }
    best
}

#[derive(serde::Deserialize)]
struct Shared {
    name: String,
    template: String,
}

/// Times the templates that Go has timed.
fn beside_go() {
    let hack = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/go-templates");
    let read = |file: &str| fs::read_to_string(format!("{hack}/{file}")).unwrap();
    let templates: Vec<Shared> = serde_json::from_str(&read("bench.json")).unwrap();
    let root: Node = serde_json::from_str(&read("data.json")).unwrap();
    let figures = env::var("GO_TEMPLATES")
        .ok()
        .map(|file| fs::read_to_string(file).unwrap());
    let figures = figures.unwrap_or_default();
    let go: BTreeMap<&str, f64> = figures
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(figure, name)| (name, figure.parse().unwrap()))
        .collect();
    println!("\n    ours       Go   Go/ours  template");
    for Shared { name, template } in templates {
        let template = Template::parse(&template).unwrap();
        let data = Data::of(&root);
        let ours = time(|| {
            let text = template.render_text(&data, &mut EvalBudget::default());
            black_box(text.is_ok());
        });
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds")]
        let ours = ours.as_nanos() as f64;
        match go.get(&*name) {
            Some(go) => println!("{ours:>6.0} ns {go:>6.0} ns {:>6.1}   {name}", go / ours),
            None => println!("{ours:>6.0} ns         -      -   {name}"),
        }
    }
}

/// Prints the time and the error of each bomb.
fn ends_of_bombs() {
    println!("\n inputs that must be refused within 100 ms");
    for bomb in bombs::BOMBS {
        let input = bomb.input();
        let start = Instant::now();
        let said: String = bomb.explode(&input).chars().take(60).collect();
        println!("{:>9.1?}  {}: {said}", start.elapsed(), bomb.name);
    }
}
