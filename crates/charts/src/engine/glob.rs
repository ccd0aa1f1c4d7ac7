//! Patterns of `.Files.Glob`: `*` within a segment, `**` across, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\` before a character.
//!
//! Source: github.com/gobwas/glob with the separator `/`.

use orkestra_template::go::EvalFailure;

use crate::engine::Engine;

/// A compiled pattern.
pub(crate) struct Pattern(Vec<PatternPart>);

enum PatternPart {
    One(char),
    /// `?`
    Any,
    /// `*`
    Segment,
    /// `**`
    All,
    Class(bool, Vec<(char, char)>),
    Either(Vec<Pattern>),
}

impl Pattern {
    /// Compiles a pattern. A malformed one matches everything, as in Helm.
    pub(crate) fn compile(pattern: &str) -> Pattern {
        let chars: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        match parse(&chars, &mut at, 0) {
            Some(parts) if at == chars.len() => Pattern(parts),
            _ => Pattern(vec![PatternPart::All]),
        }
    }

    /// True if a path matches.
    ///
    /// # Errors
    /// The budget is exhausted: alternatives can make matching slow.
    pub(crate) fn matches(&self, path: &str, engine: &mut Engine<'_>) -> Result<bool, EvalFailure> {
        let path: Vec<char> = path.chars().collect();
        let ends = self.ends(&path, vec![0], engine)?;
        Ok(ends.contains(&path.len()))
    }

    /// Returns the positions where matches that begin at one of `starts` can end.
    fn ends(
        &self,
        path: &[char],
        mut starts: Vec<usize>,
        engine: &mut Engine<'_>,
    ) -> Result<Vec<usize>, EvalFailure> {
        for part in &self.0 {
            engine.steps(starts.len() as u64 + 1)?;
            let mut next = Vec::new();
            match part {
                PatternPart::Either(patterns) => {
                    for pattern in patterns {
                        next.extend(pattern.ends(path, starts.clone(), engine)?);
                    }
                }
                PatternPart::Segment | PatternPart::All => {
                    for start in starts {
                        let rest = &path[start..];
                        let slash = rest.iter().position(|c| *c == '/').unwrap_or(rest.len());
                        let most = if matches!(part, PatternPart::All) {
                            rest.len()
                        } else {
                            slash
                        };
                        engine.steps(most as u64)?;
                        next.extend(start..=start + most);
                    }
                }
                part => {
                    let one = |start: &usize| path.get(*start).is_some_and(|c| part.takes(*c));
                    next.extend(
                        starts
                            .iter()
                            .filter(|start| one(start))
                            .map(|start| start + 1),
                    );
                }
            }
            next.sort_unstable();
            next.dedup();
            starts = next;
        }
        Ok(starts)
    }
}

impl PatternPart {
    /// True if it matches this one character.
    fn takes(&self, c: char) -> bool {
        match self {
            PatternPart::One(wanted) => *wanted == c,
            PatternPart::Any => c != '/',
            PatternPart::Class(negated, ranges) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
            PatternPart::Segment | PatternPart::All | PatternPart::Either(_) => false,
        }
    }
}

/// Parses parts up to the end of the pattern, or of an alternative.
fn parse(chars: &[char], at: &mut usize, depth: usize) -> Option<Vec<PatternPart>> {
    let mut parts = Vec::new();
    while let Some(c) = chars.get(*at) {
        *at += 1;
        parts.push(match c {
            '\\' => {
                *at += 1;
                PatternPart::One(*chars.get(*at - 1)?)
            }
            '?' => PatternPart::Any,
            '*' if chars.get(*at) == Some(&'*') => {
                while chars.get(*at) == Some(&'*') {
                    *at += 1;
                }
                PatternPart::All
            }
            '*' => PatternPart::Segment,
            '[' => class(chars, at)?,
            '{' if depth < 8 => {
                let mut patterns = Vec::new();
                loop {
                    patterns.push(Pattern(parse(chars, at, depth + 1)?));
                    *at += 1;
                    match chars.get(*at - 1) {
                        Some(',') => {}
                        Some('}') => break,
                        _ => return None,
                    }
                }
                PatternPart::Either(patterns)
            }
            ',' | '}' if depth > 0 => {
                *at -= 1;
                return Some(parts);
            }
            c => PatternPart::One(*c),
        });
    }
    Some(parts)
}

/// Parses `[…]`, after its opening bracket.
fn class(chars: &[char], at: &mut usize) -> Option<PatternPart> {
    let negated = matches!(chars.get(*at), Some('!'));
    *at += usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let from = *chars.get(*at)?;
        *at += 1;
        if from == ']' && !ranges.is_empty() {
            return Some(PatternPart::Class(negated, ranges));
        }
        if chars.get(*at) == Some(&'-') && chars.get(*at + 1).is_some_and(|c| *c != ']') {
            ranges.push((from, *chars.get(*at + 1)?));
            *at += 2;
        } else {
            ranges.push((from, from));
        }
    }
}
