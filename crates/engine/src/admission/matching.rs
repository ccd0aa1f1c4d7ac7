//! The objects that the API server asks about: one function for policies and webhooks.
//!
//! ```text
//!  request ─┬─ being deleted already ──────────────────────────────► not matched: finalizers must be removable
//!           ├─ another namespace, label or field than operated ────► not matched: not ours to judge
//!           ├─ a write of Orkestra's own for a fixed purpose ──────► not matched: see `internal`
//!           └─ else ───────────────────────────────────────────────► matched
//! ```
//!
//! No identity and no namespace is exempt by itself: children that are custom resources, and writes of a person with the same
//! identity, are judged like all others.

use serde_json::{Value, json};

use orkestra_language::api::{FailurePolicy, Operation, names};
use orkestra_plan::{OperatorPlan, SYSTEM_NAMESPACES, Watched, cel::quoted};

/// The namespaces whose objects are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// Those that the operator operates.
    Operated,
    /// Those that it operates, and those that are not permitted: their objects would be operated elsewhere.
    AnyNamespace,
}

/// Returns the conditions, as `matchConditions` of webhooks and policies, that the operator reconciles the object of a request, it
/// is not being deleted, and it is not written by Orkestra, one of `users`, for a purpose of its own. `operations` are those that
/// are asked about.
pub fn match_conditions(
    operator: &OperatorPlan,
    users: &[String],
    (operations, matched): (&[Operation], Matched),
) -> Vec<Value> {
    let object = subject(operations);
    let watched = &operator.watched;
    let mut conditions = vec![condition(
        "not-being-deleted",
        format!("!has({object}.metadata.deletionTimestamp)"),
    )];
    conditions.extend(internal(operator, users, operations));
    if watched.built_in {
        let system = listed(SYSTEM_NAMESPACES);
        // A cluster-scoped object with such a name is the namespace.
        let place = format!("({NAMESPACE} == \"\" ? {object}.metadata.name : {NAMESPACE})");
        conditions.push(condition(
            "no-system-namespace",
            format!("!({place} in {system})"),
        ));
        let labels = format!("{object}.metadata.labels");
        let children = names::OF_CHILDREN.map(|key| format!("{} in {labels}", quoted(key)));
        conditions.push(condition(
            "no-child",
            format!("!has({labels}) || !({})", children.join(" || ")),
        ));
    }
    if matched == Matched::Operated {
        conditions.extend(permitted(watched).map(|said| condition("operated-namespaces", said)));
    }
    conditions.extend(selected(watched, &object));
    conditions
}

/// Returns the conditions that the operator operates the object whose `Scale` is written: the request contains neither its labels nor
/// its deletion.
pub(crate) fn scale_conditions(operator: &OperatorPlan) -> Vec<Value> {
    let permitted = permitted(&operator.watched);
    let permitted = permitted.map(|said| condition("operated-namespaces", said));
    permitted.into_iter().collect()
}

/// Returns the failure policy of what asks about objects of the operator: never `Fail` for a built-in kind, whose objects are not
/// instances of a definition of ours.
pub fn failure_policy(operator: &OperatorPlan, declared: FailurePolicy) -> FailurePolicy {
    if operator.watched.built_in {
        return FailurePolicy::Ignore;
    }
    declared
}

/// The namespace of a request; empty for cluster-scoped objects.
const NAMESPACE: &str = "(has(request.namespace) ? request.namespace : \"\")";

/// Returns the expression of the object that a request is about.
fn subject(operations: &[Operation]) -> String {
    let deletes = operations.contains(&Operation::Delete);
    let writes = operations.iter().any(|one| *one != Operation::Delete);
    match (writes, deletes) {
        (_, false) => "object",
        (false, true) => "oldObject",
        (true, true) => "(request.operation == 'DELETE' ? oldObject : object)",
    }
    .to_owned()
}

/// Returns texts as a list of CEL.
pub(crate) fn listed<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns a condition.
pub(crate) fn condition(name: &str, expression: impl Into<String>) -> Value {
    json!({ "name": name, "expression": expression.into() })
}

/// Returns the condition that it is not a write of Orkestra for a purpose of its own: its finalizer, labels and inventory, and the
/// fields that `normalize` sets, by the field managers of these writes; and the deletion of one certain object, by its uid.
fn internal(operator: &OperatorPlan, users: &[String], operations: &[Operation]) -> Option<Value> {
    let resource = &operator.resource;
    let plural = resource.plural.as_deref().unwrap_or_default();
    let normalize = quoted(&names::normalize_manager(plural, &resource.group));
    let metadata = operator.metadata_manager();
    let metadata = listed([&*metadata, names::MANAGER]);
    let writes = format!(
        "request.operation == 'UPDATE' && has(request.options.fieldManager) && \
         (request.options.fieldManager == {normalize} || (request.options.fieldManager in {metadata} && \
         (!has(object.metadata.generation) || (has(oldObject.metadata.generation) && \
         object.metadata.generation == oldObject.metadata.generation))))"
    );
    let deletes = "request.operation == 'DELETE' && has(request.options.preconditions) && \
                   has(request.options.preconditions.uid)"
        .to_owned();
    let mut purposes = Vec::new();
    if operations.contains(&Operation::Update) {
        purposes.push(writes);
    }
    if operations.contains(&Operation::Delete) {
        purposes.push(deletes);
    }
    exempt(users, &purposes)
}

/// Returns the condition that a deletion is not one of `users`, by the uid of the object.
pub(crate) fn not_internal_deletion(users: &[String]) -> Option<Value> {
    let purpose = "has(request.options.preconditions) && has(request.options.preconditions.uid)";
    exempt(users, &[purpose.to_owned()])
}

fn exempt(users: &[String], purposes: &[String]) -> Option<Value> {
    if users.is_empty() || purposes.is_empty() {
        return None;
    }
    let users = listed(users.iter().map(String::as_str));
    let purposes: Vec<String> = purposes.iter().map(|one| format!("({one})")).collect();
    let purposes = purposes.join(" || ");
    Some(condition(
        "not-orkestra",
        format!("!(request.userInfo.username in {users} && has(request.options) && ({purposes}))"),
    ))
}

/// Returns the expression that is true in permitted namespaces, and for cluster-scoped objects; `None` if all are.
pub(crate) fn permitted(watched: &Watched) -> Option<String> {
    let list =
        |names: &std::collections::BTreeSet<Box<str>>| listed(names.iter().map(|one| &**one));
    let mut parts = Vec::new();
    if !watched.restricted.is_empty() {
        parts.push(format!("!({NAMESPACE} in {})", list(&watched.restricted)));
    }
    if !watched.allowed.is_empty() {
        parts.push(format!("{NAMESPACE} in {}", list(&watched.allowed)));
    }
    (!parts.is_empty()).then(|| format!("{NAMESPACE} == \"\" || ({})", parts.join(" && ")))
}

/// Returns the conditions that the selectors of the operator select the object.
fn selected(watched: &Watched, object: &str) -> Vec<Value> {
    let mut conditions = Vec::new();
    if !watched.labels.is_empty() {
        let labels = format!("{object}.metadata.labels");
        let has = watched.labels.iter().map(|(key, value)| {
            let (key, value) = (quoted(key), quoted(value));
            format!("{key} in {labels} && {labels}[{key}] == {value}")
        });
        let has: Vec<String> = has.collect();
        let expression = format!("has({labels}) && {}", has.join(" && "));
        conditions.push(condition("operated-labels", expression));
    }
    if !watched.fields.is_empty() {
        let has = watched
            .fields
            .iter()
            .map(|(path, value)| field(object, path, value));
        let has: Vec<String> = has.collect();
        conditions.push(condition("operated-fields", has.join(" && ")));
    }
    conditions
}

/// Returns the expression that a field, as of a field selector, has that value; a missing one is empty.
fn field(object: &str, path: &str, value: &str) -> String {
    let (mut at, mut present) = (object.to_owned(), Vec::new());
    for name in path.split('.') {
        let name = quoted(name);
        present.push(format!("{name} in {at}"));
        at = format!("{at}[{name}]");
    }
    let present = present.join(" && ");
    format!("({present} ? string({at}) : \"\") == {}", quoted(value))
}
