//! Drafts a Katalog for an existing `CustomResourceDefinition`.

use serde_json::{Map, Value, json};

use super::{
    CustomKind, Draft, at,
    input::{Error, Input, objects, wrong},
    is_plain, sample, text,
};
use orkestra_language::api::names;

/// The maximum number of fields in the generated `ConfigMap`.
const SHOWN: usize = 10;

/// Drafts a Katalog for one of the CRDs in `inputs`: the one of `kind`, or the only one.
///
/// The Katalog creates a Deployment for each custom resource whose spec has an `image`, else a `ConfigMap` with the fields
/// of the spec, as a starting point.
///
/// # Errors
/// [`Error`] if there is no CRD, several without a `kind`, or one that the API server would reject.
pub fn from_crd(inputs: &[Input], name: Option<&str>, kind: Option<&str>) -> Result<Draft, Error> {
    let crd = pick(objects(inputs)?, kind)?;
    let (kind, version) = read(&crd)?;
    let schema = &version["schema"]["openAPIV3Schema"];
    let is_namespaced = text(&crd, &["spec", "scope"]) != Some("Cluster");
    let mut left = Vec::new();
    if version["subresources"]["status"].is_null() {
        left.push(format!(
            "version {} has no status subresource: the operator writes no conditions",
            kind.version
        ));
    }
    let mut open = Vec::new();
    let mut made = Map::new();
    let properties = schema["properties"].as_object();
    let has_spec = properties.is_some_and(|all| all.contains_key("spec"));
    if has_spec {
        let spec = &schema["properties"]["spec"];
        made.insert("spec".to_owned(), filled(spec, &mut open));
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        let Some(field) = field.as_str() else {
            continue;
        };
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&field) {
            let below = &schema["properties"][field];
            made.insert(field.to_owned(), sample::value(below, field, &mut open));
        }
    }
    left.extend(open.into_iter().map(|why| format!("the sample: {why}")));
    let mut metadata = json!({ "name": format!("my-{}", kind.singular) });
    if is_namespaced {
        metadata["namespace"] = json!("default");
    }
    made.insert(
        "apiVersion".to_owned(),
        json!(format!("{}/{}", kind.group, kind.version)),
    );
    made.insert("kind".to_owned(), json!(kind.kind));
    made.insert("metadata".to_owned(), metadata);
    Ok(Draft {
        name: name.unwrap_or(&kind.singular).to_owned(),
        operator_box: operator_box(&schema["properties"]["spec"], is_namespaced),
        entry: Value::Null,
        sample: Value::Object(made),
        crd,
        kind,
        left,
    })
}

fn pick(objects: Vec<Value>, kind: Option<&str>) -> Result<Value, Error> {
    let kind_of = |crd: &Value| {
        text(crd, &["spec", "names", "kind"])
            .unwrap_or_default()
            .to_owned()
    };
    let mut crds: Vec<Value> = objects
        .into_iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .collect();
    if crds.is_empty() {
        let message = "the input has no CustomResourceDefinition";
        return Err(Error::Nothing(message.to_owned()));
    }
    if let Some(wanted) = kind {
        crds.retain(|crd| kind_of(crd) == wanted);
    }
    if crds.len() > 1 || kind.is_some() && crds.is_empty() {
        let kinds: Vec<String> = crds.iter().map(kind_of).collect();
        return Err(Error::Nothing(match kind {
            Some(kind) => {
                format!(
                    "the input does not have exactly one CustomResourceDefinition of the kind {kind}"
                )
            }
            None => format!(
                "the input has several CustomResourceDefinitions: name one of {} with --kind",
                kinds.join(", ")
            ),
        }));
    }
    crds.pop()
        .ok_or_else(|| Error::Nothing("the input has no CustomResourceDefinition".to_owned()))
}

/// Returns the kind and the version to use: the stored one if it is served, else the first served one.
fn read(crd: &Value) -> Result<(CustomKind, &Value), Error> {
    let name = text(crd, &["metadata", "name"]).unwrap_or("the definition");
    let object = format!("CustomResourceDefinition {name}");
    if crd["apiVersion"] != "apiextensions.k8s.io/v1" {
        let problem = "is not apiextensions.k8s.io/v1, the only version that API servers accept";
        return Err(wrong(&object, "apiVersion", problem));
    }
    let field = |path: &[&str]| {
        text(crd, path)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .ok_or_else(|| wrong(&object, &path.join("."), "is missing"))
    };
    let versions = at(crd, &["spec", "versions"]).and_then(Value::as_array);
    let served = || {
        let versions = versions.into_iter().flatten();
        versions.filter(|version| version["served"] == true && version["name"].is_string())
    };
    let version = served()
        .find(|version| version["storage"] == true)
        .or_else(|| served().next())
        .ok_or_else(|| wrong(&object, "spec.versions", "has no version that is served"))?;
    let kind = CustomKind {
        group: field(&["spec", "group"])?,
        version: version["name"].as_str().unwrap_or_default().to_owned(),
        kind: field(&["spec", "names", "kind"])?,
        plural: field(&["spec", "names", "plural"])?,
        singular: field(&["spec", "names", "singular"])
            .or_else(|_| field(&["spec", "names", "kind"]).map(|kind| kind.to_lowercase()))?,
    };
    for (path, name) in [
        ("group", &kind.group),
        ("names.plural", &kind.plural),
        ("names.singular", &kind.singular),
    ] {
        names::check_dns1123_subdomain(name).map_err(|why| {
            wrong(
                &object,
                &format!("spec.{path}"),
                &format!("is `{name}`: {why}"),
            )
        })?;
    }
    Ok((kind, version))
}

/// Returns a spec with the required fields and the fields that the Katalog reads.
fn filled(spec: &Value, open: &mut Vec<String>) -> Value {
    let mut made = sample::value(spec, "spec", open);
    if let (Some(fields), Some(image)) = (made.as_object_mut(), image(spec)) {
        fields
            .entry("image")
            .or_insert_with(|| sample::value(image, "spec.image", open));
    }
    made
}

/// Returns the schema of the image, if the kind has one.
fn image(spec: &Value) -> Option<&Value> {
    let image = at(spec, &["properties", "image"])?;
    (image["type"] == "string").then_some(image)
}

fn operator_box(spec: &Value, is_namespaced: bool) -> Value {
    let mut child = Map::new();
    // A cluster-scoped custom resource has no namespace for its children.
    if !is_namespaced {
        child.insert("namespace".to_owned(), json!("default"));
    }
    let is = |field: &str, wanted: &str| text(spec, &["properties", field, "type"]) == Some(wanted);
    let list = if image(spec).is_some() {
        child.insert("name".to_owned(), json!("{{ .metadata.name }}"));
        child.insert("image".to_owned(), json!("{{ .spec.image }}"));
        for field in ["replicas", "port"] {
            if is(field, "integer") {
                child.insert(field.to_owned(), json!(format!("{{{{ .spec.{field} }}}}")));
            }
        }
        "deployments"
    } else {
        child.insert("name".to_owned(), json!("{{ .metadata.name }}-config"));
        child.insert("data".to_owned(), Value::Object(scalar_fields(spec)));
        "configMaps"
    };
    let mut lists = Map::new();
    lists.insert(list.to_owned(), json!([child]));
    json!({ "onReconcile": lists })
}

/// Returns the scalar fields of the spec by name, as templates.
fn scalar_fields(spec: &Value) -> Map<String, Value> {
    let mut data = Map::new();
    let fields = spec["properties"].as_object().into_iter().flatten();
    let plain = fields.filter(|(name, schema)| {
        let type_ = schema["type"].as_str().unwrap_or_default();
        is_plain(name) && ["string", "integer", "boolean"].contains(&type_)
    });
    for (name, _) in plain.take(SHOWN) {
        data.insert(name.clone(), json!(format!("{{{{ .spec.{name} }}}}")));
    }
    if data.is_empty() {
        data.insert("name".to_owned(), json!("{{ .metadata.name }}"));
    }
    data
}
