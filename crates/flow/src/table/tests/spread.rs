//! Nobody can choose flows that crowd: sets of keys with any pattern find places as random ones would.

use super::{hash::Hasher, index::Index, *};

const PLACES: usize = 1 << 14;

/// A name, and key `i`.
type Pattern = (String, Box<dyn Fn(u64) -> [u64; 3]>);

/// For the first numbers, each gives a different key.
fn patterns() -> Vec<Pattern> {
    let mut all: Vec<Pattern> = Vec::new();
    for word in 0..3usize {
        // Counting up in steps of every power of two, in each word: addresses, ports, scopes, and their high bits alone.
        for shift in 0..48u32 {
            all.push((
                format!("word {word} in steps of 2^{shift}"),
                Box::new(move |i| {
                    let mut key = [0x0a00_0001_0a00_0002, 0x0400_0050_0600_0000, 0];
                    key[word] ^= i << shift;
                    key
                }),
            ));
        }
    }
    for odd in [3u64, 255, 257, 65_535, 65_537, 0x0101_0101_0101_0101, 0x9e37_79b9_7f4a_7c15, u64::MAX] {
        all.push((format!("multiples of {odd}"), Box::new(move |i| [i.wrapping_mul(odd), 0, 0])));
    }
    // Words that cancel each other out in a weak sum or xor.
    all.push(("equal words".into(), Box::new(|i| [i, i, i])));
    all.push(("words and their complements".into(), Box::new(|i| [i, !i, 0])));
    all.push(("words up and down".into(), Box::new(|i| [i << 32, (1 << 63) - (i << 32), 0])));
    // All subsets of bits in two words.
    all.push(("bit patterns".into(), Box::new(|i| [(i & 0x7f) << 57 | i >> 7, i.reverse_bits(), i & 1])));
    all.push(("Gray code".into(), Box::new(|i| [(i ^ i >> 1) << 20, 0, 0])));
    all
}

#[test]
fn patterns_fill_the_table_as_chance_does() {
    for (name, key) in patterns() {
        let hasher = Hasher::random().unwrap();
        let mut index = Index::new(PLACES / 16);
        let mut first = vec![0u32; PLACES / 16];
        for i in 0..PLACES as u64 * 4 / 5 {
            let spot = index.spot(hasher.hash(&key(i)));
            first[spot.first as usize] += 1;
            let room = index.room(spot);
            assert_ne!(room, index::NONE, "{name}: no room for flow {i} of {PLACES} places");
            index.set(room, spot.tag);
        }
        // Buckets with 12.8 on average: the largest of 1,024 is above 40 once in 10^7 times by chance.
        let most = first.iter().max().copied().unwrap_or_default();
        assert!(most <= 40, "{name}: {most} in a bucket");
    }
}

#[test]
fn tags_tell_flows_of_a_bucket_apart() {
    let (hasher, index) = (Hasher::random().unwrap(), Index::new(1));
    let mut tags: Vec<i16> = (0..10_000).map(|i| index.spot(hasher.hash(&[i << 32, 0, 0])).tag).collect();
    assert!(!tags.contains(&0));
    tags.sort_unstable();
    tags.dedup();
    // 10,000 out of 65,535: 9,280 different ones are expected, give or take 26.
    assert!((9_000..9_600).contains(&tags.len()), "{}", tags.len());
}

#[test]
fn each_table_has_a_secret_of_its_own_and_all_words_count() {
    let (a, b) = (Hasher::random().unwrap(), Hasher::random().unwrap());
    let key = [1, 2, 3, 4, 5, 6];
    assert_ne!(a.hash(&key), b.hash(&key));
    for word in 0..6 {
        for bit in 0..64 {
            let mut other = key;
            other[word] ^= 1 << bit;
            assert_ne!(a.hash(&key), a.hash(&other), "word {word} bit {bit}");
        }
    }
}
