//! Numbered values that are shared and counted.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// Numbered things that are shared: equal ones have one number, which stays while anybody uses it.
///
/// An unused value keeps its number until [`Pool::sweep`], so that a change that is taken back finds
/// everything under the number it had.
#[derive(Debug)]
pub(super) struct Pool<K, V> {
    numbers: HashMap<K, u32>,
    slots: Vec<Option<Slot<K, V>>>,
    free: Vec<u32>,
    idle: Vec<u32>,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    users: u32,
}

impl<K: Hash + Eq + Clone, V> Pool<K, V> {
    pub(super) fn new() -> Self {
        Self { numbers: HashMap::new(), slots: Vec::new(), free: Vec::new(), idle: Vec::new() }
    }

    /// The number of a thing, if it has one.
    pub(super) fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.numbers.get(key).copied()
    }

    /// Numbers a new value, without users yet.
    pub(super) fn insert(&mut self, key: K, value: V) -> u32 {
        let number = self.free.pop().unwrap_or(self.slots.len() as u32);
        self.numbers.insert(key.clone(), number);
        let slot = Some(Slot { key, value, users: 0 });
        match self.slots.get_mut(number as usize) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.idle.push(number);
        number
    }

    fn slot(&mut self, number: u32) -> Option<&mut Slot<K, V>> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// One user more.
    pub(super) fn retain(&mut self, number: u32) {
        if let Some(slot) = self.slot(number) {
            slot.users += 1;
        }
    }

    /// One user less.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(slot) = self.slot(number) {
            slot.users = slot.users.saturating_sub(1);
            if slot.users == 0 {
                self.idle.push(number);
            }
        }
    }

    /// Whether anybody uses it.
    pub(super) fn used(&self, number: u32) -> bool {
        self.users(number) > 0
    }

    /// How many use it.
    pub(super) fn users(&self, number: u32) -> u32 {
        self.slots.get(number as usize).and_then(Option::as_ref).map_or(0, |slot| slot.users)
    }

    /// Removes values without users; their numbers are free for others.
    pub(super) fn sweep(&mut self) -> Vec<(u32, K, V)> {
        let mut gone = Vec::new();
        for number in std::mem::take(&mut self.idle) {
            let Some(slot) = self.slots.get_mut(number as usize) else { continue };
            if let Some(unused) = slot.take_if(|slot| slot.users == 0) {
                self.numbers.remove(&unused.key);
                self.free.push(number);
                gone.push((number, unused.key, unused.value));
            }
        }
        gone
    }

    pub(super) fn get(&self, number: u32) -> Option<(&K, &V)> {
        self.slots.get(number as usize)?.as_ref().map(|slot| (&slot.key, &slot.value))
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        self.slot(number).map(|slot| &mut slot.value)
    }

    /// All that have a number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.slots.iter().zip(0..).filter_map(|(slot, number)| slot.as_ref().map(|s| (number, &s.key, &s.value)))
    }

    /// One more than the largest number.
    pub(super) fn bound(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_until_nobody_uses_it_and_is_then_used_again() {
        let mut pool = Pool::new();
        let (a, b) = (pool.insert("a", 1), pool.insert("b", 2));
        for n in [a, b, a] {
            pool.retain(n);
        }
        pool.release(a);
        assert_eq!((pool.sweep(), pool.find("a")), (vec![], Some(a)));
        pool.release(a);
        assert_eq!(pool.find("a"), Some(a), "may come back");
        assert_eq!(pool.sweep(), [(a, "a", 1)]);
        assert_eq!((pool.find("a"), pool.insert("c", 3), pool.bound()), (None, a, 2));
        assert_eq!(pool.iter().map(|(_, key, _)| *key).collect::<Vec<_>>(), ["c", "b"]);
    }
}
