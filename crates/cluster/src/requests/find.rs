//! Lookup of one object for clients with permission to list but not to get.

use http::Method;
use orkestra_object::{
    ObjectKey,
    value::{Fault, Node},
};

use super::{
    Cluster, ClusterError, Served, error::RequestSubject, list::read_whole, served::Query,
};

/// The path of a list of that object alone.
pub(crate) fn path(kind: &Served, key: &ObjectKey) -> String {
    let mut query = Query::default();
    let name = format!("metadata.name={}", key.name);
    query.add("fieldSelector", Some(&name));
    query.onto(kind.collection_path(key.namespace.as_deref()))
}

impl Cluster {
    /// Returns the cluster-scoped object of that name, by a list of one; `None` if it does not exist.
    ///
    /// # Errors
    /// [`ClusterError::NotServed`] if the kind is not served.
    pub async fn find(&self, kind: &Served, name: &str) -> Result<Option<Node>, ClusterError> {
        let asked = RequestSubject::of("list", kind, None);
        let key = ObjectKey {
            namespace: None,
            name: name.into(),
        };
        let path = path(kind, &key);
        let text = self.text(&asked, Method::GET, &path, None).await?;
        let object = read_whole(&text)?.items.into_iter().next();
        if let Some(fault) = object
            .as_ref()
            .and_then(|object| Fault::all_of(object).pop())
        {
            return Err(ClusterError::Unreadable(fault.to_string()));
        }
        Ok(object.map(|object| kind.with_type(object)))
    }
}
