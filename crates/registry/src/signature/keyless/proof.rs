//! Inclusion proofs: a log contains an entry if a path of hashes leads from the entry to the tree root that the log signed.
//!
//! Source: RFC 6962, section 2.1; RFC 9162, section 2.1.3.2; C2SP, `signed-note.md` and `tlog-checkpoint.md`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use super::{evidence::InclusionProof, root::Log};

/// The longest checkpoint, in bytes.
const MOST_BYTES: usize = 16 << 10;
/// The separator of a note's text and its signatures.
const SIGNATURES: &str = "\n\n";
/// The start of a signature.
const DASH: &str = "\u{2014} ";

/// Checks that the tree contains the entry, and that the log signed the tree.
pub(crate) fn check(proof: &InclusionProof, entry: &[u8], log: &Log) -> Result<(), String> {
    let leaf: [u8; 32] = Sha256::new_with_prefix([0])
        .chain_update(entry)
        .finalize()
        .into();
    let root = root(leaf, proof).ok_or("the proof of its log entry is not valid")?;
    if root[..] != proof.root[..] {
        return Err("the proof of its log entry leads to another hash".to_owned());
    }
    let (size, hash) = checkpoint(&proof.checkpoint, log)?;
    if size != proof.size || hash != root {
        return Err("the checkpoint of its log entry is of another tree".to_owned());
    }
    Ok(())
}

/// Returns the hash of the tree that the path leads to; none if the path has another length than the tree.
fn root(leaf: [u8; 32], proof: &InclusionProof) -> Option<[u8; 32]> {
    if proof.index >= proof.size {
        return None;
    }
    let (mut at, mut last) = (proof.index, proof.size - 1);
    let mut hash = leaf;
    for sibling in &proof.hashes {
        let sibling = <[u8; 32]>::try_from(&sibling[..]).ok()?;
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            hash = node(&sibling, &hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(&hash, &sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let hash = Sha256::new_with_prefix([1]);
    hash.chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

/// Returns the size and the hash in a checkpoint that the log signed.
fn checkpoint(note: &str, log: &Log) -> Result<(u64, [u8; 32]), String> {
    let wrong = || "the checkpoint of its log entry is not valid".to_owned();
    if note.len() > MOST_BYTES {
        return Err(wrong());
    }
    let (text, signatures) = note.rsplit_once(SIGNATURES).ok_or_else(wrong)?;
    // The line break before the empty line belongs to the text.
    let text = format!("{text}\n");
    let is_signed = signatures.lines().take(16).any(|line| {
        let signature = line
            .strip_prefix(DASH)
            .and_then(|line| line.rsplit_once(' '));
        let signature = signature.and_then(|(_, signature)| STANDARD.decode(signature).ok());
        signature.is_some_and(|bytes| {
            bytes.split_at_checked(4).is_some_and(|(hint, signature)| {
                hint == log.hint() && log.signed(text.as_bytes(), signature)
            })
        })
    });
    if !is_signed {
        return Err("the log did not sign the checkpoint of its log entry".to_owned());
    }
    let mut lines = text.lines().skip(1);
    let size = lines.next().and_then(|line| line.parse().ok());
    let hash = lines.next().and_then(|line| STANDARD.decode(line).ok());
    let hash = hash.and_then(|hash| hash.try_into().ok());
    size.zip(hash).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hash of a tree and the path of an entry in it, as RFC 6962 defines them.
    fn tree(leaves: &[[u8; 32]], index: usize) -> ([u8; 32], Vec<Vec<u8>>) {
        if leaves.len() == 1 {
            return (leaves[0], Vec::new());
        }
        let split = leaves.len().next_power_of_two() / 2;
        let (left, right) = leaves.split_at(split);
        let is_left = index < split;
        let (left, left_path) = tree(left, if is_left { index } else { 0 });
        let (right, right_path) = tree(right, if is_left { 0 } else { index - split });
        let (mut path, sibling) = if is_left {
            (left_path, right)
        } else {
            (right_path, left)
        };
        path.push(sibling.to_vec());
        (node(&left, &right), path)
    }

    #[test]
    fn the_path_of_each_entry_leads_to_the_root_of_each_tree_and_no_other_path_does() {
        let leaves: Vec<[u8; 32]> = (0..20_u8).map(|byte| [byte; 32]).collect();
        for size in 1..=leaves.len() {
            for index in 0..size {
                let (expected, hashes) = tree(&leaves[..size], index);
                let proof = |index: usize, size: usize, hashes: Vec<Vec<u8>>| InclusionProof {
                    index: index as u64,
                    size: size as u64,
                    root: Vec::new(),
                    hashes,
                    checkpoint: String::new(),
                };
                let good = proof(index, size, hashes.clone());
                assert_eq!(
                    root(leaves[index], &good),
                    Some(expected),
                    "{index} of {size}"
                );
                let other = leaves[(index + 1) % leaves.len()];
                assert_ne!(root(other, &good), Some(expected));
                let long = [hashes.clone(), vec![vec![0; 32]]].concat();
                assert_eq!(root(leaves[index], &proof(index, size, long)), None);
                assert_eq!(
                    root(leaves[index], &proof(size, size, hashes.clone())),
                    None
                );
                for at in 0..hashes.len() {
                    let mut short = hashes.clone();
                    short.remove(at);
                    let short = proof(index, size, short);
                    assert_ne!(root(leaves[index], &short), Some(expected));
                }
            }
        }
    }
}
