//! Resolves `apiTypes`: the kind of the custom resources that an entry reconciles.

use crate::scope::At;
use orkestra_language::{
    api::{ApiTypes, CrdEntry, KatalogSpec, names},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath, Severity},
};
use orkestra_object::value::Key;
use orkestra_plan::{
    GroupKind, ResourceType,
    definitions::{CrdShape, Schemas, built_in, kind_named},
    kinds,
};

const NO_API_TYPES: &str =
    "neither `apiTypes` nor a readable `crdFile` declares the kind that this entry operates";

/// True if every error is an entry without a kind: a Katalog in the cluster whose `crdFile` is a file elsewhere.
pub fn lacks_api_types(diagnostics: &Diagnostics) -> bool {
    let is = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    diagnostics.has_errors()
        && diagnostics
            .iter()
            .filter(is)
            .all(|diagnostic| diagnostic.code == Code::NoApiTypes)
}

/// Warns about entries whose kind is known only from a `crdFile`: they run from files, but not as a custom resource in a
/// cluster, where the file is not read.
pub fn only_from_files(spec: &KatalogSpec, schemas: &Schemas) -> Diagnostics {
    let mut found = Diagnostics::default();
    for (name, entry) in &spec.crds {
        let (None, Some(shape)) = (&entry.api_types, schemas.crd_file(name)) else {
            continue;
        };
        let Some(version) = shape.preferred().filter(|_| entry.is_enabled()) else {
            continue;
        };
        let at = FieldPath::root().field("spec").field("crds").field(name);
        let message = "a Katalog in the cluster cannot read `crdFile`: without `apiTypes` this entry runs only from files";
        let hint = format!(
            "add `apiTypes: {{group: {}, version: {}, kind: {}, plural: {}}}`",
            shape.group, version.name, shape.kind, shape.plural
        );
        let warning = Diagnostic::warning(Code::NoApiTypes, at.field("crdFile"), message);
        found.push(warning.hint(hint));
    }
    found
}

/// Warns about entries that declare status fields, while the definition has no status subresource: a user who can write the spec
/// can write the status then, and each write of it changes the generation.
pub fn without_status_subresource(spec: &KatalogSpec, schemas: &Schemas) -> Diagnostics {
    let mut found = Diagnostics::default();
    for (name, entry) in spec.crds.iter().filter(|(_, entry)| entry.is_enabled()) {
        let status = entry
            .operator_box
            .as_ref()
            .and_then(|declared| declared.status.as_ref());
        let (Some(_), types) = (status, entry.api_types.as_ref()) else {
            continue;
        };
        let shape = types
            .and_then(kind_named)
            .and_then(|kind| schemas.kind(&kind));
        let Some(shape) = shape.or_else(|| schemas.crd_file(name)) else {
            continue;
        };
        let named = types.and_then(|types| shape.version(types.version.as_deref()?));
        let Some(version) = named
            .or_else(|| shape.preferred())
            .filter(|one| !one.status)
        else {
            continue;
        };
        let at = FieldPath::root().field("spec").field("crds").field(name);
        let message = format!(
            "version {} of {} has no status subresource, and this entry writes status",
            version.name,
            shape.group_kind()
        );
        let warning = Diagnostic::warning(
            Code::NoStatusSubresource,
            at.field("operatorBox").field("status"),
            message,
        );
        found.push(
            warning.hint("add `subresources: {status: {}}` to the version in the definition"),
        );
    }
    found
}

/// Returns the resource type of the entry `name`; `None` after an error, which is reported at `at`, and for a disabled entry
/// whose `crdFile` was not read.
pub(crate) fn resolve(
    at: &At<'_>,
    name: &str,
    entry: &CrdEntry,
    schemas: &Schemas,
) -> Option<ResourceType> {
    let file = schemas.crd_file(name);
    let resource = match (&entry.api_types, file) {
        (Some(types), _) => declared(&at.field("apiTypes"), types, file, schemas)?,
        (None, Some(shape)) => from_file(&at.field("crdFile"), shape)?,
        // An entry that does not run needs no definition: its file may be elsewhere.
        (None, None) if entry.crd_file.is_some() && !entry.is_enabled() => return None,
        (None, None) => {
            at.error_hint(
                Code::NoApiTypes,
                NO_API_TYPES,
                "declare `apiTypes` with group, version, kind and plural",
            );
            return None;
        }
    };
    let kind = resource.group_kind();
    let place = at.field(if entry.api_types.is_some() {
        "apiTypes"
    } else {
        "crdFile"
    });
    if let Err((why, hint)) = is_operable(&kind) {
        match hint {
            Some(hint) => place.error_hint(Code::ReservedKind, why, hint),
            None => place.error(Code::ReservedKind, why),
        }
        return None;
    }
    let built_in = kinds::built_in(&kind);
    let known = schemas.kind(&kind).map(|shape| shape.namespaced);
    let known = known.or(built_in.map(|(_, namespaced)| namespaced));
    if let (Some(declared), Some(known)) = (entry.namespaced, known)
        && declared != known
    {
        let scope = if known {
            "namespaced"
        } else {
            "cluster-scoped"
        };
        let message = format!("the definition says that {kind} is {scope}");
        at.field("namespaced").error(Code::KindMismatch, message);
    }
    let resource = ResourceType {
        namespaced: known.or(entry.namespaced),
        plural: built_in.map_or(resource.plural, |(plural, _)| Some(Key::from(plural))),
        ..resource
    };
    if let Some(why) = why_stopped(&resource, entry) {
        let hint = "add `labelSelector: {LABEL: VALUE}` for the objects that this entry operates; the other entries run";
        place.warn_hint(Code::ReservedKind, why, hint);
    }
    Some(resource)
}

/// Checks that operators may have the kind.
///
/// # Errors
/// The reason, and the fix if there is one.
fn is_operable(kind: &GroupKind) -> Result<(), (String, Option<&'static str>)> {
    let is_of_kubernetes = kind.group.is_empty() || kinds::is_built_in_group(&kind.group);
    if is_of_kubernetes && kinds::built_in(kind).is_none() {
        let message = format!("Kubernetes has no kind {kind}, and its API groups are reserved");
        return Err((message, Some("use an API group of your own")));
    }
    if &*kind.group == names::GROUP {
        return Err((format!("{kind} is Orkestra's own"), None));
    }
    Ok(())
}

/// Returns why an entry for `resource` is accepted but does not run, if so.
pub(crate) fn why_stopped(resource: &ResourceType, entry: &CrdEntry) -> Option<String> {
    let kind = resource.group_kind();
    kinds::built_in(&kind)?;
    entry.label_selector.is_empty().then(|| {
        format!(
            "{kind} is a built-in kind: without `labelSelector` this entry would operate every {} of the cluster, so it stays stopped",
            kind.kind
        )
    })
}

fn from_file(at: &At<'_>, shape: &CrdShape) -> Option<ResourceType> {
    let Some(version) = shape.preferred() else {
        at.error(
            Code::KindMismatch,
            format!("the definition of {} serves no version", shape.group_kind()),
        );
        return None;
    };
    Some(ResourceType {
        group: Key::from(&*shape.group),
        version: Key::from(&*version.name),
        kind: Key::from(&*shape.kind),
        plural: Some(Key::from(&*shape.plural)),
        namespaced: Some(shape.namespaced),
    })
}

/// `apiTypes` with omitted fields filled in.
struct Filled {
    group: String,
    version: String,
    kind: String,
    plural: String,
}

/// Fills in the fields that `types` omits, from the built-in kinds or from a definition.
fn fill(
    at: &At<'_>,
    types: &ApiTypes,
    file: Option<&CrdShape>,
    schemas: &Schemas,
) -> Option<Filled> {
    let built_in = built_in(types).filter(|_| file.is_none());
    let text = |declared: &Option<String>| declared.clone();
    let known = |of: fn(&ResourceType) -> &str| built_in.as_ref().map(|found| of(found).to_owned());
    let group = text(&types.group)
        .or_else(|| known(|found| &found.group))
        .or_else(|| Some(file?.group.clone()));
    let kind = known(|found| &found.kind)
        .or_else(|| text(&types.kind))
        .or_else(|| Some(file?.kind.clone()));
    let shape = match (&group, &kind) {
        (Some(group), Some(kind)) => schemas.kind(&GroupKind {
            group: Key::from(&**group),
            kind: Key::from(&**kind),
        }),
        _ => None,
    };
    let shape = shape.or(file);
    let version = text(&types.version)
        .or_else(|| known(|found| &found.version))
        .or_else(|| Some(shape?.preferred()?.name.clone()));
    let missing = [
        ("group", group.is_none()),
        ("version", version.is_none()),
        ("kind", kind.is_none()),
    ];
    for (name, _) in missing.into_iter().filter(|(_, missing)| *missing) {
        at.error(Code::Missing, format!("`{name}` is missing"));
    }
    let (group, version, kind) = (group?, version?, kind?);
    let plural = text(&types.plural)
        .or_else(|| Some(built_in?.plural?.to_string()))
        .or_else(|| Some(shape?.plural.clone()))
        .unwrap_or_else(|| kinds::guess_plural(&kind));
    Some(Filled {
        group,
        version,
        kind,
        plural,
    })
}

fn declared(
    at: &At<'_>,
    types: &ApiTypes,
    file: Option<&CrdShape>,
    schemas: &Schemas,
) -> Option<ResourceType> {
    let filled = fill(at, types, file, schemas)?;
    if !are_legal(at, &filled) {
        return None;
    }
    let group_kind = GroupKind {
        group: Key::from(&*filled.group),
        kind: Key::from(&*filled.kind),
    };
    if let Some(shape) = file
        && shape.group_kind() != group_kind
    {
        at.error_hint(
            Code::KindMismatch,
            format!(
                "this is {group_kind} but `crdFile` defines {}",
                shape.group_kind()
            ),
            "remove `apiTypes`",
        );
    } else if let Some(shape) = schemas.kind(&group_kind) {
        agree(at, &filled, shape);
    }
    Some(ResourceType {
        group: group_kind.group,
        version: Key::from(&*filled.version),
        kind: group_kind.kind,
        plural: Some(Key::from(&*filled.plural)),
        namespaced: None,
    })
}

/// True if all of them are valid names; invalid ones are reported.
fn are_legal(at: &At<'_>, filled: &Filled) -> bool {
    let Filled {
        group,
        version,
        kind,
        plural,
    } = filled;
    let mut legal = true;
    for (name, text, check) in [
        (
            "version",
            version,
            names::check_dns1035_label as fn(&str) -> Result<(), String>,
        ),
        ("kind", kind, check_kind),
        ("plural", plural, names::check_dns1035_label),
    ] {
        if let Err(why) = check(text) {
            let at = at.field(name);
            if name == "version" && text.starts_with(|c: char| c.is_ascii_digit()) {
                at.error_hint(
                    Code::BadName,
                    why,
                    "expected a version such as `v1` or `v1beta1`",
                );
            } else {
                at.bad_name(text, why, check);
            }
            legal = false;
        }
    }
    if !group.is_empty()
        && let Err(why) = names::check_dns1123_subdomain(group)
    {
        let at = at.field("group");
        match group.split_once('/') {
            Some((group, _)) => {
                at.error_hint(
                    Code::BadName,
                    why,
                    format!("write `{group}`, and the version in `version`"),
                );
            }
            None => at.bad_name(group, why, names::check_dns1123_subdomain),
        }
        legal = false;
    }
    legal
}

fn agree(at: &At<'_>, filled: &Filled, shape: &CrdShape) {
    if filled.plural != shape.plural {
        at.field("plural").error(
            Code::KindMismatch,
            format!("the plural of {} is `{}`", shape.group_kind(), shape.plural),
        );
    }
    if !shape.serves(&filled.version) {
        at.field("version").error(
            Code::KindMismatch,
            format!(
                "{} is not served as `{}` but as {}",
                shape.group_kind(),
                filled.version,
                shape.served().join(", ")
            ),
        );
    }
}

/// Source: Kubernetes, `ValidateCustomResourceDefinitionNames`: a kind in lower case is a DNS-1035 label.
fn check_kind(kind: &str) -> Result<(), String> {
    names::check_dns1035_label(&kind.to_ascii_lowercase())
        .map_err(|why| why.replace(&kind.to_ascii_lowercase(), kind))?;
    if kind.starts_with(|c: char| c.is_ascii_uppercase()) {
        Ok(())
    } else {
        Err(format!(
            "`{kind}` is not a valid kind: a kind starts with a capital letter, such as `Website`"
        ))
    }
}
