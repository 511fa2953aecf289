//! Numbers that keys keep from one snapshot to the next.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

/// Numbers given to keys: a key keeps its number while it is there, and a number given back is the last to be given again.
#[derive(Debug, Clone)]
pub(super) struct Numbers<K> {
    pub(super) of: HashMap<K, u16>,
    next: u16,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self { of: HashMap::new(), next: 0 }
    }
}

impl<K: Copy + Eq + Hash> Numbers<K> {
    /// Numbers for these keys below `limit`; keys beyond get none.
    pub(super) fn renew(before: Option<&Self>, keys: impl Iterator<Item = K>, limit: u16) -> Self {
        let keys: Vec<K> = keys.collect();
        let known = |key: &K| before.and_then(|b| b.get(key));
        let mut of: HashMap<K, u16> = keys.iter().filter_map(|key| Some((*key, known(key)?))).collect();
        let mut used: HashSet<u16> = of.values().copied().collect();
        let mut next = before.map_or(0, |b| b.next);
        for key in keys {
            if used.len() >= usize::from(limit) {
                break;
            }
            if of.contains_key(&key) {
                continue;
            }
            while !used.insert(next) {
                next = (next + 1) % limit;
            }
            of.insert(key, next);
            next = (next + 1) % limit;
        }
        Self { of, next }
    }

    pub(super) fn get(&self, key: &K) -> Option<u16> {
        self.of.get(key).copied()
    }

    /// The numbers of keys that `after` has no more.
    pub(super) fn gone<'a>(&'a self, after: &'a Self) -> impl Iterator<Item = u16> + 'a {
        self.of.iter().filter(|(key, _)| !after.of.contains_key(key)).map(|(_, number)| *number)
    }
}
