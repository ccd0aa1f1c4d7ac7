//! Served kinds, and their URLs.

use orkestra_object::{
    GroupKind, ObjectKey,
    value::{Key, Node},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A kind as the API server serves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Served {
    /// API group, empty for the core group.
    pub group: Key,
    /// Version, such as `v1`.
    pub version: Key,
    /// Kind.
    pub kind: Key,
    /// REST plural.
    pub plural: Key,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
}

impl Served {
    /// A namespaced kind of that name.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            namespaced: true,
            ..Self::cluster_scoped(group, version, kind, plural)
        }
    }

    /// A cluster-scoped kind of that name.
    pub fn cluster_scoped(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: false,
        }
    }

    /// The kind of Events, as they are watched.
    pub fn events() -> Self {
        Self::namespaced("events.k8s.io", "v1", "Event", "events")
    }

    /// The kind of Events, as they are written: the core group takes the times by which `kubectl get events` sorts, and
    /// changes of them.
    pub fn core_events() -> Self {
        Self::namespaced("", "v1", "Event", "events")
    }

    /// True if the API server deletes objects of this kind after a time.
    pub(crate) fn expires(&self) -> bool {
        &*self.plural == "events" && ["", "events.k8s.io"].contains(&&*self.group)
    }

    /// The kind of CRDs.
    pub fn crds() -> Self {
        Self::cluster_scoped(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
    }

    /// A kind in that version, with its plural and scope.
    pub fn of(kind: &GroupKind, version: &str, plural: &str, namespaced: bool) -> Self {
        Self {
            group: kind.group.clone(),
            version: version.into(),
            kind: kind.kind.clone(),
            plural: plural.into(),
            namespaced,
        }
    }

    /// Returns an item of a list with `apiVersion` and `kind`, which lists omit.
    pub fn with_type(&self, mut item: Node) -> Node {
        if let Node::Map(fields) = &mut item {
            fields.insert("apiVersion".into(), Node::from(self.api_version()));
            fields.insert("kind".into(), Node::from(&*self.kind));
        }
        item
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.group.clone(),
            kind: self.kind.clone(),
        }
    }

    /// True if it is that kind, in any version.
    pub fn is(&self, kind: &GroupKind) -> bool {
        self.kind == kind.kind && self.group == kind.group
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Path of all objects, or of those of one namespace.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let mut path = api_path(&self.group, &self.version);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            path.extend(utf8_percent_encode(namespace, RESERVED));
        }
        path.push('/');
        path.extend(utf8_percent_encode(&self.plural, RESERVED));
        path
    }

    /// Path of one object, or of a subresource of it.
    pub fn object_path(&self, key: &ObjectKey, subresource: Option<&str>) -> String {
        let mut path = self.collection_path(key.namespace.as_deref());
        path.push('/');
        path.extend(utf8_percent_encode(&key.name, RESERVED));
        if let Some(subresource) = subresource {
            path.push('/');
            path.extend(utf8_percent_encode(subresource, RESERVED));
        }
        path
    }
}

/// The path of a group and version; the core group has its own.
pub(crate) fn api_path(group: &str, version: &str) -> String {
    let mut path = String::from("/api");
    if !group.is_empty() {
        path.push_str("s/");
        path.extend(utf8_percent_encode(group, RESERVED));
    }
    path.push('/');
    path.extend(utf8_percent_encode(version, RESERVED));
    path
}

/// The kind that scales workloads.
pub fn autoscalers() -> Served {
    Served::namespaced(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
}

/// Converts an entry of an `APIResourceList` to a kind, if it is that of `kind` and not a subresource.
pub(crate) fn read_resource(
    resource: &Node,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<Served> {
    let text = |field| resource.get(field).and_then(Node::as_str);
    let plural = text("name").filter(|name| !name.contains('/'))?;
    (text("kind") == Some(kind)).then(|| Served {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced: resource
            .get("namespaced")
            .and_then(Node::as_bool)
            .unwrap_or_default(),
    })
}

/// A builder for query strings.
#[derive(Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.extend(utf8_percent_encode(value, RESERVED));
        }
    }

    pub(crate) fn onto(self, mut path: String) -> String {
        path.push_str(&self.0);
        path
    }
}

/// All characters but RFC 3986's unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, plural: &str, namespaced: bool) -> Served {
        Served {
            group: group.into(),
            version: "v1".into(),
            kind: "Kind".into(),
            plural: plural.into(),
            namespaced,
        }
    }

    fn key(namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }

    #[test]
    fn the_core_group_is_served_at_a_place_of_its_own() {
        let pod = served("", "pods", true);
        assert_eq!(
            pod.object_path(&key(Some("shop"), "web"), Some("status")),
            "/api/v1/namespaces/shop/pods/web/status"
        );
        let role = served("rbac.authorization.k8s.io", "clusterroles", false);
        assert_eq!(
            role.object_path(&key(None, "system:node"), None),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode"
        );
        assert_eq!(pod.collection_path(None), "/api/v1/pods");
    }

    #[test]
    fn names_cannot_leave_their_segment() {
        assert_eq!(
            served("", "pods", true).object_path(&key(Some("a/b"), "..?x"), None),
            "/api/v1/namespaces/a%2Fb/pods/..%3Fx"
        );
    }

    #[test]
    fn query_values_are_encoded() {
        let mut query = Query::default();
        query.add("fieldManager", Some("orkestra/websites.shop.example"));
        query.add("force", None);
        query.add("labelSelector", Some("a=b,c in (d)"));
        assert_eq!(
            query.onto("/x".into()),
            "/x?fieldManager=orkestra%2Fwebsites.shop.example&labelSelector=a%3Db%2Cc%20in%20%28d%29"
        );
    }
}
