//! The nearest known word to a misspelt one.

/// The candidate that is nearest to `word`, when one is near enough to be meant.
///
/// Case doesn't count. Near enough is at most one edit for words of up to three letters and at most a
/// third of the longer word otherwise; a swap of two neighbours is one edit. Of equally near ones the
/// first wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Letters::of(word);
    let mut letters = Letters::default();
    let mut best = Best::default();
    for candidate in candidates {
        letters.take(candidate);
        best.consider(&word, &letters, candidate);
    }
    best.found
}

/// Candidates that are asked again and again.
#[derive(Debug)]
pub(crate) struct Words<'a>(Vec<(Letters, &'a str)>);

impl<'a> Words<'a> {
    /// Makes candidates ready.
    pub(crate) fn new(words: impl Iterator<Item = &'a str>) -> Self {
        Self(words.map(|word| (Letters::of(word), word)).collect())
    }

    /// As [`nearest`] among them.
    pub(crate) fn nearest(&self, word: &str) -> Option<&'a str> {
        let word = Letters::of(word);
        let mut best = Best::default();
        for (letters, candidate) in &self.0 {
            best.consider(&word, letters, candidate);
        }
        best.found
    }
}

/// The nearest candidate so far.
#[derive(Default)]
struct Best<'a> {
    found: Option<&'a str>,
    distance: usize,
}

impl<'a> Best<'a> {
    fn consider(&mut self, word: &Letters, letters: &Letters, candidate: &'a str) {
        let (a, b) = (word.all.len(), letters.all.len());
        let mut limit = (a.max(b) / 3).max(1);
        if self.found.is_some() {
            let Some(nearer) = self.distance.checked_sub(1) else {
                return;
            };
            limit = limit.min(nearer);
        }
        // An edit changes the length by one, and takes or brings at most one letter: most candidates need no closer look.
        let lacks = |these: u64, others: u64| (these & !others).count_ones() as usize > limit;
        let apart = lacks(word.set, letters.set) || lacks(letters.set, word.set);
        if a.abs_diff(b) > limit || apart {
            return;
        }
        let distance = distance(&word.all, &letters.all);
        if distance <= limit {
            (self.found, self.distance) = (Some(candidate), distance);
        }
    }
}

/// The letters of a word, small ones, and which there are: a bit for each, shared by several.
#[derive(Debug, Default)]
struct Letters {
    all: Vec<char>,
    set: u64,
}

impl Letters {
    fn of(word: &str) -> Self {
        let mut letters = Self::default();
        letters.take(word);
        letters
    }

    /// Forgets the word before.
    fn take(&mut self, word: &str) {
        self.all.clear();
        let small = word.chars().take(LONGEST).flat_map(char::to_lowercase);
        self.all.extend(small);
        let bits = self.all.iter().map(|c| 1 << (u32::from(*c) % 64));
        self.set = bits.fold(0, |set, bit: u64| set | bit);
    }
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
