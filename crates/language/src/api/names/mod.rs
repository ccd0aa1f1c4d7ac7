//! Names that are visible to users and clusters: group, finalizer, labels, annotations, field managers.
//!
//! They are defined only here. The lengths and character sets are those of Kubernetes.

mod url;

pub use url::check_webhook_url;

use orkestra_object::value::hash_text;

/// API group of Orkestra's own kinds.
pub const GROUP: &str = "orkestra.orkspace.io";
/// `reportingController` of every Event that a runtime makes.
pub const EVENT_CONTROLLER: &str = "orkestra";
/// The version served.
pub const VERSION: &str = "v1";
/// `apiVersion` of Orkestra's own kinds.
pub const API_VERSION: &str = "orkestra.orkspace.io/v1";
/// `apiVersion` of the first releases; still read, with a warning.
pub const OLD_API_VERSION: &str = "orkestra.konductor.io/v1Alpha";
/// What every label and annotation of ours starts with.
pub const PREFIX: &str = "orkestra.orkspace.io/";
/// Finalizer on custom resources that an operator of ours manages.
pub const FINALIZER: &str = "orkestra.orkspace.io/cleanup";
/// Label on children and custom resources: `true`.
pub const LABEL_MANAGED: &str = "orkestra.orkspace.io/managed";
/// Label on children: uid of the custom resource they belong to.
pub const LABEL_OWNER_UID: &str = "orkestra.orkspace.io/owner-uid";
/// Label on children: name of the Katalog that declares them.
pub const LABEL_KATALOG: &str = "orkestra.orkspace.io/katalog";
/// The labels of ours on children: they are removed when a child is released.
pub const CHILD_LABELS: [&str; 3] = [LABEL_MANAGED, LABEL_OWNER_UID, LABEL_KATALOG];
/// The labels that distinguish children, and the pods of their workloads, from custom resources: both carry [`LABEL_MANAGED`].
pub const OF_CHILDREN: [&str; 2] = [LABEL_OWNER_UID, LABEL_WORKLOAD];
/// Label on pod templates, recommended by Kubernetes: the kind of the custom resource, in lower case.
pub const LABEL_APP_NAME: &str = "app.kubernetes.io/name";
/// Label on pod templates, recommended by Kubernetes: the name of the custom resource.
pub const LABEL_APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// Label on pod templates, recommended by Kubernetes: `orkestra`.
pub const LABEL_APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label on pod templates and in selectors: distinguishes workloads.
pub const LABEL_WORKLOAD: &str = "orkestra.orkspace.io/workload";
/// Annotation on children: hash of what was rendered when they were last applied.
pub const ANNOTATION_APPLIED: &str = "orkestra.orkspace.io/applied";
/// Annotation on children: their own `kind/name`, to tell them from copies.
pub const ANNOTATION_CHILD: &str = "orkestra.orkspace.io/child";
/// Annotation on children without an owner reference: `kind.group/namespace/name/uid` of the custom resource that they
/// belong to.
pub const ANNOTATION_OWNER: &str = "orkestra.orkspace.io/owner";
/// Annotation on children that existed before and were taken over by `adopt: true`: they never get an owner reference.
pub const ANNOTATION_ADOPTED: &str = "orkestra.orkspace.io/adopted";
/// Annotation on custom resources: fields that the version does not have, by version, as JSON.
pub const ANNOTATION_CONVERSION: &str = "orkestra.orkspace.io/conversion";
/// Annotation of a custom resource in a version to which it could not be converted: why.
pub const ANNOTATION_CONVERSION_FAILED: &str = "orkestra.orkspace.io/conversion-failed";
/// Annotation on custom resource definitions: the conversion that the gateway serves for them, as JSON. It outlives the entry
/// that declares it, until no stored object needs it.
pub const ANNOTATION_SERVED_CONVERSION: &str = "orkestra.orkspace.io/served-conversion";
/// Annotation on webhook configurations, policies and custom resource definitions with a conversion of ours: the installation that
/// wrote them, as `namespace/Lease`; `namespace/gateway:NAME` if a gateway without operators did.
pub const ANNOTATION_INSTALLATION: &str = "orkestra.orkspace.io/installation";
/// Annotation on Secrets that last: when their values were made, as RFC 3339 has it.
pub const ANNOTATION_GENERATED_AT: &str = "orkestra.orkspace.io/generated-at";
/// Annotation on workloads whose number of pods follows conditions: when it changed last, as RFC 3339 has it.
pub const ANNOTATION_SCALED_AT: &str = "orkestra.orkspace.io/scaled-at";
/// Annotation on Secrets with a certificate: hash of what it was issued for.
pub const ANNOTATION_ISSUED_FOR: &str = "orkestra.orkspace.io/issued-for";
/// Annotation on pod templates: hash of the Secrets and `ConfigMaps` that the pods use.
pub const ANNOTATION_CONFIG_HASH: &str = "orkestra.orkspace.io/config-hash";
/// Annotation on custom resources: the group-kinds that children of theirs have.
pub const ANNOTATION_INVENTORY: &str = "orkestra.orkspace.io/inventory";
/// Annotation on custom resources: a change of its value forces a pass.
pub const ANNOTATION_RECONCILE: &str = "orkestra.orkspace.io/reconcile";
/// Flux's annotation that does the same.
pub const ANNOTATION_REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
/// Annotation on custom resources: `true` lets them go without their `onDelete` work.
pub const ANNOTATION_SKIP_ON_DELETE: &str = "orkestra.orkspace.io/skip-on-delete";
/// Annotation on protected objects: any reason lets them be deleted.
pub const ANNOTATION_BREAK_GLASS: &str = "orkestra.orkspace.io/break-glass";
/// Label of protection against deletion: `true` protects an object of Orkestra, `false` gives up a custom resource or a
/// definition.
pub const LABEL_PROTECTION: &str = "orkestra.io/deletion-protection";
/// Label on objects whose protection may be removed in strict mode: `true`.
pub const LABEL_STRICT_EXEMPT: &str = "orkestra.io/strict-mode-exempt";
/// Annotation on stored revisions: the field manager that wrote the spec of the Katalog.
pub const ANNOTATION_APPLIED_BY: &str = "orkestra.orkspace.io/applied-by";
/// Annotation on Katalogs, Komposers and custom resources: `true` suspends them, as `spec.suspend` of a Katalog does.
pub const ANNOTATION_SUSPEND: &str = "orkestra.orkspace.io/suspend";
/// Annotation on Komposers, and on Katalogs with sources: digests of sources whose additional permissions are approved, separated
/// by commas; `spec.approve` of a Komposer does the same.
pub const ANNOTATION_APPROVE: &str = "orkestra.orkspace.io/approve";
/// Annotation on Katalogs: `true` lets a Katalog that is being deleted go, whatever could not be released.
pub const ANNOTATION_RELEASE: &str = "orkestra.orkspace.io/release";
/// Annotation on the Lease of a claim, and on a definition that the controller applied: namespace and name of the Katalog that operates
/// the kind, as `namespace/name`.
pub const ANNOTATION_KATALOG: &str = "orkestra.orkspace.io/katalog";
/// Annotation on the Lease of a claim: uid of that Katalog.
pub const ANNOTATION_KATALOG_UID: &str = "orkestra.orkspace.io/katalog-uid";
/// Annotation on the CRDs of Orkestra's own kinds, and on the Lease by which an installation claims kinds: the version of Orkestra
/// that wrote them.
pub const ANNOTATION_VERSION: &str = "orkestra.orkspace.io/version";
/// Annotation on the CRDs of Orkestra's own kinds: hash of their `spec`.
pub const ANNOTATION_SCHEMA: &str = "orkestra.orkspace.io/schema";

/// Field manager of a runtime itself: on Katalogs, Leases and other objects of Orkestra.
pub const MANAGER: &str = "orkestra";

/// Longest field manager that the API server takes, in bytes.
const FIELD_MANAGER_BYTES: usize = 128;
/// Longest label value, and longest DNS label, in bytes.
const LABEL_BYTES: usize = 63;
/// Longest DNS subdomain, in bytes.
const SUBDOMAIN_BYTES: usize = 253;
/// Hexadecimal digits of the hash that a cut name ends in.
const HASH_DIGITS: usize = 10;

/// The field manager of the operator of `plural.group`: `orkestra/websites.example.org`.
///
/// At most 128 bytes; a longer one is cut and ends in a hash of the whole.
pub fn field_manager(plural: &str, group: &str) -> String {
    let whole = if group.is_empty() {
        format!("orkestra/{plural}")
    } else {
        format!("orkestra/{plural}.{group}")
    };
    cut(whole, FIELD_MANAGER_BYTES)
}

/// The field manager by which the operator of `plural.group` holds its custom resources' metadata. It is not the one of
/// children: a custom resource may be another one's child, and one manager's apply replaces what it applied before.
pub fn metadata_manager(plural: &str, group: &str) -> String {
    let whole = if group.is_empty() {
        format!("orkestra-metadata/{plural}")
    } else {
        format!("orkestra-metadata/{plural}.{group}")
    };
    cut(whole, FIELD_MANAGER_BYTES)
}

/// The field manager by which the operator of `plural.group` brings fields of its custom resources to one form.
pub fn normalize_manager(plural: &str, group: &str) -> String {
    let whole = if group.is_empty() {
        format!("orkestra-normalize/{plural}")
    } else {
        format!("orkestra-normalize/{plural}.{group}")
    };
    cut(whole, FIELD_MANAGER_BYTES)
}

/// The name of the Lease by which installations claim the kind: `kind-website.example.org`.
///
/// A DNS subdomain of at most 253 bytes; a longer name is cut and ends in a hash of the whole.
pub fn claim_lease(group: &str, kind: &str) -> String {
    let kind = kind.to_lowercase();
    let whole = if group.is_empty() {
        format!("kind-{kind}")
    } else {
        format!("kind-{kind}.{group}")
    };
    cut(whole, SUBDOMAIN_BYTES)
}

/// The name of the Lease by which an installation shows that it is alive: `installation-<hash>`.
pub fn installation_lease(installation: &str) -> String {
    format!("installation-{}", short_hash(installation))
}

/// The name of a policy of the API server: `deny.website.<hash>.orkestra.orkspace.io`. `whole` distinguishes it from others of
/// that purpose and name.
///
/// A DNS subdomain of at most 253 bytes; a longer name is cut and ends in a hash of the whole.
pub fn policy(purpose: &str, whole: &str, name: &str) -> String {
    cut(
        format!("{purpose}.{name}.{}.{GROUP}", short_hash(whole)),
        SUBDOMAIN_BYTES,
    )
}

/// Makes a legal label value of `text`: at most 63 bytes of letters, digits, `-`, `_` and `.`, with a
/// letter or digit at both ends.
///
/// A legal value stays as it is. Any other keeps what it can and ends in a hash of the whole, so that
/// two texts never share a value by being cut. The empty text stays empty, which is legal.
pub fn label_value(text: &str) -> String {
    if check_label_value(text).is_ok() {
        return text.to_owned();
    }
    let legal: String = text
        .chars()
        .map(|c| if is_name_char(c) { c } else { '-' })
        .collect();
    let start = legal.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let digest = short_hash(text);
    let room = LABEL_BYTES - HASH_DIGITS - 1;
    let kept =
        start[..room.min(start.len())].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if kept.is_empty() {
        digest
    } else {
        format!("{kept}-{digest}")
    }
}

/// Checks a DNS subdomain: what most objects' names must be.
///
/// Source: RFC 1123 as Kubernetes reads it.
///
/// # Errors
/// What is allowed, and what the name has instead.
pub fn check_dns1123_subdomain(name: &str) -> Result<(), String> {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| is_lower_alphanumeric(b) || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    check_length(name, SUBDOMAIN_BYTES)?;
    if name.split('.').all(part) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a valid name: expected lower-case letters, digits, `-` and `.`, with a letter or digit at both ends of each part"
    ))
}

/// Checks a DNS label that starts with a letter: what a Service's name must be.
///
/// Source: RFC 1035 as Kubernetes reads it.
///
/// # Errors
/// What is allowed, and what the name has instead.
pub fn check_dns1035_label(name: &str) -> Result<(), String> {
    check_length(name, LABEL_BYTES)?;
    if name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|b| is_lower_alphanumeric(b) || b == b'-')
    {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a valid name here: expected lower-case letters, digits and `-`, starting with a letter and not ending in `-`"
    ))
}

/// Checks a label's value. The empty value is legal.
///
/// # Errors
/// What is allowed, and what the value has instead.
pub fn check_label_value(value: &str) -> Result<(), String> {
    if value.len() > LABEL_BYTES {
        return Err(format!(
            "`{value}` has {} characters; a label value has at most {LABEL_BYTES}",
            value.len()
        ));
    }
    if value.is_empty() || is_qualified(value) {
        return Ok(());
    }
    Err(format!(
        "`{value}` is not a valid label value: expected letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
    ))
}

/// Checks a label's or annotation's key: a name of at most 63 characters, with or without a DNS
/// subdomain and `/` before it.
///
/// # Errors
/// What is allowed, and what the key has instead.
pub fn check_label_key(key: &str) -> Result<(), String> {
    let name = match key.split_once('/') {
        Some((prefix, name)) => {
            check_dns1123_subdomain(prefix)
                .map_err(|why| format!("the part of `{key}` before `/`: {why}"))?;
            name
        }
        None => key,
    };
    if !name.is_empty() && name.len() <= LABEL_BYTES && is_qualified(name) {
        return Ok(());
    }
    Err(format!(
        "`{key}` is not a valid key: expected at most {LABEL_BYTES} letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, after an optional `domain/`"
    ))
}

/// What to write instead of `text`, for a hint: what `check` allows of it, with a capital, or with `-` for what is not
/// allowed, in lower case where that is needed. None where that is still not legal.
pub fn instead(text: &str, check: fn(&str) -> Result<(), String>) -> Option<String> {
    let with_dashes = |text: &str, legal: fn(char) -> bool| {
        let text = text.replace(|c| !legal(c), "-");
        text.trim_matches(['-', '.', '_']).to_owned()
    };
    let lower = text.to_lowercase();
    let mut capital = text.to_owned();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let tries = [
        capital,
        with_dashes(text, |c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
        with_dashes(&lower, |c| c.is_ascii_alphanumeric() || "-.".contains(c)),
        with_dashes(&lower, |c| c.is_ascii_alphanumeric()),
    ];
    let legal = tries
        .into_iter()
        .find(|name| !name.is_empty() && check(name).is_ok());
    legal.map(|name| format!("write `{name}`"))
}

fn check_length(name: &str, limit: usize) -> Result<(), String> {
    match name.len() {
        0 => Err("the name is empty".to_owned()),
        length if length > limit => Err(format!(
            "`{name}` has {length} characters; at most {limit} are allowed"
        )),
        _ => Ok(()),
    }
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_qualified(name: &str) -> bool {
    name.chars().all(is_name_char)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn cut(whole: String, limit: usize) -> String {
    if whole.len() <= limit {
        return whole;
    }
    let end = whole.floor_char_boundary(limit - HASH_DIGITS - 1);
    format!("{}-{}", &whole[..end], short_hash(&whole))
}

fn short_hash(text: &str) -> String {
    let mut hex = hash_text(text);
    hex.truncate(HASH_DIGITS);
    hex
}

#[cfg(test)]
mod tests;
