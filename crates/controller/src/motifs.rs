//! Motifs of the cluster, which Katalogs import by name: one watch.
//!
//! The users who may write Motifs decide how many there are, and how large. A Motif is held as compressed text, and as a tree only
//! while a Katalog uses it. The text of a namespace's Motifs is limited: those that exceed the limit are known by name only.
//!
//! A change wakes every Katalog; those that import the Motif, directly or not, are compiled again.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    sync::{Arc, Weak},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use kube::api::DynamicObject;
use orkestra_ground::tasks::{self, Ends, Task};
use orkestra_plan::KatalogRef;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::watched::{Namespaces, ReadObject, WatchedContent, Watches, own_kind, reference};
use orkestra_operator::context::Context;

/// The most bytes of compressed text that are held for the Motifs of one namespace: 64 of the largest ones, if they can be
/// compressed to a quarter.
const NAMESPACE_BYTES: usize = 16 << 20;
/// The most bytes of text that are read from compressed ones: the API server stores objects of about 1.5 MB.
const MOST_BYTES: u64 = 8 << 20;

/// The known Motifs.
#[derive(Debug)]
pub(crate) struct Motifs {
    known: Mutex<KnownMotifs>,
    /// Counts changes.
    changed: watch::Sender<u64>,
    /// Whether they were listed, or cannot be listed.
    listed: watch::Sender<bool>,
}

/// Motifs by namespace and name.
#[derive(Debug, Default)]
pub(crate) struct KnownMotifs {
    /// Each Motif, or why it is not used.
    motifs: BTreeMap<KatalogRef, Result<Arc<Motif>, String>>,
    /// The bytes that are held for each namespace.
    bytes: BTreeMap<String, usize>,
    /// Why they cannot be watched at the moment.
    problem: Option<String>,
}

impl Motifs {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::channel(0).0,
            listed: watch::channel(false).0,
        }
    }

    /// Returns the Motif `name` of a namespace.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        self.known.lock().get(namespace, name)
    }

    /// A receiver that changes when a Motif is added, changed or deleted.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns once they were listed, or cannot be listed.
    pub(crate) async fn listed(&self) {
        // The sender lives as long as `self`.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    fn change(&self, change: impl FnOnce(&mut KnownMotifs)) {
        change(&mut self.known.lock());
        self.changed.send_modify(|count| *count += 1);
    }
}

/// Follows the Motifs of `namespaces` with `motifs` until `shutdown`.
pub(crate) async fn follow(
    motifs: Arc<Motifs>,
    context: Arc<Context>,
    namespaces: &Namespaces,
    shutdown: CancellationToken,
) {
    let ends = Ends::with(&shutdown);
    let state = (motifs, context, namespaces.clone(), shutdown);
    let named = tasks::named(Task::Motifs, "Motifs");
    named
        .kept(ends, state, |(motifs, context, namespaces, shutdown)| {
            Box::pin(watch_all(motifs, context, namespaces, shutdown))
        })
        .await;
}

/// Watches Motifs until the shutdown; after a restart it lists again.
async fn watch_all(
    motifs: &Motifs,
    context: &Context,
    namespaces: &Namespaces,
    shutdown: &CancellationToken,
) {
    let mut watches: Watches<Motif> = Watches::start(
        &context.informers,
        &own_kind("Motif", "motifs"),
        namespaces.scopes(),
    );
    let mut states = watches.states();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(change) = watches.changed.recv() => {
                let key = reference(&change.key);
                let motif = watches.get(&change);
                motifs.change(|known| known.put(key, motif.as_deref()));
                continue;
            }
            () = Watches::<Motif>::changed(&mut states) => {}
        }
        let problem = watches.problem();
        if let Some(why) = watches.new_problem_text() {
            tracing::warn!(error = why, "cannot watch Motifs");
        }
        let count = states.len();
        let is_listed = (0..count).all(|watch| watches.was_synced(watch));
        // Changes from the lists are queued before the state that marks them complete.
        while let Ok(change) = watches.changed.try_recv() {
            let (key, motif) = (reference(&change.key), watches.get(&change));
            motifs.change(|known| known.put(key, motif.as_deref()));
        }
        motifs.change(|known| known.problem.clone_from(&problem));
        if is_listed || problem.is_some() {
            motifs.listed.send_replace(true);
        }
    }
}

/// A Motif's document as compressed text.
#[derive(Debug)]
pub(crate) struct Motif(Mutex<Text>);

#[derive(Debug, Default)]
struct Text {
    /// None if it is not held.
    packed: Option<Box<[u8]>>,
    /// The document, while it is used.
    tree: Weak<Value>,
}

impl WatchedContent for Motif {
    fn new(object: DynamicObject) -> Self {
        let packed = pack(&object);
        Self(Mutex::new(Text {
            packed,
            tree: Weak::new(),
        }))
    }
}

impl Motif {
    /// Returns the document: the same one as long as it is used.
    fn document(&self) -> Option<Arc<Value>> {
        let mut text = self.0.lock();
        if let Some(tree) = text.tree.upgrade() {
            return Some(tree);
        }
        let tree = Arc::new(unpack(text.packed.as_deref()?)?);
        text.tree = Arc::downgrade(&tree);
        Some(tree)
    }

    fn bytes(&self) -> usize {
        self.0
            .lock()
            .packed
            .as_ref()
            .map_or(0, |packed| packed.len())
    }

    fn forget(&self) {
        *self.0.lock() = Text::default();
    }
}

fn pack(object: &DynamicObject) -> Option<Box<[u8]>> {
    let text = serde_json::to_vec(object).ok()?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).ok()?;
    Some(encoder.finish().ok()?.into())
}

fn unpack(packed: &[u8]) -> Option<Value> {
    let mut text = Vec::new();
    let mut decoder = GzDecoder::new(packed).take(MOST_BYTES);
    decoder.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl KnownMotifs {
    /// Returns the Motif `name` of a namespace.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        let key = KatalogRef::new(namespace.to_owned(), name.to_owned());
        let document = match self.motifs.get(&key) {
            Some(Ok(motif)) => motif.document().ok_or("its text is damaged"),
            Some(Err(why)) => Err(&**why),
            None => {
                return Err(match &self.problem {
                    None => format!("there is no Motif `{name}` in namespace {namespace}"),
                    Some(why) => {
                        format!("Motif `{name}` is not known: Motifs cannot be watched: {why}")
                    }
                });
            }
        };
        document.map_err(|why| format!("Motif `{name}` cannot be read: {why}"))
    }

    /// Sets a Motif, or removes it.
    pub(crate) fn put(&mut self, key: KatalogRef, motif: Option<&ReadObject<Motif>>) {
        let held = self.bytes.entry(key.namespace.clone()).or_default();
        if let Some(Ok(before)) = self.motifs.remove(&key) {
            *held = held.saturating_sub(before.bytes());
        }
        let known = motif.map(|motif| match &motif.unread {
            Some(fault) => Err(fault.to_string()),
            None if *held + motif.content.bytes() > NAMESPACE_BYTES => {
                motif.content.forget();
                Err(format!(
                    "the Motifs of namespace {} take more than {} MiB when compressed: delete unused ones, and apply this one \
                     again",
                    key.namespace,
                    NAMESPACE_BYTES >> 20
                ))
            }
            None => {
                *held += motif.content.bytes();
                Ok(Arc::clone(&motif.content))
            }
        });
        if *held == 0 {
            self.bytes.remove(&key.namespace);
        }
        self.motifs.extend(known.map(|known| (key, known)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a Motif with that many bytes that cannot be compressed.
    fn motif(bytes: usize) -> Motif {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        };
        let text: String = (0..bytes).map(|_| next()).collect();
        let object = json!({ "metadata": { "name": "m" }, "spec": { "text": text } });
        Motif::new(serde_json::from_value(object).unwrap())
    }

    fn read(motif: Motif) -> ReadObject<Motif> {
        ReadObject::of(motif)
    }

    #[test]
    fn a_motif_is_a_tree_only_while_it_is_used() {
        let motif = motif(10);
        let first = motif.document().unwrap();
        assert_eq!(first["metadata"]["name"], "m");
        assert!(Arc::ptr_eq(&first, &motif.document().unwrap()));
        drop(first);
        assert!(motif.0.lock().tree.upgrade().is_none());
        assert!(motif.document().is_some());
    }

    #[test]
    fn the_memory_of_a_namespace_is_limited_and_the_first_ones_stay() {
        let mut known = KnownMotifs::default();
        let key = |namespace: &str, number: usize| {
            KatalogRef::new(namespace.to_owned(), format!("m{number}"))
        };
        for number in 0..40 {
            known.put(key("full", number), Some(&read(motif(1 << 20))));
        }
        assert!(known.bytes["full"] <= NAMESPACE_BYTES);
        assert!(known.get("full", "m0").is_ok());
        let why = known.get("full", "m39").unwrap_err();
        assert!(why.contains("more than 16 MiB"), "{why}");
        // Another namespace has a limit of its own.
        known.put(key("other", 0), Some(&read(motif(1 << 20))));
        assert!(known.get("other", "m0").is_ok());
        for number in 0..40 {
            known.put(key("full", number), None);
        }
        assert!(!known.bytes.contains_key("full"));
        known.put(key("full", 39), Some(&read(motif(1 << 20))));
        assert!(known.get("full", "m39").is_ok());
    }
}
