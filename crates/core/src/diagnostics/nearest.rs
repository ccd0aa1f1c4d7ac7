//! The nearest known word to a misspelt one.

/// The candidate that is nearest to `word`, when one is near enough to be meant.
///
/// Case doesn't count. Near enough is at most one edit for words of up to three letters and at most a
/// third of the longer word otherwise; a swap of two neighbours is one edit. Of equally near ones the
/// first wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word
        .chars()
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .collect();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate
                .chars()
                .take(LONGEST)
                .flat_map(char::to_lowercase)
                .collect();
            let limit = (word.len().max(letters.len()) / 3).max(1);
            let distance = distance(&word, &letters);
            (distance <= limit).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters compared: no field of ours is longer.
const LONGEST: usize = 64;

/// Edits between two words: insertions, deletions, substitutions and swaps of neighbours.
///
/// Source: optimal string alignment, the restricted form of Damerau-Levenshtein.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            let substituted = last[j] + usize::from(x != y);
            row[j + 1] = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_their_neighbour() {
        let known = ["replicas", "image", "port", "namespace"];
        for (word, meant) in [
            ("replcas", Some("replicas")),
            ("Replicas", Some("replicas")),
            ("iamge", Some("image")),
            ("prot", Some("port")),
            ("namspace", Some("namespace")),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
