//! `.helmignore`: files in a chart's folder that are not part of the chart.
//!
//! Source: helm's `pkg/ignore`: rules as in `.gitignore`, without `**`.

use crate::error::Error;

/// The rules of a chart.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: Vec<char>,
    negated: bool,
    /// True if it applies to folders only.
    folders: bool,
    /// True if the pattern applies to the whole path instead of the last name.
    whole: bool,
}

impl Rules {
    /// Parses the file.
    pub(crate) fn parse(text: &str) -> Result<Rules, Error> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rules = lines.map(|line| {
            if line.contains("**") {
                return Err(Error::file(".helmignore", "`**` is not supported"));
            }
            let (line, negated) = match line.strip_prefix('!') {
                Some(rest) => (rest, true),
                None => (line, false),
            };
            let (line, folders) = match line.strip_suffix('/') {
                Some(rest) => (rest, true),
                None => (line, false),
            };
            let whole = line.contains('/');
            let line = line.strip_prefix('/').unwrap_or(line);
            Ok(Rule {
                pattern: line.chars().collect(),
                negated,
                folders,
                whole,
            })
        });
        Ok(Rules(rules.collect::<Result<_, _>>()?))
    }

    /// True if a file is ignored, directly or by one of its folders.
    pub(crate) fn ignores(&self, path: &str) -> bool {
        // Hidden files in `templates` are never part of a chart.
        if path
            .strip_prefix("templates/")
            .is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
        {
            return true;
        }
        let folders = path.match_indices('/').map(|(at, _)| (&path[..at], true));
        folders
            .chain([(path, false)])
            .any(|(path, is_folder)| self.leaves_out(path, is_folder))
    }

    fn leaves_out(&self, path: &str, is_folder: bool) -> bool {
        for rule in &self.0 {
            let wrong_kind = rule.folders && !is_folder;
            if rule.negated {
                if wrong_kind || !rule.matches(path) {
                    return true;
                }
            } else if !wrong_kind && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let name = if self.whole {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        matches(&self.pattern, &name.chars().collect::<Vec<_>>())
    }
}

/// Implements Go's `filepath.Match`: `*` and `?` within a name, `[a-z]`, `[^a]`, `\` before a character.
fn matches(pattern: &[char], name: &[char]) -> bool {
    // The positions in the pattern after the part of the name read so far.
    let mut states = vec![0];
    let close = |states: &mut Vec<usize>| {
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            if pattern.get(state) == Some(&'*') && !states.contains(&(state + 1)) {
                states.push(state + 1);
            }
            at += 1;
        }
    };
    close(&mut states);
    for c in name {
        let mut next = Vec::new();
        for state in states {
            let step = match pattern.get(state) {
                Some('*') => (*c != '/').then_some(state),
                Some('?') => (*c != '/').then_some(state + 1),
                Some('[') => class(&pattern[state..], *c).map(|length| state + length),
                Some('\\') => (pattern.get(state + 1) == Some(c)).then_some(state + 2),
                Some(wanted) => (wanted == c).then_some(state + 1),
                None => None,
            };
            next.extend(step.filter(|step| !next.contains(step)));
        }
        close(&mut next);
        states = next;
    }
    states.contains(&pattern.len())
}

/// Returns the length of a class that matches the character.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = pattern.get(1) == Some(&'^');
    let mut at = if negated { 2 } else { 1 };
    let (start, mut found) = (at, false);
    loop {
        let from = *pattern.get(at)?;
        if from == ']' && at > start {
            return (found != negated && c != '/').then_some(at + 1);
        }
        let to = match pattern.get(at + 1) {
            Some('-') => *pattern.get(at + 2)?,
            _ => from,
        };
        found |= (from..=to).contains(&c);
        at += if pattern.get(at + 1) == Some(&'-') {
            3
        } else {
            1
        };
    }
}
