//! Finds the nearest known word to a misspelled one.

/// Returns the candidate nearest to `word`, if it is near enough.
///
/// The comparison ignores case. Near enough is at most one edit for words of up to three letters, and at most a third of the
/// longer word otherwise; a swap of two neighbors is one edit. Of equally near candidates, the first wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Letters::of(word);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters = Letters::of(candidate);
        let limit = (word.count.max(letters.count) / 3).max(1);
        // Only a candidate nearer than the best so far matters.
        let limit = best.map_or(limit, |(distance, _)| limit.min(distance.saturating_sub(1)));
        if word.differ(&letters) > 2 * limit {
            continue;
        }
        if let Some(distance) = distance(word.all(), letters.all(), limit) {
            if distance == 0 {
                return Some(candidate);
            }
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns a hint with the [`nearest`] candidate.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Returns a hint with the [`nearest`] candidate, or with all candidates if none is near enough. `prefix` goes before the
/// candidate, such as `.inputs.`.
pub fn nearest_or_all<'a, C>(word: &str, prefix: &str, candidates: C) -> String
where
    C: IntoIterator<Item = &'a str> + Clone,
{
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("did you mean `{prefix}{near}`?");
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    format!("expected one of {}", all.join(", "))
}

/// The number of letters that are compared: no field of the language is longer.
const LONGEST: usize = 64;

/// The first letters of a word, in lower case.
struct Letters {
    all: [char; LONGEST],
    count: usize,
    /// The set of letters: one bit each; rare letters share a bit with others.
    set: u64,
}

impl Letters {
    fn of(word: &str) -> Self {
        let mut letters = Letters {
            all: ['\0'; LONGEST],
            count: 0,
            set: 0,
        };
        if word.is_ascii() {
            letters.fill(word.bytes().map(|byte| byte.to_ascii_lowercase().into()));
        } else {
            letters.fill(word.chars().flat_map(char::to_lowercase));
        }
        letters
    }

    fn fill(&mut self, lower: impl Iterator<Item = char>) {
        for (slot, letter) in self.all.iter_mut().zip(lower) {
            *slot = letter;
            self.count += 1;
            self.set |= 1 << (u32::from(letter) % u64::BITS);
        }
    }

    /// Returns a lower bound for the number of letters that only one of the words has. An edit removes at most one of each.
    fn differ(&self, other: &Letters) -> usize {
        (self.set ^ other.set).count_ones() as usize
    }

    fn all(&self) -> &[char] {
        &self.all[..self.count]
    }
}

/// Returns the number of edits between two words: insertions, deletions, substitutions and swaps of neighbors. `None` if
/// there are more than `limit`, which is usually detected early, because an unknown word is compared with hundreds.
///
/// Source: optimal string alignment, the restricted form of Damerau-Levenshtein.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let first: [usize; LONGEST + 1] = std::array::from_fn(|j| j);
    let mut rows = [first, first, first];
    let [mut before, mut last, mut row] = rows.each_mut();
    for (i, x) in a.iter().enumerate() {
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = last[j] + usize::from(x != y);
            row[j + 1] = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        // A swap refers two rows back.
        let near = |row: &[usize]| row[..=b.len()].iter().any(|edits| *edits <= limit);
        if !near(row) && !near(last) {
            return None;
        }
        (before, last, row) = (last, row, before);
    }
    let edits = last[b.len()];
    (edits <= limit).then_some(edits)
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
