//! Writes a document in the present spelling from parts of the original text.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::comments::comments;
use super::layout::{Layout, Slot, SlotKind, Style};
use super::scalar;
use crate::tree::{Tree, TreeKey, TreeValue};

/// Writes a document.
pub(crate) struct DocumentWriter<'a> {
    pub(crate) layout: &'a Layout<'a>,
    /// Comments to write before the entry that starts at a byte of the text.
    strays: &'a BTreeMap<usize, Vec<String>>,
    eol: &'static str,
    out: String,
    /// The parts of the text that are in the result.
    pub(crate) copied: Vec<Range<usize>>,
    /// The starts of entries that were written separately.
    written: Vec<usize>,
    /// Slots whose leading comments are written.
    led: HashSet<usize>,
    /// Slots that are being written.
    open: Vec<usize>,
}

impl<'a> DocumentWriter<'a> {
    pub(crate) fn new(layout: &'a Layout<'a>, strays: &'a BTreeMap<usize, Vec<String>>) -> Self {
        DocumentWriter {
            layout,
            strays,
            eol: if layout.text.contains("\r\n") {
                "\r\n"
            } else {
                "\n"
            },
            out: String::with_capacity(layout.text.len()),
            copied: Vec::new(),
            written: Vec::new(),
            led: HashSet::new(),
            open: Vec::new(),
        }
    }

    /// Writes the whole document.
    pub(crate) fn document(&mut self, today: &Tree) {
        let Some(root) = self.layout.slots.first() else {
            return;
        };
        self.value(0, today, 0);
        self.stray(usize::MAX, 0);
        self.copy(root.end..self.layout.text.len(), 0);
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }

    /// Returns the comments that are not in the result, by the start of the entry that they must precede.
    pub(crate) fn strays(&self) -> BTreeMap<usize, Vec<String>> {
        let mut written = self.written.clone();
        written.sort_unstable();
        let mut copied: Vec<(usize, usize)> = self
            .copied
            .iter()
            .map(|range| (range.start, range.end))
            .collect();
        copied.sort_unstable();
        let mut copied = copied.into_iter().peekable();
        let mut end = 0;
        let mut strays: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for comment in comments(self.layout.text) {
            while let Some((_, next)) = copied.next_if(|(start, _)| *start <= comment.start) {
                end = end.max(next);
            }
            if comment.end <= end {
                continue;
            }
            let next = written.partition_point(|start| *start < comment.start);
            let before = written.get(next).copied().unwrap_or(usize::MAX);
            let text = self.layout.text[comment].to_owned();
            strays.entry(before).or_default().push(text);
        }
        strays
    }

    fn slot(&self, index: usize) -> &'a Slot<'a> {
        let layout = self.layout;
        &layout.slots[index]
    }

    /// Copies a part of the text, with its lines moved to the right by `by` bytes.
    fn copy(&mut self, range: Range<usize>, by: isize) {
        let Some(text) = self
            .layout
            .text
            .get(range.clone())
            .filter(|text| !text.is_empty())
        else {
            return;
        };
        let is_line = self.layout.line_start(range.start) == range.start;
        self.copied.push(range);
        for (n, line) in text.split_inclusive('\n').enumerate() {
            let left = usize::try_from(-by).unwrap_or_default();
            let spaces = line.len() - line.trim_start_matches(' ').len();
            if (n == 0 && !is_line) || line.trim().is_empty() {
                self.out.push_str(line);
            } else {
                self.indent(usize::try_from(by).unwrap_or_default());
                self.out.push_str(&line[left.min(spaces)..]);
            }
        }
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    /// Ends the last line, if it has no line break.
    fn fresh_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push_str(self.eol);
        }
    }

    /// Writes the comments that belong before the entry that starts at a byte.
    fn stray(&mut self, start: usize, column: usize) {
        let strays = self.strays;
        for comment in strays.get(&start).into_iter().flatten() {
            self.fresh_line();
            self.indent(column);
            self.out.push_str(comment);
            self.out.push_str(self.eol);
        }
    }

    /// Writes everything after the key or the dash of a slot, whose column is now `column`.
    fn value(&mut self, index: usize, value: &Tree, column: usize) {
        let slot = self.slot(index);
        let by = shift(slot.column, column);
        self.open.push(index);
        let first = slot.children.first().map(|child| self.slot(*child));
        match (slot.style, &value.value, first) {
            (Style::Opaque, ..) => self.copy(slot.after..slot.end, by),
            _ if *slot.value == *value => self.copy(slot.after..slot.end, by),
            (Style::Map, TreeValue::Map(entries), Some(first)) if !entries.is_empty() => {
                self.copy(slot.after..first.lead, by);
                self.entries(entries, Some(index), moved(first.column, by));
            }
            (Style::List, TreeValue::List(items), Some(first))
                if items.len() == slot.children.len() =>
            {
                self.copy(slot.after..first.lead, by);
                for (item, child) in items.iter().zip(&slot.children) {
                    self.item(*child, item, moved(self.slot(*child).column, by));
                }
            }
            (Style::Flow, TreeValue::Map(_) | TreeValue::List(_), _)
                if index == 0 || self.fits(slot, value) =>
            {
                self.copy(slot.after..slot.content, by);
                let text = self.flow(value);
                self.out.push_str(&text);
                self.copy(slot.close..slot.end, by);
            }
            (Style::Scalar, ..)
                if SlotKind::of(value) == SlotKind::Scalar && self.is_on_line(slot) =>
            {
                self.copy(slot.after..slot.content, by);
                let was = &self.layout.text[slot.content..slot.close];
                self.out.push_str(&scalar::scalar(value, was));
                self.copy(slot.close..slot.end, by);
            }
            _ => self.made(value, column, slot.is_entry),
        }
        self.open.pop();
    }

    /// Writes the value of a key that is not in the text.
    fn made(&mut self, value: &Tree, column: usize, is_entry: bool) {
        match &value.value {
            TreeValue::Map(entries) if is_entry && !entries.is_empty() => {
                self.out.push(':');
                self.out.push_str(self.eol);
                self.entries(entries, None, column + self.layout.indent);
            }
            _ => {
                let text = self.flow(value);
                self.out.push_str(if is_entry { ": " } else { " " });
                self.out.push_str(&text);
                self.out.push_str(self.eol);
            }
        }
    }

    /// Writes the entries of a map.
    fn entries(&mut self, entries: &[(TreeKey, Tree)], within: Option<usize>, column: usize) {
        for (key, value) in self.ordered(entries, within.map(|index| self.slot(index))) {
            self.entry(key, value, column);
        }
    }

    /// Returns the entries of a map in order of the text: those of `within` first, those moved here last.
    pub(crate) fn ordered<'t>(
        &self,
        entries: &'t [(TreeKey, Tree)],
        within: Option<&Slot<'_>>,
    ) -> Vec<&'t (TreeKey, Tree)> {
        let merged = within.map(|slot| self.merged(slot)).unwrap_or_default();
        let mut order: Vec<(usize, &(TreeKey, Tree))> = Vec::with_capacity(entries.len());
        for entry in entries {
            let at = self.layout.at(entry.0.span);
            let is_there = at.is_some() || is_written(&entry.1);
            if !is_there || at.is_some_and(|at| merged.contains(&at)) {
                continue;
            }
            let is_own = |at: &usize| within.is_none_or(|slot| (slot.lead..slot.end).contains(at));
            order.push((at.filter(is_own).unwrap_or(usize::MAX), entry));
        }
        order.sort_by_key(|(at, _)| *at);
        order.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Returns the starts of the keys that a map gets from elsewhere through `<<`.
    fn merged(&self, slot: &Slot<'_>) -> HashSet<usize> {
        let own: HashSet<usize> = slot
            .children
            .iter()
            .map(|child| self.slot(*child).start)
            .collect();
        let keys = slot.value.as_map().into_iter().flatten();
        let starts = keys.filter_map(|(key, _)| self.layout.at(key.span));
        starts.filter(|start| !own.contains(start)).collect()
    }

    /// Returns the origin of an entry: the whole entry, or only its value.
    pub(crate) fn source(&self, key: &TreeKey, value: &Tree) -> Option<usize> {
        let whole = self
            .layout
            .at(key.span)
            .and_then(|at| self.layout.keyed(at));
        let whole = whole.filter(|index| self.slot(*index).value.span == value.span);
        let alone = || self.layout.source(value);
        // A new map may begin at the same byte as the map around it.
        let is_around =
            |index: &usize| SlotKind::of(value) == SlotKind::Map && self.open.contains(index);
        whole.or_else(|| alone().filter(|index| *index > 0 && !is_around(index)))
    }

    /// Writes an entry of a map in block style.
    fn entry(&mut self, key: &TreeKey, value: &Tree, column: usize) {
        self.fresh_line();
        let Some(index) = self.source(key, value) else {
            self.indent(column);
            self.out.push_str(&scalar::plain(&key.name));
            self.made(value, column, true);
            return;
        };
        let slot = self.slot(index);
        self.lead(index, column);
        self.indent(column);
        let name = self.key(key, slot);
        self.out.push_str(&name);
        if slot.is_inside {
            self.out.push_str(": ");
            let text = self.flow(value);
            self.out.push_str(&text);
            self.out.push_str(self.eol);
        } else if slot.is_entry {
            self.value(index, value, column);
        } else if let (Style::Map, Some(entries)) = (slot.style, value.as_map()) {
            self.out.push(':');
            self.out.push_str(self.eol);
            self.open.push(index);
            self.entries(entries, Some(index), column + self.layout.indent);
            self.open.pop();
        } else {
            self.made(value, column, true);
        }
    }

    /// Writes the comments and blank lines before a slot, once.
    fn lead(&mut self, index: usize, column: usize) {
        let slot = self.slot(index);
        self.written.push(slot.start);
        if !self.led.insert(index) {
            return;
        }
        self.stray(slot.start, column);
        let line = self.layout.line_start(slot.start);
        if slot.lead < line {
            self.copy(slot.lead..line, shift(slot.column, column));
        }
    }

    /// Returns a key as in the text, or its present spelling.
    pub(crate) fn key(&mut self, key: &TreeKey, slot: &Slot<'_>) -> String {
        let text = &self.layout.text[slot.start..slot.after.max(slot.start)];
        let is_own = slot.is_entry && self.layout.at(key.span) == Some(slot.start);
        let is_quoted = text.starts_with(['"', '\'']);
        let bare = text.trim_matches(['"', '\'']);
        match (is_own, is_quoted) {
            (true, _) if bare == key.name => text.to_owned(),
            (true, true) => scalar::quoted(&key.name),
            _ => scalar::plain(&key.name),
        }
    }

    /// Writes an item of a list in block style, its dash at `column`.
    fn item(&mut self, index: usize, value: &Tree, column: usize) {
        let slot = self.slot(index);
        let by = shift(slot.column, column);
        if *slot.value == *value || slot.style == Style::Opaque {
            self.copy(slot.lead..slot.end, by);
            return;
        }
        let first = slot.children.first().map(|child| self.slot(*child));
        let line = first.map(|first| &self.layout.text[slot.after..first.start]);
        let gap = line.filter(|gap| !gap.contains('\n') && slot.style == Style::Map);
        let (Some(gap), Some(first), Some(entries)) = (gap, first, value.as_map()) else {
            self.lead(index, column);
            self.indent(column);
            self.out.push('-');
            self.value(index, value, column);
            return;
        };
        self.fresh_line();
        self.lead(index, column);
        let before = std::mem::take(&mut self.out);
        let inner = moved(first.column, by);
        self.open.push(index);
        self.entries(entries, Some(index), inner);
        self.open.pop();
        let map = std::mem::replace(&mut self.out, before);
        // Comments before the first key are written before the dash.
        let is_lead = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let lead: usize = map
            .split_inclusive('\n')
            .take_while(is_lead)
            .map(str::len)
            .sum();
        let (comments, rest) = map.split_at(lead);
        self.out.push_str(comments);
        self.indent(column);
        self.out.push('-');
        self.out.push_str(gap);
        self.out
            .push_str(rest.get(inner.min(rest.len())..).unwrap_or_default());
    }

    /// True if a value is on the line of its key.
    pub(crate) fn is_on_line(&self, slot: &Slot<'_>) -> bool {
        !self.layout.text[slot.after..slot.close.max(slot.after)].contains('\n')
    }
}

fn shift(from: usize, to: usize) -> isize {
    isize::try_from(to).unwrap_or_default() - isize::try_from(from).unwrap_or_default()
}

fn moved(column: usize, by: isize) -> usize {
    column.saturating_add_signed(by)
}

/// True if any part of a value is in the text. The rest was added when the document was read.
fn is_written(value: &Tree) -> bool {
    value.span.is_some()
        || match &value.value {
            TreeValue::Map(entries) => entries
                .iter()
                .any(|(key, value)| key.span.is_some() || is_written(value)),
            TreeValue::List(items) => items.iter().any(is_written),
            _ => false,
        }
}
