//! Checks definitions like the API server.
//!
//! ```text
//!  CustomResourceDefinition ── names, versions, columns ──► Diagnostics
//!            └── each openAPIV3Schema ── structural: types, keywords, defaults, lists, rules ──┘
//! ```
//!
//! Source: Kubernetes, `ValidateCustomResourceDefinition` and the package `apiserver/schema` of `apiextensions-apiserver`.

mod columns;
mod keywords;
mod restriction;
mod structural;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, nearest},
};
use orkestra_object::value::{Map, Node};

/// Returns the problems of a `CustomResourceDefinition` for which the API server refuses it, as errors with the code
/// [`Code::RefusedDefinition`]; valid parts that are probably a mistake are warnings.
///
/// A manifest of another kind has no problems.
pub fn check_crd(crd: &Node) -> Diagnostics {
    let mut check = Check::default();
    let root = FieldPath::root();
    let Some(spec) = crd.get("spec").filter(|spec| spec.as_map().is_some()) else {
        check.refuse(&root.field("spec"), "the field is required");
        return check.found;
    };
    let at = root.field("spec");
    check.known(
        spec,
        &at,
        &[
            "group",
            "scope",
            "names",
            "versions",
            "conversion",
            "preserveUnknownFields",
        ],
    );
    check.names(crd, spec, &at);
    check.versions(spec, &at.field("versions"));
    check.conversion(spec, &at.field("conversion"));
    if flag(spec, "preserveUnknownFields") {
        let message = "`preserveUnknownFields: true` is not valid in apiextensions.k8s.io/v1";
        let at = at.field("preserveUnknownFields");
        check.refuse_hint(
            &at,
            message,
            "set `x-kubernetes-preserve-unknown-fields` in the schema",
        );
    }
    check.found.cap();
    check.found
}

/// The problems that were found.
#[derive(Default)]
struct Check {
    found: Diagnostics,
}

impl Check {
    fn refuse(&mut self, at: &FieldPath, message: impl Into<String>) {
        let code = Code::RefusedDefinition;
        self.found
            .push(Diagnostic::error(code, at.clone(), message));
    }

    fn refuse_hint(&mut self, at: &FieldPath, message: impl Into<String>, hint: impl Into<String>) {
        let problem = Diagnostic::error(Code::RefusedDefinition, at.clone(), message);
        self.found.push(problem.hint(hint));
    }

    fn warn(&mut self, at: &FieldPath, message: impl Into<String>) {
        let code = Code::RefusedDefinition;
        self.found
            .push(Diagnostic::warning(code, at.clone(), message));
    }

    /// Reports unknown fields: `kubectl` has them refused.
    fn known(&mut self, node: &Node, at: &FieldPath, known: &[&str]) {
        let fields = node.as_map().into_iter().flat_map(Map::keys);
        for key in fields.filter(|key| !known.contains(&key.as_str())) {
            let message = format!("unknown field `{key}`");
            let mut problem = Diagnostic::error(Code::RefusedDefinition, at.field(key), message);
            problem.at_key = true;
            problem.hint =
                nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            self.found.push(problem);
        }
    }

    /// Returns a text that must be there.
    fn required<'n>(&mut self, node: &'n Node, field: &str, at: &FieldPath) -> Option<&'n str> {
        match node.get(field) {
            Some(Node::Str(text)) if !text.is_empty() => Some(text),
            None | Some(Node::Null | Node::Str(_)) => {
                self.refuse(&at.field(field), "the field is required");
                None
            }
            Some(other) => {
                let message = format!("expected a string, found a {}", other.type_name());
                self.refuse(&at.field(field), message);
                None
            }
        }
    }

    fn valid(&mut self, at: &FieldPath, text: &str, check: fn(&str) -> Result<(), String>) {
        if let Err(why) = check(text) {
            let hint = names::instead(text, check);
            let mut problem = Diagnostic::error(Code::RefusedDefinition, at.clone(), why);
            problem.hint = hint;
            self.found.push(problem);
        }
    }

    // Over 60 lines: one check for each name.
    fn names(&mut self, crd: &Node, spec: &Node, at: &FieldPath) {
        let group = self.required(spec, "group", at);
        if let Some(group) = group {
            self.valid(&at.field("group"), group, names::check_dns1123_subdomain);
            if !group.contains('.') {
                let message = "a group is a domain with at least one dot";
                self.refuse(&at.field("group"), message);
            }
            self.protected(crd, group);
        }
        match self.required(spec, "scope", at) {
            Some("Namespaced" | "Cluster") | None => {}
            Some(other) => {
                let message = format!("`{other}` is not a scope: expected Namespaced or Cluster");
                self.refuse(&at.field("scope"), message);
            }
        }
        let (names, at) = (spec.get("names"), at.field("names"));
        let Some(names) = names.filter(|names| names.as_map().is_some()) else {
            self.refuse(&at, "the field is required");
            return;
        };
        let known = [
            "plural",
            "singular",
            "kind",
            "listKind",
            "shortNames",
            "categories",
        ];
        self.known(names, &at, &known);
        let plural = self.required(names, "plural", &at);
        let kind = self.required(names, "kind", &at);
        for (field, text) in [
            ("plural", plural),
            ("singular", names.get("singular").and_then(Node::as_str)),
        ] {
            if let Some(text) = text {
                self.valid(&at.field(field), text, names::check_dns1035_label);
            }
        }
        let list = names.get("listKind").and_then(Node::as_str);
        for (field, text) in [("kind", kind), ("listKind", list)] {
            let lower = text.map(str::to_lowercase);
            if let Some(lower) = lower {
                self.valid(&at.field(field), &lower, names::check_dns1035_label);
            }
        }
        if kind.is_some() && kind == list {
            self.refuse(
                &at.field("listKind"),
                "kind and listKind may not be the same",
            );
        }
        for field in ["shortNames", "categories"] {
            let all = names.get(field).and_then(Node::as_list);
            for (index, name) in all.unwrap_or_default().iter().enumerate() {
                let name = name.as_str().unwrap_or_default();
                self.valid(
                    &at.field(field).index(index),
                    name,
                    names::check_dns1035_label,
                );
            }
        }
        if let (Some(group), Some(plural)) = (group, plural) {
            let expected = format!("{plural}.{group}");
            if crd.meta_text("name") != Some(&*expected) {
                let at = FieldPath::root().field("metadata").field("name");
                let message =
                    format!("the name must be `{expected}`: spec.names.plural, and spec.group");
                self.refuse(&at, message);
            }
        }
    }

    /// Groups of Kubernetes need an annotation.
    fn protected(&mut self, crd: &Node, group: &str) {
        let is_protected = ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
        let given = crd
            .annotation("api-approved.kubernetes.io")
            .unwrap_or_default();
        let is_approved = given.starts_with("https://") || given.starts_with("http://");
        if is_protected && !is_approved && !given.starts_with("unapproved") {
            let at = FieldPath::root().field("metadata").field("annotations");
            let message = format!("the group `{group}` is protected");
            let hint = "the annotation `api-approved.kubernetes.io` names the approval, or says `unapproved`";
            self.refuse_hint(&at, message, hint);
        }
    }

    fn versions(&mut self, spec: &Node, at: &FieldPath) {
        let versions = spec.get("versions").and_then(Node::as_list);
        let versions = versions.unwrap_or_default();
        if versions.is_empty() {
            self.refuse(at, "at least one version is required");
            return;
        }
        let mut seen = BTreeSet::new();
        let mut stored = 0;
        for (index, version) in versions.iter().enumerate() {
            let at = at.index(index);
            self.known(
                version,
                &at,
                &[
                    "name",
                    "served",
                    "storage",
                    "deprecated",
                    "deprecationWarning",
                    "schema",
                    "subresources",
                    "additionalPrinterColumns",
                    "selectableFields",
                ],
            );
            if let Some(name) = self.required(version, "name", &at) {
                self.valid(&at.field("name"), name, names::check_dns1035_label);
                if !seen.insert(name) {
                    self.refuse(
                        &at.field("name"),
                        format!("version `{name}` is declared twice"),
                    );
                }
            }
            for field in ["served", "storage"] {
                if version.get(field).and_then(Node::as_bool).is_none() {
                    self.refuse(&at.field(field), "`true` or `false` is required");
                }
            }
            stored += usize::from(flag(version, "storage"));
            let schema = version
                .get("schema")
                .and_then(|schema| schema.get("openAPIV3Schema"));
            let at_schema = at.field("schema").field("openAPIV3Schema");
            match schema {
                Some(schema) if schema.as_map().is_some() => {
                    structural::check(self, schema, &at_schema);
                    columns::check(self, version, schema, &at);
                }
                _ => self.refuse(&at_schema, "the field is required"),
            }
        }
        if stored != 1 {
            let message = format!("exactly one version must have `storage: true`, found {stored}");
            self.refuse(at, message);
        }
    }

    fn conversion(&mut self, spec: &Node, at: &FieldPath) {
        let Some(conversion) = spec.get("conversion").filter(|node| **node != Node::Null) else {
            return;
        };
        match self.required(conversion, "strategy", at) {
            Some("Webhook") => {
                let webhook = conversion.get("webhook");
                let versions =
                    webhook.and_then(|hook| hook.get("conversionReviewVersions")?.as_list());
                if webhook.is_none() {
                    self.refuse(
                        &at.field("webhook"),
                        "the strategy Webhook requires the field",
                    );
                } else if versions.is_none_or(<[Node]>::is_empty) {
                    let at = at.field("webhook").field("conversionReviewVersions");
                    self.refuse(&at, "the field is required");
                }
            }
            Some("None") if conversion.get("webhook").is_some() => self.refuse(
                &at.field("webhook"),
                "the strategy None does not use the field",
            ),
            Some("None") | None => {}
            Some(other) => {
                let message = format!("`{other}` is not a strategy: expected None or Webhook");
                self.refuse(&at.field("strategy"), message);
            }
        }
    }
}

/// True if a field is `true`.
fn flag(node: &Node, field: &str) -> bool {
    node.get(field).and_then(Node::as_bool) == Some(true)
}
