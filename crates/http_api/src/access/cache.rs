//! A bounded map whose entries expire.

use std::{collections::HashMap, hash::Hash};

use tokio::time::Instant;

/// Values by key, each with an expiry time.
pub(crate) struct Cache<K, V> {
    entries: HashMap<K, (Instant, V)>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache for at most `most` entries.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            entries: HashMap::new(),
            most,
        }
    }

    /// Returns the value of a key, unless it has expired.
    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let (until, value) = self.entries.get(key)?;
        (*until > now).then(|| value.clone())
    }

    /// Stores a value until a time. If the cache is full, the entry that expires first is removed.
    pub(crate) fn put(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.entries.len() >= self.most && !self.entries.contains_key(&key) {
            self.entries.retain(|_, (until, _)| *until > now);
        }
        if self.entries.len() >= self.most && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                self.entries.remove(&first);
            }
        }
        self.entries.insert(key, (until, value));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_expire_and_the_first_to_expire_makes_room() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut cache = Cache::new(3);
        for (key, until) in [("a", 10), ("b", 5), ("c", 20)] {
            cache.put(key, key.len(), at(until), start);
        }
        assert_eq!(cache.get(&"a", at(9)), Some(1));
        assert_eq!(cache.get(&"a", at(10)), None);
        // No entry has expired; `b`, which expires first, is removed.
        cache.put("dd", 2, at(30), at(1));
        assert_eq!(cache.get(&"b", at(1)), None);
        assert_eq!(cache.get(&"a", at(1)), Some(1));
        // Expired entries are removed before others.
        cache.put("e", 1, at(2), at(15));
        assert_eq!(cache.entries.len(), 3);
        assert!(cache.get(&"c", at(15)).is_some() && cache.get(&"dd", at(15)).is_some());
        // Replacing the value of an existing key removes no other entry.
        cache.put("c", 7, at(40), at(16));
        assert_eq!(cache.get(&"c", at(39)), Some(7));
        assert_eq!(cache.entries.len(), 3);
    }
}
