//! Generates `docs/reference/openapi.json` and the tables of `docs/reference/http-api.md` from the types of the responses.
//!
//! ```text
//!  answers ─► schemars ─┬─► OpenAPI 3.1 ─► docs/reference/openapi.json
//!                       └─► tables ─┐
//!             http-api.md ──────────┴────► docs/reference/http-api.md
//! ```

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{
    ApiError,
    answers::{Health, Index, Instance, Instances, Operator, Summary},
};

/// The text of `docs/reference/http-api.md`; a line `{{Name}}` stands for the table of that schema.
const PROSE: &str = include_str!("http-api.md");
/// The reference prefix of schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// The schemas of all responses, by name.
fn schemas() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    generator.subschema_for::<Index>();
    generator.subschema_for::<Summary>();
    generator.subschema_for::<Operator>();
    generator.subschema_for::<Health>();
    generator.subschema_for::<Instances>();
    generator.subschema_for::<Instance>();
    generator.subschema_for::<ApiError>();
    generator.take_definitions(true)
}

/// A response with a schema.
fn answer(description: &str, schema: &str) -> Value {
    let reference = format!("{SCHEMAS}{schema}");
    json!({"description": description, "content": {"application/json": {"schema": {"$ref": reference}}}})
}

fn text(description: &str) -> Value {
    json!({"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}})
}

fn parameter(name: &str, place: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "in": place, "required": place == "path", "description": description, "schema": schema})
}

/// The parameters of a path, from its braces.
fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    let described = names.map(|name| {
        let description = match name {
            "katalogNamespace" => "Namespace of the Katalog.",
            "katalog" => "Name of the Katalog.",
            "crd" => "Entry of the Katalog's `spec.crds`.",
            "namespace" => "Namespace of the custom resource.",
            _ => "Name of the custom resource.",
        };
        parameter(name, "path", description, &json!({"type": "string"}))
    });
    described.collect()
}

/// A page that requires a token, at a path and with further responses.
fn page(summary: &str, path: &str, query: Vec<Value>, answers: &[(&str, Value)]) -> Value {
    let parameters = [path_parameters(path), query].concat();
    let mut responses = Map::new();
    for (code, description) in [
        ("401", "The bearer token is missing or not valid."),
        ("403", "The token's user cannot get the path."),
        ("429", "Too many requests from this address were refused."),
        (
            "503",
            "The bearer token cannot be reviewed, or too many requests wait.",
        ),
    ] {
        responses.insert(code.to_owned(), answer(description, "Error"));
    }
    if path.contains('{') {
        let missing = answer("The page or object does not exist.", "Error");
        responses.insert("404".to_owned(), missing);
        let ambiguous = answer(
            "The name is ambiguous; `candidates` lists the matches.",
            "Error",
        );
        responses.insert("409".to_owned(), ambiguous);
    }
    responses.extend(
        answers
            .iter()
            .map(|(code, answer)| ((*code).to_owned(), answer.clone())),
    );
    json!({"get": {"summary": summary, "parameters": parameters, "responses": responses, "security": [{"bearer": []}]}})
}

fn probe(summary: &str) -> Value {
    let responses = json!({"200": text("Success."), "503": text("Failure, with the reasons.")});
    json!({"get": {"summary": summary, "responses": responses, "security": []}})
}

fn list_parameters() -> Vec<Value> {
    vec![
        parameter(
            "field",
            "query",
            "Path of a field whose value is added to each item, such as `spec.image`.",
            &json!({"type": "string", "maxLength": 256}),
        ),
        parameter(
            "namespace",
            "query",
            "Only the custom resources of this namespace.",
            &json!({"type": "string"}),
        ),
        parameter(
            "limit",
            "query",
            "Maximum number of custom resources.",
            &json!({"type": "integer", "minimum": 1, "maximum": 500, "default": 500}),
        ),
        parameter(
            "continue",
            "query",
            "The value of `continue` in the previous page.",
            &json!({"type": "string"}),
        ),
    ]
}

/// The responses of pages that read from the API server.
fn live(found: &str, schema: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("200", answer(found, schema)),
        (
            "400",
            answer("A parameter or a name is not valid.", "Error"),
        ),
        (
            "410",
            answer("The token of `continue` has expired.", "Error"),
        ),
        (
            "502",
            answer(
                "The API server rejected the request or did not respond.",
                "Error",
            ),
        ),
        (
            "504",
            answer("The API server took longer than 10 s.", "Error"),
        ),
    ]
}

/// The pages of operators, below the long and below the short path.
fn operator_pages(paths: &mut Map<String, Value>) {
    let well = "The operator is started, healthy or on standby.";
    let unwell = "The operator is degraded or pending; or the bearer token cannot be reviewed, with an `Error`.";
    let health = [
        ("200", answer(well, "Health")),
        ("503", answer(unwell, "Health")),
    ];
    let instance = live("The custom resource.", "Instance");
    for root in [
        "/katalog/{katalogNamespace}/{katalog}/{crd}",
        "/katalog/{crd}",
    ] {
        let mut add = |below: &str, summary: &str, query, answers: &[(&str, Value)]| {
            let path = format!("{root}{below}");
            let page = page(summary, &path, query, answers);
            paths.insert(path, page);
        };
        add(
            "",
            "An operator.",
            vec![],
            &[("200", answer("The operator.", "Operator"))],
        );
        add("/health", "Health of an operator.", vec![], &health);
        let list = live("The custom resources.", "Instances");
        add(
            "/cr",
            "Custom resources of an operator.",
            list_parameters(),
            &list,
        );
        for below in ["/cr/{name}", "/cr/{namespace}/{name}"] {
            add(
                below,
                "A custom resource with its children.",
                vec![],
                &instance,
            );
        }
    }
}

/// The `OpenAPI` document.
fn document() -> Value {
    let mut paths = Map::new();
    for (path, summary) in [
        ("/livez", "Whether the process is alive."),
        (
            "/readyz",
            "Whether the process is running its operators, or is ready to take over.",
        ),
        ("/startup", "Whether the caches have been filled once."),
    ] {
        paths.insert(path.to_owned(), probe(summary));
    }
    let index = answer("The pages of this port; HTML for browsers.", "Index");
    let index =
        json!({"get": {"summary": "What is where.", "responses": {"200": index}, "security": []}});
    paths.insert("/".to_owned(), index);
    let metrics = [("200", text("Metrics in Prometheus' text format."))];
    paths.insert(
        "/metrics".to_owned(),
        page("Metrics.", "/metrics", vec![], &metrics),
    );
    let own = json!({"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}});
    let own = [("200", own)];
    paths.insert(
        "/openapi/v3".to_owned(),
        page("This document.", "/openapi/v3", vec![], &own),
    );
    let summary = [(
        "200",
        answer("A summary of all Katalogs and operators.", "Summary"),
    )];
    paths.insert(
        "/katalog".to_owned(),
        page(
            "A summary of all Katalogs and operators.",
            "/katalog",
            vec![],
            &summary,
        ),
    );
    operator_pages(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Orkestra",
            "version": orkestra_ground::VERSION,
            "description": "The HTTP API of `ork controller` and `ork run`. It is read-only.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer",
                "description": "A token that the API server accepts; its user needs the verb `get` on the path. No token is needed on a loopback address or with `--insecure-http`."}},
        },
    })
}

/// Describes a type in words.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return format!("`{}`", reference.trim_start_matches(SCHEMAS));
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let types: Vec<String> = alternatives.iter().map(type_of).collect();
        return types.join(" or ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return "anything".to_owned(),
    };
    let words = types.into_iter().map(|word| match word {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" => match &schema["additionalProperties"] {
            Value::Object(_) => format!("map of {}", type_of(&schema["additionalProperties"])),
            _ => "object".to_owned(),
        },
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// The table of a schema's fields, required fields first, in order.
fn table(schema: &Value) -> String {
    let mut table = "| field | type | meaning |\n| --- | --- | --- |\n".to_owned();
    let none = Map::new();
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().unwrap_or(&none) {
        let always = required.is_some_and(|names| names.iter().any(|one| one == name.as_str()));
        let meaning = field["description"].as_str().unwrap_or_default();
        let mut words = type_of(field);
        if !always {
            let present = words.trim_end_matches(" or null");
            words = format!("{present}; omitted if there is none");
        }
        let _ = writeln!(table, "| `{name}` | {words} | {meaning} |");
    }
    table
}

/// Renders `docs/reference/http-api.md`.
fn page_of_prose() -> String {
    let schemas = schemas();
    let mut page = String::new();
    for line in PROSE.lines() {
        let name = line
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        match name.map(|name| (name, schemas.get(name))) {
            None => page.push_str(line),
            Some((_, Some(schema))) => page.push_str(table(schema).trim_end()),
            Some((name, None)) => panic!("there is no schema {name}"),
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_committed_documents_are_current() {
    let document = serde_json::to_string_pretty(&document()).unwrap();
    orkestra_testkit::assert_document("docs/reference/openapi.json", &format!("{document}\n"));
    orkestra_testkit::assert_document("docs/reference/http-api.md", &page_of_prose());
}

#[test]
fn every_schema_has_its_table_and_every_field_its_meaning() {
    for (name, schema) in schemas() {
        let is_enum = schema.get("oneOf").is_some();
        let is_reported = PROSE.contains(&format!("{{{{{name}}}}}"));
        assert!(
            is_enum || is_reported,
            "{name} has no table in crates/http_api/src/http-api.md"
        );
        let fields = schema["properties"].as_object().into_iter().flatten();
        for (field, schema) in fields {
            assert!(
                schema["description"].is_string(),
                "{name}.{field} is not described"
            );
        }
    }
}
