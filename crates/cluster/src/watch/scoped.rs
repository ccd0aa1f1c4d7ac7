//! Readers of one kind in all namespaces, or in some namespaces with an informer for each, combined.

use std::sync::Arc;

use orkestra_ground::changes::first;
use orkestra_object::{GroupKind, ObjectKey, ObjectNamespaces, Uid, decode::Version, value::Node};
use tokio::sync::watch;

use super::{Handle, MemoryUse, Record, WatchProblem, WatchState, Watched};
use crate::requests::Served;

/// Handles of one kind, one for each namespace, or one for all namespaces.
#[derive(Debug)]
pub struct Scoped<R: Record> {
    served: Served,
    parts: Box<[Handle<R>]>,
}

impl<R: Record> Scoped<R> {
    /// The handles that `start` returns for `watched` in each of `places`. A cluster-scoped kind is read completely.
    pub fn start(
        watched: &Watched,
        places: &ObjectNamespaces,
        start: impl Fn(Watched) -> Handle<R>,
    ) -> Self {
        let all = ObjectNamespaces::All;
        let is_namespaced = watched.served.namespaced;
        let places = if is_namespaced { places } else { &all };
        let part = |namespace: Option<&str>| {
            let mut one = watched.clone();
            one.scope.namespace = namespace.map(str::to_owned);
            start(one)
        };
        Self {
            served: watched.served.clone(),
            parts: places.scopes().into_iter().map(part).collect(),
        }
    }

    /// The kind that is watched.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// The records.
    pub fn store(&self) -> Stores<'_, R> {
        Stores(&self.parts)
    }

    /// The watched namespaces; `None` stands for all.
    pub fn namespaces(&self) -> impl Iterator<Item = Option<&str>> {
        self.parts.iter().map(namespace)
    }

    /// The states of the watches.
    pub fn states(&self) -> impl Iterator<Item = watch::Receiver<WatchState>> {
        self.parts.iter().map(Handle::state)
    }

    /// The watched namespaces, `None` for all, and the state of each watch.
    pub fn parts(&self) -> impl Iterator<Item = (Option<&str>, watch::Receiver<WatchState>)> {
        let parts = self.parts.iter();
        parts.map(|part| (namespace(part), part.state()))
    }

    /// Returns when every watch has been in a state that satisfies `like`, which is called with its namespace.
    pub async fn until(&self, like: impl Fn(Option<&str>, &WatchState) -> bool) {
        for (namespace, mut state) in self.parts() {
            // An error means that the watch is gone, and this value with it.
            let _ = state.wait_for(|state| like(namespace, state)).await;
        }
    }

    /// Returns when one of the watches has been in a state that satisfies `like`.
    pub async fn until_any(&self, like: impl Fn(&WatchState) -> bool) {
        let like = &like;
        let waits = self.states().map(|mut state| async move {
            // As above.
            let _ = state.wait_for(like).await;
        });
        first(waits).await;
    }

    /// Returns when the first list of every watch is complete or has failed.
    pub async fn looked_at(&self) {
        self.until(|_, state| *state != WatchState::Starting).await;
    }

    /// Returns the problem of one of the watches, and its kind.
    pub fn problem(&self) -> Option<(GroupKind, WatchProblem)> {
        self.parts.iter().find_map(Handle::problem)
    }

    /// As [`Handle::readable`], for all handles. Single namespaces without permission are ignored while there are others.
    ///
    /// # Errors
    /// The reason, as a message for users.
    pub fn readable(&self) -> Result<(), String> {
        let is_granted = |part: &&Handle<R>| {
            let problem = part.problem();
            !matches!(problem, Some((_, WatchProblem::Forbidden { .. })))
        };
        let granted: Vec<_> = self.parts.iter().filter(is_granted).collect();
        if granted.is_empty() {
            return self.parts.iter().try_for_each(Handle::readable);
        }
        granted.into_iter().try_for_each(Handle::readable)
    }

    /// True while it is not yet known whether the API server was restored to an older state.
    pub fn is_open(&self) -> bool {
        self.parts.iter().any(Handle::is_open)
    }
}

fn namespace<R: Record>(part: &Handle<R>) -> Option<&str> {
    part.watched().scope.namespace.as_deref()
}

/// The records of several handles: [`super::Store`] describes each function.
#[derive(Debug)]
pub struct Stores<'a, R: Record>(&'a [Handle<R>]);

impl<R: Record> Stores<'_, R> {
    /// Returns the handle for objects of a namespace.
    fn of(&self, object: Option<&str>) -> Option<&Handle<R>> {
        let is_of = |part: &&Handle<R>| match namespace(part) {
            None => true,
            only => only == object,
        };
        self.0.iter().find(is_of)
    }

    /// Returns the record of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<R>> {
        self.of(key.namespace.as_deref())?.store().get(key)
    }

    /// Returns the records that belong to the object with that uid, sorted by key.
    pub fn owned_by(&self, uid: &Uid) -> Vec<(ObjectKey, Arc<R>)> {
        let parts = self.0.iter();
        let mut owned: Vec<_> = parts.flat_map(|part| part.store().owned_by(uid)).collect();
        if self.0.len() > 1 {
            owned.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        owned
    }

    /// Records and their bytes, as held for this reader.
    pub fn held(&self) -> MemoryUse {
        self.0.iter().map(|part| part.store().held()).sum()
    }

    /// Returns the keys of all records, unordered.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.0.iter().flat_map(|part| part.store().keys()).collect()
    }

    /// Returns all records, unordered.
    pub fn snapshot(&self) -> Vec<Arc<R>> {
        let parts = self.0.iter();
        parts.flat_map(|part| part.store().snapshot()).collect()
    }

    /// Adds the response to a write.
    pub fn answer(&self, object: &Node) -> Option<Arc<R>> {
        let part = self.of(object.meta_text("namespace"))?;
        part.store().answer(object)
    }

    /// Notifies subscribers of the next state of an object after `known`.
    pub fn expect(&self, key: &ObjectKey, known: &Version) {
        if let Some(part) = self.of(key.namespace.as_deref()) {
            part.store().expect(key, known);
        }
    }

    /// Reports that a response is older than the state known before the request.
    pub fn doubt(&self) {
        for part in self.0 {
            part.store().doubt();
        }
    }
}
