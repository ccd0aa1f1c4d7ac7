//! Values in braces and brackets.

use std::collections::HashMap;

use super::layout::{Slot, SlotKind, Style};
use super::scalar;
use super::write::DocumentWriter;
use crate::tree::{Tree, TreeKey, TreeValue};

impl DocumentWriter<'_> {
    /// True if a flow value can stay in flow style: on one line, without content that needs its own lines.
    pub(crate) fn fits(&self, slot: &Slot<'_>, value: &Tree) -> bool {
        self.is_on_line(slot) && self.is_flat(value)
    }

    fn is_flat(&self, value: &Tree) -> bool {
        let slot = self
            .layout
            .source(value)
            .map(|index| &self.layout.slots[index]);
        let has_lines = slot.is_some_and(|slot| match slot.style {
            Style::Map | Style::List | Style::Opaque => {
                !slot.is_inside && SlotKind::of(value) != SlotKind::Map
            }
            Style::Scalar => !self.is_on_line(slot),
            Style::Flow => false,
        });
        !has_lines
            && match &value.value {
                TreeValue::Map(entries) => entries.iter().all(|(key, value)| {
                    let whole = self
                        .source(key, value)
                        .map(|index| &self.layout.slots[index]);
                    let is_block = |slot: &Slot<'_>| matches!(slot.style, Style::Map | Style::List);
                    !whole.is_some_and(is_block) && self.is_flat(value)
                }),
                TreeValue::List(items) => items.iter().all(|item| self.is_flat(item)),
                _ => true,
            }
    }

    /// Returns a value in flow style, as written in the text where possible.
    pub(crate) fn flow(&mut self, value: &Tree) -> String {
        let layout = self.layout;
        let slot = layout.source(value).map(|index| &layout.slots[index]);
        let was = slot
            .map(|slot| &layout.text[slot.content..slot.close])
            .unwrap_or_default();
        if let Some(slot) = slot {
            let is_plain =
                slot.style == Style::Flow || (slot.style == Style::Scalar && self.is_on_line(slot));
            if is_plain && slot.value == value {
                self.copied.push(slot.content..slot.close);
                return was.to_owned();
            }
            if slot.style == Style::Flow
                && let Some(text) = self.spliced(slot, value)
            {
                return text;
            }
        }
        let is_json = layout.is_json;
        match &value.value {
            TreeValue::Map(entries) => {
                let within = slot.filter(|slot| slot.style == Style::Flow);
                let texts: Vec<String> = self
                    .ordered(entries, within)
                    .into_iter()
                    .map(|(key, value)| {
                        let name = if is_json {
                            scalar::quoted(&key.name)
                        } else {
                            scalar::plain(&key.name)
                        };
                        format!("{name}: {}", self.flow(value))
                    })
                    .collect();
                format!("{{{}}}", texts.join(", "))
            }
            TreeValue::List(items) => {
                let texts: Vec<String> = items.iter().map(|item| self.flow(item)).collect();
                format!("[{}]", texts.join(", "))
            }
            _ => scalar::scalar(value, if is_json { "\"" } else { was }),
        }
    }

    /// Returns a flow value with the same contents, with renamed keys and words.
    fn spliced(&mut self, slot: &Slot<'_>, value: &Tree) -> Option<String> {
        let layout = self.layout;
        let entries = value.as_map().unwrap_or_default();
        let items: &[Tree] = match &value.value {
            TreeValue::List(items) => items,
            _ => &[],
        };
        if entries.len() + items.len() != slot.children.len() || slot.children.is_empty() {
            return None;
        }
        let by_start: HashMap<usize, &(TreeKey, Tree)> = entries
            .iter()
            .filter_map(|entry| Some((layout.at(entry.0.span)?, entry)))
            .collect();
        let is_known = |child: &usize| {
            let child = &layout.slots[*child];
            !child.is_entry || by_start.contains_key(&child.start)
        };
        if !slot.children.iter().all(is_known) {
            return None;
        }
        let mut text = String::new();
        let mut done = slot.content;
        for (n, child) in slot.children.iter().enumerate() {
            let child = &layout.slots[*child];
            text.push_str(layout.text.get(done..child.start)?);
            let value = if child.is_entry {
                let (key, value) = by_start.get(&child.start)?;
                text.push_str(&self.key(key, child));
                value
            } else {
                items.get(n)?
            };
            if child.style == Style::Opaque || child.value == value {
                text.push_str(layout.text.get(child.after..child.close)?);
            } else {
                text.push_str(layout.text.get(child.after..child.content)?);
                text.push_str(&self.flow(value));
            }
            done = child.close;
        }
        text.push_str(layout.text.get(done..slot.close)?);
        self.copied.push(slot.content..slot.close);
        Some(text)
    }
}
