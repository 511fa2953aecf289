//! A multibit trie for longest-prefix match.

use std::collections::BTreeMap;

/// An entry: a next hop, or where a block begins with this bit set.
const BLOCK: u32 = 1 << 31;

/// Entries of a block.
const WIDTH: usize = 256;

/// A multi-bit trie for longest-prefix match: 16 bits, then 8 at a time. Built once, never changed.
///
/// There is a block below every 16 bits, so that the first question is answered after two loads, without a branch in
/// between; 16 bits that are of one next hop share a block with all others of that hop. 256 KiB for the first stride and
/// 1 KiB for each block.
#[derive(Debug, Clone)]
pub(crate) struct Trie {
    /// Where the block below begins.
    root: Box<[u32; 1 << 16]>,
    /// One behind the other.
    blocks: Vec<u32>,
}

impl Trie {
    /// Builds from (address, length, next hop); of equal prefixes the last one stands.
    pub(crate) fn new<const N: usize>(routes: impl Iterator<Item = ([u8; N], u8, u32)>) -> Self {
        let mut routes: Vec<_> = routes.collect();
        // Short ones first: a longer prefix then only ever refines what is there, and never meets a block in its way.
        routes.sort_by_key(|&(_, len, _)| len);
        let root = vec![0; 1 << 16].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([0; 1 << 16]));
        let mut trie = Self { root, blocks: Vec::new() };
        let mut even = Even::default();
        even.block(0, &mut trie.blocks);
        for (addr, len, hop) in routes {
            trie.insert(&addr, usize::from(len), hop & !BLOCK, &mut even);
        }
        trie
    }

    fn insert(&mut self, addr: &[u8], len: usize, hop: u32, even: &mut Even) {
        let [a, b, rest @ ..] = addr else { return };
        let first = usize::from(u16::from_be_bytes([*a, *b]));
        if len <= 16 {
            return fill(&mut *self.root, first, 16 - len, even.block(hop, &mut self.blocks));
        }
        let mut at = even.own(&mut self.root[first], &mut self.blocks);
        let mut left = len - 16;
        for &byte in rest {
            if left <= 8 {
                return fill(&mut self.blocks[at..at + WIDTH], usize::from(byte), 8 - left, hop);
            }
            // The entry is taken out and put back: a new block may move all the others.
            let place = at + usize::from(byte);
            let mut entry = self.blocks[place];
            let below = descend(&mut entry, &mut self.blocks);
            self.blocks[place] = entry;
            at = below;
            left -= 8;
        }
    }

    /// The next hop of an address given as its first 16 bits and the bytes after them, and how many of those bytes
    /// were looked at: every address that agrees with this one so far has the same next hop.
    #[inline(always)]
    pub(crate) fn lookup(&self, first: u16, rest: &[u8]) -> (u32, usize) {
        let mut block = self.root[usize::from(first)];
        for (before, &byte) in rest.iter().enumerate() {
            match self.blocks.get(block as usize + usize::from(byte)) {
                Some(&entry) if entry & BLOCK == 0 => return (entry, before + 1),
                Some(&entry) => block = entry & !BLOCK,
                None => break,
            }
        }
        (0, rest.len())
    }
}

/// The blocks that are of one next hop, while a trie is built.
#[derive(Default)]
struct Even {
    /// Where each next hop's block begins.
    of_hop: BTreeMap<u32, u32>,
    /// The same the other way round.
    hop_of: BTreeMap<u32, u32>,
}

impl Even {
    /// Where the block of a next hop begins.
    fn block(&mut self, hop: u32, blocks: &mut Vec<u32>) -> u32 {
        *self.of_hop.entry(hop).or_insert_with(|| {
            let at = blocks.len() as u32;
            blocks.resize(blocks.len() + WIDTH, hop);
            self.hop_of.insert(at, hop);
            at
        })
    }

    /// Where the block begins that this leads to; one that others share is copied before.
    fn own(&self, entry: &mut u32, blocks: &mut Vec<u32>) -> usize {
        if let Some(&hop) = self.hop_of.get(entry) {
            *entry = blocks.len() as u32;
            blocks.resize(blocks.len() + WIDTH, hop);
        }
        *entry as usize
    }
}

/// Points `2^free` entries, those that share all but the last `free` bits with `index`, at `hop`.
fn fill(entries: &mut [u32], index: usize, free: usize, hop: u32) {
    let from = index >> free << free;
    entries[from..from + (1 << free)].fill(hop);
}

/// The block below an entry, made if need be: it starts with copies of the entry.
fn descend(entry: &mut u32, blocks: &mut Vec<u32>) -> usize {
    if *entry & BLOCK == 0 {
        let at = blocks.len();
        blocks.resize(at + WIDTH, *entry);
        *entry = BLOCK | at as u32;
    }
    (*entry & !BLOCK) as usize
}
