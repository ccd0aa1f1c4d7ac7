//! Lists with limits, in the widest scope that the caller may read.

use orkestra_cluster::{
    client::Connection,
    requests::{Cluster, ClusterError, Form, Listed, PageOf, Scope, Served},
};
use orkestra_object::{
    GroupKind,
    value::{Node, Projection},
};

use super::Unavailable;
use crate::operate::{Error, ServedKinds};

/// Objects per page of a list.
const PAGE: u32 = 200;
/// The most bytes that the objects of a list take.
const BYTES: usize = 64 << 20;

/// Reads a cluster with the permissions of its client.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(crate) cluster: Cluster,
    pub(crate) kinds: ServedKinds,
}

/// The objects of a list.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) items: Vec<Node>,
    /// Whether there are more.
    pub(crate) truncated: bool,
}

/// A request for objects of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: &'a Served,
    /// Label selector.
    pub(crate) selector: Option<&'a str>,
    /// Field selector.
    pub(crate) fields: Option<&'a str>,
    /// The fields that are read.
    pub(crate) projection: &'a Projection,
    /// Which of the objects are kept.
    pub(crate) keep: &'a (dyn Fn(&Node) -> bool + Sync),
    /// The most objects that are kept.
    pub(crate) most: usize,
}

impl Reader {
    /// Reads the kinds that the API server serves.
    ///
    /// # Errors
    /// [`Error::Discovery`] if the API server does not answer.
    pub async fn new(connection: &Connection) -> Result<Self, Error> {
        let kinds = ServedKinds::read(connection.client.clone()).await?;
        let cluster = Cluster::new(connection.client.clone()).in_turn(connection.flow.clone());
        Ok(Self { cluster, kinds })
    }

    /// The kinds that the API server serves.
    pub fn kinds(&self) -> &ServedKinds {
        &self.kinds
    }

    /// Returns objects of a kind in a namespace; without one, of all namespaces. Of Secrets, only metadata is requested.
    pub(crate) async fn list(
        &self,
        wanted: Wanted<'_>,
        namespace: Option<&str>,
    ) -> Result<Objects, ClusterError> {
        let Wanted {
            kind,
            selector,
            fields,
            projection,
            keep,
            most,
        } = wanted;
        let scope = Scope {
            namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
            selector: selector.map(str::to_owned),
            fields: fields.map(str::to_owned),
        };
        let form = if is_secret(&kind.group_kind()) {
            Form::Metadata
        } else {
            Form::Whole
        };
        let mut found = Objects::default();
        let mut bytes = 0;
        let mut next = None::<String>;
        loop {
            let page = PageOf {
                limit: PAGE,
                next: next.as_deref(),
            };
            let mut take = |listed| {
                let Listed::Object(object) = listed else {
                    return;
                };
                if !keep(&object) {
                    return;
                }
                bytes += object.heap_bytes();
                if found.items.len() < most && bytes < BYTES {
                    found.items.push(object);
                } else {
                    found.truncated = true;
                }
            };
            let how = (form, projection);
            let read = self.cluster.list_each(how, kind, &scope, page, &mut take);
            next = read.await?;
            if next.is_none() || found.truncated {
                found.truncated |= next.is_some();
                return Ok(found);
            }
        }
    }

    /// Returns objects of a kind in all namespaces, or where that is not permitted, in the namespace `near`; and what is missing of
    /// them. A kind that is not served has no objects.
    pub(crate) async fn list_widely(
        &self,
        wanted: Wanted<'_>,
        near: Option<&str>,
    ) -> (Objects, Vec<Unavailable>) {
        let kind = wanted.kind;
        let mut missing = Vec::new();
        let mut found = self.list(wanted, None).await;
        if let (Err(error @ ClusterError::Forbidden { .. }), Some(near)) = (&found, near)
            && kind.namespaced
        {
            let what = format!("{} outside namespace {near}", kind.plural);
            missing.push(Unavailable::of(what, error));
            found = self.list(wanted, Some(near)).await;
            if found.is_err() {
                missing.clear();
            }
        }
        let (objects, more) = settled(wanted, found);
        missing.extend(more);
        (objects, missing)
    }

    /// Returns objects of a kind in one namespace, and what is missing of them.
    pub(crate) async fn list_in(
        &self,
        wanted: Wanted<'_>,
        namespace: Option<&str>,
    ) -> (Objects, Option<Unavailable>) {
        settled(wanted, self.list(wanted, namespace).await)
    }
}

/// Returns the objects of a list, and what is missing of them. A kind that is not served has none.
fn settled(
    wanted: Wanted<'_>,
    found: Result<Objects, ClusterError>,
) -> (Objects, Option<Unavailable>) {
    let plural = &wanted.kind.plural;
    match found {
        Ok(objects) => {
            let read = objects.items.len();
            let more = || Unavailable::beyond(format!("further {plural}"), read);
            let missing = objects.truncated.then(more);
            (objects, missing)
        }
        Err(ClusterError::NotServed(_)) => (Objects::default(), None),
        Err(error) => {
            let missing = Unavailable::of(plural.to_string(), &error);
            (Objects::default(), Some(missing))
        }
    }
}

/// True if the objects of that kind hold secrets.
pub(crate) fn is_secret(kind: &GroupKind) -> bool {
    kind.group.is_empty() && &*kind.kind == "Secret"
}
