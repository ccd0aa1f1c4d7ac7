//! Selects the operator for a custom resource.

use std::collections::BTreeMap;

use orkestra_language::{
    api::CrdEntry,
    diagnostics::{Code, Diagnostic, FieldPath},
};
use orkestra_plan::{
    GroupKind, OperatorPlan,
    definitions::{CrdVersion, Schemas, kind_named},
};

use super::{kind_of, objects::FileObject};
use orkestra_loader::files::Compiled;

/// The operator of a custom resource, and its Katalog.
#[derive(Debug)]
pub(crate) struct Picked<'a> {
    pub(crate) katalog: &'a Compiled,
    pub(crate) operator: &'a OperatorPlan,
}

impl<'a> Picked<'a> {
    /// The definition of the operator's version, if it is known.
    pub(crate) fn version(&self) -> Option<&'a CrdVersion> {
        let resource = &self.operator.resource;
        let shape = self.katalog.schemas.kind(&resource.group_kind())?;
        shape.version(&resource.version)
    }

    /// The scopes of the children whose definitions are known.
    pub(crate) fn scopes(&self) -> BTreeMap<GroupKind, bool> {
        let kinds = self.operator.children.iter();
        let known = kinds.filter_map(|child| {
            let kind = child.kind.group_kind();
            let namespaced = self.katalog.schemas.kind(&kind)?.namespaced;
            Some((kind, namespaced))
        });
        known.collect()
    }
}

/// Finds the operator for the custom resource's kind and version; of several, the first.
///
/// # Errors
/// A problem of the custom resource that names the operators that exist instead.
pub(crate) fn pick<'a>(
    katalogs: &'a [Compiled],
    resource: &FileObject,
) -> Result<Picked<'a>, Box<Diagnostic>> {
    let (group, version) = resource.group_version();
    let kind = kind_of(group, resource.text("kind"));
    let of_kind: Vec<Picked<'_>> = katalogs
        .iter()
        .flat_map(|katalog| {
            let operators = katalog.plan.operators.iter();
            operators.map(move |operator| Picked { katalog, operator })
        })
        .filter(|picked| picked.operator.resource.group_kind().to_string() == kind)
        .collect();
    let others: Vec<String> = of_kind
        .iter()
        .map(|picked| format!("`{}`", picked.operator.resource.version))
        .collect();
    let found = of_kind
        .into_iter()
        .find(|picked| &*picked.operator.resource.version == version);
    found.ok_or_else(|| Box::new(nobody(katalogs, resource, &kind, &others)))
}

fn nobody(
    katalogs: &[Compiled],
    resource: &FileObject,
    kind: &str,
    others: &[String],
) -> Diagnostic {
    let problem = |field: &str, message: String| {
        resource.problem(Code::NotOperated, FieldPath::root().field(field), message)
    };
    if !others.is_empty() {
        let (_, version) = resource.group_version();
        let message = format!("no Katalog operates version `{version}` of {kind}");
        let hint = format!("operated versions: {}", others.join(", "));
        return problem("apiVersion", message).hint(hint);
    }
    for katalog in katalogs {
        let entries = katalog.document.spec.crds.iter();
        let disabled = entries.filter(|(_, entry)| !entry.is_enabled());
        for (name, entry) in disabled {
            if declares(name, entry, &katalog.schemas, kind) {
                let message = format!("the entry `{name}` that operates {kind} is disabled");
                return problem("kind", message).hint("write `enabled: true` to render it");
            }
        }
    }
    let mut known: Vec<String> = katalogs
        .iter()
        .flat_map(|katalog| &katalog.plan.operators)
        .map(|operator| operator.resource.group_kind().to_string())
        .collect();
    known.sort_unstable();
    known.dedup();
    let missing = problem("kind", format!("no Katalog operates {kind}"));
    if known.is_empty() {
        missing
    } else {
        missing.hint(format!("operated kinds: {}", known.join(", ")))
    }
}

/// True if an entry is for a kind.
fn declares(name: &str, entry: &CrdEntry, schemas: &Schemas, kind: &str) -> bool {
    let types = entry.api_types.as_ref();
    let declared = types.and_then(kind_named).map(|kind| kind.to_string());
    let of_file = || Some(schemas.crd_file(name)?.group_kind().to_string());
    declared.or_else(of_file).as_deref() == Some(kind)
}
