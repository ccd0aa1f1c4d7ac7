//! Summarizes compiled documents for an artifact.

use orkestra_language::{
    api::{info::Info, lifecycle::Deprecation},
    document::{MotifDocument, Tree},
};
use orkestra_object::value::Node;
use orkestra_plan::rbac::{self, RbacRule};
use orkestra_registry::artifact::{Declared, Kind, Lifecycle, Rule, Summary};

use orkestra_ground::VERSION;
use orkestra_loader::files::Compiled;

/// Returns the summary of the Katalogs in one file; `None` without a Katalog.
pub(crate) fn of_katalogs(katalogs: &[&Compiled]) -> Option<(Summary, Option<Lifecycle>)> {
    let first = katalogs.first()?;
    let document = &first.document;
    let info = info(document.spec.info.as_ref(), &document.tree);
    let mut summary = summary(Kind::Katalog, &first.document.name, &info);
    for katalog in katalogs {
        for operator in &katalog.plan.operators {
            let resource = &operator.resource;
            summary.declares.push(Declared {
                operator: operator.name.clone(),
                api_version: format!("{}/{}", resource.group, resource.version),
                kind: resource.kind.to_string(),
            });
        }
        let permissions = rbac::permissions(&katalog.plan);
        summary.permissions.extend(
            permissions
                .cluster
                .into_iter()
                .map(|found| rule(None, found)),
        );
        for (namespace, rules) in permissions.namespaces {
            let named = |found| rule(Some(namespace.to_string()), found);
            summary.permissions.extend(rules.into_iter().map(named));
        }
    }
    let declared = document.spec.lifecycle.as_ref();
    let declared = declared.and_then(|lifecycle| lifecycle.deprecation.as_ref());
    let deprecation = declared.or(info.deprecation.as_ref());
    Some((summary, deprecation.map(lifecycle)))
}

/// Returns the summary of a Motif.
pub(crate) fn of_motif(motif: &MotifDocument) -> (Summary, Option<Lifecycle>) {
    let info = info(motif.spec.info.as_ref(), &motif.tree);
    let lifecycle = info.deprecation.as_ref().map(lifecycle);
    (summary(Kind::Motif, &motif.name, &info), lifecycle)
}

/// Returns the information in a document's `spec`, else in its `metadata`.
fn info(info: Option<&Info>, document: &Tree) -> Info {
    let metadata = || {
        let metadata = document.get("metadata")?.to_json();
        // Its shape was checked when the document was read.
        serde_json::from_value(metadata).ok()
    };
    info.cloned().or_else(metadata).unwrap_or_default()
}

fn summary(kind: Kind, name: &str, info: &Info) -> Summary {
    let author = info.author.as_ref().map(|author| match author {
        Node::Str(text) => text.to_string(),
        other => other.to_json().to_string(),
    });
    Summary {
        kind,
        name: name.to_owned(),
        version: info.version.clone(),
        description: info.description.clone(),
        author,
        license: info.license.clone(),
        tags: info.tags.clone(),
        orkestra: VERSION.to_owned(),
        declares: Vec::new(),
        permissions: Vec::new(),
    }
}

fn rule(namespace: Option<String>, found: RbacRule) -> Rule {
    let RbacRule {
        api_groups,
        resources,
        verbs,
        resource_names,
    } = found;
    Rule {
        namespace,
        api_groups,
        resources,
        verbs,
        resource_names,
    }
}

fn lifecycle(deprecation: &Deprecation) -> Lifecycle {
    let Deprecation {
        message,
        migrated_to,
        timeline,
        ..
    } = deprecation.clone();
    let timeline = timeline.unwrap_or_default();
    // Dates were checked when the document was read.
    let day = |text: Option<String>| text.and_then(|text| text.parse().ok());
    Lifecycle {
        message,
        migrated_to,
        from: day(timeline.from),
        to: day(timeline.to),
    }
}
