//! What is done to good frames.

use super::{dice::Dice, frames, repair::repair};

/// Room of a buffer.
pub const ROOM: usize = 2048;

/// A frame for a port: random bytes, a good one, or a mutant of a good one and of `other`.
pub fn next(dice: &mut Dice, port: usize, other: &[u8]) -> Vec<u8> {
    let mut frame = match dice.below(16) {
        0 => {
            let most = if dice.one_in(8) { ROOM } else { 128 };
            let n = dice.below(most);
            return dice.bytes(n);
        }
        1 if !other.is_empty() => other.to_vec(),
        _ => frames::frame(dice, port, 2),
    };
    if dice.below(3) > 0 {
        for _ in 0..1 + dice.below(3) {
            mutate(dice, &mut frame, other);
        }
        if dice.one_in(2) {
            repair(&mut frame);
        }
    }
    frame.truncate(ROOM);
    frame
}

/// A place in a frame: the headers are hit more often than what is behind them.
fn place(dice: &mut Dice, len: usize) -> usize {
    let reach = if dice.below(4) > 0 { len.min(90) } else { len };
    dice.below(reach)
}

fn mutate(dice: &mut Dice, frame: &mut Vec<u8>, other: &[u8]) {
    let at = place(dice, frame.len());
    match dice.below(10) {
        0 => frame.truncate(at),
        1 => {
            let n = dice.below(64);
            frame.extend(dice.bytes(n));
        }
        2 => {
            let from = place(dice, other.len());
            frame.truncate(at);
            frame.extend(other.get(from..).unwrap_or_default());
        }
        3 => {
            let end = (at + 1 + dice.below(24)).min(frame.len());
            frame.drain(at..end);
        }
        4 => {
            let n = dice.below(24);
            let bytes = dice.bytes(n);
            frame.splice(at..at, bytes);
        }
        5 | 6 => {
            // A length, perhaps: near to what is left, or extreme.
            let left = frame.len() - at;
            let value = match dice.below(4) {
                0 => dice.pick(&[0, 1, 7, 8, 19, 20, 0x7fff, 0xffff]),
                _ => (left + dice.below(48)).saturating_sub(24) as u16,
            };
            if let Some(field) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *field = value.to_be_bytes();
            }
        }
        7 => {
            let value = dice.pick(&[0, 1, 2, 0x40, 0x44, 0x46, 0x4f, 0x60, 0x7f, 0x80, 0xfe, 0xff]);
            frame.get_mut(at).into_iter().for_each(|byte| *byte = value);
        }
        _ => {
            let bit = 1 << dice.below(8);
            frame.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
        }
    }
}
