//! Finds the entries of a document in its text.

use std::collections::HashMap;

use crate::document::yaml::Chunk;
use crate::tree::{FileSpan, Tree, TreeValue};

/// The indentation if no map shows it.
const INDENT: usize = 2;

/// The style of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A text, a number, a boolean or null.
    Scalar,
    /// A map in block style, with at least one line per entry.
    Map,
    /// A list in block style, with at least one line per item.
    List,
    /// Flow style, in braces or brackets.
    Flow,
    /// An alias, or a style that is copied unchanged.
    Opaque,
}

/// The kind of value at a position. Several values can begin at the same byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SlotKind {
    Scalar,
    List,
    Map,
}

impl SlotKind {
    pub(crate) fn of(value: &Tree) -> Self {
        match value.value {
            TreeValue::Map(_) => SlotKind::Map,
            TreeValue::List(_) => SlotKind::List,
            _ => SlotKind::Scalar,
        }
    }
}

/// An entry of a map or an item of a list. All fields are byte offsets in the document's text.
#[derive(Debug)]
pub(crate) struct Slot<'t> {
    /// The start of the blank lines and comments before it.
    pub(crate) lead: usize,
    /// The start of its key or dash.
    pub(crate) start: usize,
    /// The end of its key or dash.
    pub(crate) after: usize,
    /// The start of its value.
    pub(crate) content: usize,
    /// The end of its value. For block values, equal to `end`.
    pub(crate) close: usize,
    /// The end of its lines.
    pub(crate) end: usize,
    /// The number of bytes before `start` on its line.
    pub(crate) column: usize,
    /// True for an entry of a map.
    pub(crate) is_entry: bool,
    /// True inside braces or brackets.
    pub(crate) is_inside: bool,
    pub(crate) style: Style,
    /// The value as it was written.
    pub(crate) value: &'t Tree,
    /// The slots in its value, in order of the text.
    pub(crate) children: Vec<usize>,
}

/// The slots of a document. The first is the document itself.
pub(crate) struct Layout<'t> {
    pub(crate) text: &'t str,
    /// True for JSON, where keys have quotes.
    pub(crate) is_json: bool,
    /// The indentation of maps relative to their keys, in bytes.
    pub(crate) indent: usize,
    base: usize,
    /// The offset of each line.
    lines: Vec<usize>,
    pub(crate) slots: Vec<Slot<'t>>,
    keys: HashMap<usize, usize>,
    values: HashMap<(usize, SlotKind), usize>,
}

impl<'t> Layout<'t> {
    pub(crate) fn of(chunk: Chunk<'t>, tree: &'t Tree) -> Self {
        let text = chunk.text;
        let mut layout = Layout {
            text,
            is_json: text
                .trim_start()
                .strip_prefix('{')
                .is_some_and(|rest| rest.trim_start().starts_with('"')),
            indent: INDENT,
            lines: std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
            base: usize::try_from(chunk.bytes).unwrap_or(usize::MAX),
            slots: Vec::new(),
            keys: HashMap::new(),
            values: HashMap::new(),
        };
        let end = layout.leading(text.len(), 0, 0);
        layout.place(tree, SlotPosition::document(end));
        let by_their_keys = layout.slots.iter().filter_map(|slot| {
            let first = slot
                .children
                .first()
                .filter(|_| slot.style == Style::Map && slot.is_entry)?;
            layout.slots[*first].column.checked_sub(slot.column)
        });
        layout.indent = by_their_keys.take(1).next().unwrap_or(INDENT);
        layout
    }

    /// Returns the start of the line that contains a byte.
    pub(crate) fn line_start(&self, at: usize) -> usize {
        let later = self.lines.partition_point(|start| *start <= at);
        later.checked_sub(1).map_or(0, |line| self.lines[line])
    }

    /// Returns the byte in the document's text for a span.
    pub(crate) fn at(&self, span: Option<FileSpan>) -> Option<usize> {
        let at = usize::try_from(span?.offset).ok()?.checked_sub(self.base)?;
        (at <= self.text.len()).then_some(at)
    }

    /// Returns the entry whose key is at a byte.
    pub(crate) fn keyed(&self, at: usize) -> Option<usize> {
        self.keys.get(&at).copied()
    }

    /// Returns the slot of a value.
    pub(crate) fn source(&self, value: &Tree) -> Option<usize> {
        let at = self.at(value.span)?;
        self.values.get(&(at, SlotKind::of(value))).copied()
    }

    fn place(&mut self, value: &'t Tree, place: SlotPosition) -> usize {
        let SlotPosition { after, end, .. } = place;
        let own = self.at(value.span).filter(|at| (after..=end).contains(at));
        let is_flow = value.span.is_some_and(|span| span.len == 1);
        let style = match (own, SlotKind::of(value)) {
            (None, _) => Style::Opaque,
            (_, SlotKind::Scalar) => Style::Scalar,
            (_, _) if is_flow => Style::Flow,
            (_, SlotKind::Map) => Style::Map,
            (_, SlotKind::List) => Style::List,
        };
        let content = own.unwrap_or(after);
        let len = value.span.and_then(|span| usize::try_from(span.len).ok());
        let close = match style {
            Style::Scalar => (content + len.unwrap_or_default()).min(end),
            Style::Flow => closing(self.text, content, end),
            Style::Opaque if place.is_inside => aliased(self.text, after, end),
            _ => end,
        };
        let index = self.slots.len();
        self.slots.push(Slot {
            lead: place.lead,
            start: place.start,
            after,
            content,
            close,
            end: if place.is_inside { close } else { end },
            column: place.start - self.line_start(place.start),
            is_entry: place.is_entry,
            is_inside: place.is_inside,
            style,
            value,
            children: Vec::new(),
        });
        if let (Some(at), false) = (own, value.is_null()) {
            self.values
                .entry((at, SlotKind::of(value)))
                .or_insert(index);
        }
        self.fill(index);
        index
    }

    /// Adds the slots in a value.
    fn fill(&mut self, index: usize) {
        let slot = &self.slots[index];
        let (value, style, content, end) = (slot.value, slot.style, slot.content, slot.close);
        let floor = slot.after;
        let is_inside = style == Style::Flow;
        let mut places = match (&value.value, style) {
            (_, Style::Opaque | Style::Scalar) => return,
            (TreeValue::Map(entries), _) => {
                let keys = entries.iter().filter_map(|(key, value)| {
                    let start = self.at(key.span)?;
                    let len = usize::try_from(key.span?.len).ok()?;
                    let is_here = (content..end).contains(&start);
                    is_here.then_some((start, start + len, value))
                });
                keys.collect::<Vec<_>>()
            }
            (TreeValue::List(items), _) => {
                let items = items.iter().map(|item| {
                    let at = self.at(item.span).filter(|at| (floor..=end).contains(at))?;
                    let start = if is_inside { at } else { self.dash(floor, at)? };
                    Some((start, if is_inside { at } else { start + 1 }, item))
                });
                let Some(items) = items.collect::<Option<Vec<_>>>() else {
                    self.slots[index].style = Style::Opaque;
                    return;
                };
                items
            }
            _ => return,
        };
        places.sort_by_key(|(start, _, _)| *start);
        let leads: Vec<usize> = places
            .iter()
            .map(|(start, _, _)| self.lead(*start, floor, is_inside))
            .collect();
        let is_entry = value.as_map().is_some();
        for (n, (start, after, value)) in places.into_iter().enumerate() {
            let place = SlotPosition {
                lead: leads[n],
                start,
                after,
                end: leads.get(n + 1).copied().unwrap_or(end),
                is_entry,
                is_inside,
            };
            let child = self.place(value, place);
            self.slots[index].children.push(child);
            if is_entry {
                self.keys.insert(start, child);
            }
        }
    }

    fn lead(&self, start: usize, floor: usize, is_inside: bool) -> usize {
        let line = self.line_start(start);
        let is_first = self.text[line..start].bytes().all(|byte| byte == b' ');
        if is_inside || !is_first || line < floor {
            return start;
        }
        self.leading(line, start - line, floor)
    }

    /// Returns the start of the blank lines, comments and document end before the line that starts at `line`. Comments that
    /// are indented further than `column` belong to the previous entry.
    fn leading(&self, mut line: usize, column: usize, floor: usize) -> usize {
        while line > floor {
            let before = if self.text[..line].ends_with('\n') {
                line - 1
            } else {
                line
            };
            let start = self.line_start(before);
            let content = self.text[start..line].trim_start();
            let indent = line - start - content.len();
            let is_passed = content.is_empty()
                || (content.starts_with('#') && indent <= column)
                || (content.trim_end() == "..." && indent == 0);
            if start < floor || !is_passed {
                break;
            }
            line = start;
        }
        line
    }

    /// Returns the dash of the item whose value starts at a byte.
    fn dash(&self, floor: usize, value: usize) -> Option<usize> {
        let mut at = value;
        loop {
            let line = self.line_start(at);
            let mut before = self.text.get(line.max(floor)..at)?;
            if at != value {
                before = before.split(" #").next().unwrap_or_default();
            }
            before = before.trim_end();
            // Anchors, tags and block scalar indicators.
            while let Some((rest, token)) = before.rsplit_once(' ')
                && token.starts_with(['&', '!', '|', '>'])
            {
                before = rest.trim_end();
            }
            if before.ends_with('-') {
                return Some(line.max(floor) + before.len() - 1);
            }
            if !(before.is_empty() || before.trim_start().starts_with('#')) || line <= floor {
                return None;
            }
            at = line - 1;
        }
    }
}

/// The position of a slot, as far as the surrounding slots determine it.
#[derive(Clone, Copy)]
struct SlotPosition {
    lead: usize,
    start: usize,
    after: usize,
    end: usize,
    is_entry: bool,
    is_inside: bool,
}

impl SlotPosition {
    fn document(end: usize) -> Self {
        SlotPosition {
            lead: 0,
            start: 0,
            after: 0,
            end,
            is_entry: false,
            is_inside: false,
        }
    }
}

/// Returns the offset after the bracket that closes the one at `open`.
fn closing(text: &str, open: usize, end: usize) -> usize {
    let mut depth = 0_usize;
    let (mut quote, mut is_escaped, mut is_comment, mut before) = (None, false, false, b' ');
    for (at, byte) in text.bytes().enumerate().take(end).skip(open) {
        match quote {
            _ if is_comment => is_comment = byte != b'\n',
            Some(_) if is_escaped => is_escaped = false,
            Some(b'"') if byte == b'\\' => is_escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None => match byte {
                b'"' | b'\'' if b" \t\r\n[{,:".contains(&before) => quote = Some(byte),
                b'#' if before.is_ascii_whitespace() => is_comment = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            },
        }
        before = byte;
    }
    end
}

/// Returns the offset after an alias in braces.
fn aliased(text: &str, after: usize, end: usize) -> usize {
    let rest = text.get(after..end).unwrap_or_default();
    after + rest.find([',', '}', ']', '\n']).unwrap_or(rest.len())
}
