/// An entry: a next hop, or where a block begins with this bit set.
const BLOCK: u32 = 1 << 31;

/// Entries of a block.
const WIDTH: usize = 256;

/// A multi-bit trie for longest-prefix match: 16 bits, then 8 at a time. Built once, never changed.
///
/// 256 KiB for the first stride and 1 KiB for each block below it.
#[derive(Debug, Clone)]
pub(crate) struct Trie {
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
        for (addr, len, hop) in routes {
            trie.insert(&addr, usize::from(len), hop & !BLOCK);
        }
        trie
    }

    fn insert(&mut self, addr: &[u8], len: usize, hop: u32) {
        let [a, b, rest @ ..] = addr else { return };
        let first = usize::from(u16::from_be_bytes([*a, *b]));
        if len <= 16 {
            return fill(&mut *self.root, first, 16 - len, hop);
        }
        let mut at = descend(&mut self.root[first], &mut self.blocks);
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
        let mut entry = self.root[usize::from(first)];
        for (seen, &byte) in rest.iter().enumerate() {
            if entry & BLOCK == 0 {
                return (entry, seen);
            }
            match self.blocks.get((entry & !BLOCK) as usize + usize::from(byte)) {
                Some(&below) => entry = below,
                None => return (0, rest.len()),
            }
        }
        (entry, rest.len())
    }
}

/// Points `2^free` entries, those that share all but the last `free` bits with `index`, at `hop`.
fn fill(entries: &mut [u32], index: usize, free: usize, hop: u32) {
    let from = index >> free << free;
    entries[from..from + (1 << free)].fill(hop);
}

/// The block below an entry, made if need be: it then starts out with what the entry said.
fn descend(entry: &mut u32, blocks: &mut Vec<u32>) -> usize {
    if *entry & BLOCK == 0 {
        let at = blocks.len();
        blocks.resize(at + WIDTH, *entry);
        *entry = BLOCK | at as u32;
    }
    (*entry & !BLOCK) as usize
}
