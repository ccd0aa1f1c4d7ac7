//! Packs: objects in one stream, whole or as deltas against others.
//!
//! Source: gitformat-pack(5).

use std::{
    collections::HashMap,
    io::{Read, Take},
};

use flate2::bufread::ZlibDecoder;

use super::object::{Object, ObjectId, ObjectKind, Objects};
use crate::Limits;

/// The longest chain of deltas. Git's own default is 50, and 4095 the most that it writes.
const MOST_DELTAS: usize = 4095;

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryHeader {
    /// A whole object.
    Whole(ObjectKind),
    /// A delta against the entry that many bytes before.
    Before(u64),
    /// A delta against this object.
    Against(ObjectId),
}

/// The objects of a pack.
pub(crate) struct Pack {
    objects: HashMap<ObjectId, Object>,
}

impl Objects for Pack {
    fn object(&mut self, id: ObjectId) -> Result<Object, String> {
        let found = self.objects.get(&id).cloned();
        found.ok_or_else(|| format!("the object {id} is not in the pack"))
    }
}

/// An object of a pack, still to be resolved.
struct PendingDelta {
    base: DeltaBase,
    delta: Vec<u8>,
    at: usize,
}

enum DeltaBase {
    At(usize),
    ObjectId(ObjectId),
}

impl Pack {
    /// Reads a pack.
    ///
    /// # Errors
    /// A sentence with the reason, if it is malformed or exceeds a limit.
    pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Self, String> {
        let broken = || "the pack is malformed".to_owned();
        let body = bytes.len().checked_sub(20).filter(|body| *body >= 12);
        let (content, trailer) = bytes.split_at(body.ok_or_else(broken)?);
        if !content.starts_with(b"PACK\0\0\0\x02") {
            return Err("the pack is not of version 2".to_owned());
        }
        let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, content);
        if sum.as_ref() != trailer {
            return Err("the pack does not have the checksum that it claims".to_owned());
        }
        let count = u32::from_be_bytes([content[8], content[9], content[10], content[11]]);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > limits.object_count {
            return Err(format!(
                "the pack has {count} objects, more than {}",
                limits.object_count
            ));
        }
        let mut reader = PackReader {
            content,
            at: 12,
            left: limits.objects,
            most: limits.objects,
        };
        let mut found = ResolvedObjects::default();
        let mut pending = Vec::new();
        for _ in 0..count {
            let at = reader.at;
            let (head, data) = reader.entry()?;
            let base = match head {
                EntryHeader::Whole(kind) => {
                    found.put(at, Object { kind, data });
                    continue;
                }
                EntryHeader::Before(distance) => {
                    let distance = usize::try_from(distance).map_err(|_| broken())?;
                    let base = at.checked_sub(distance).filter(|_| distance > 0);
                    DeltaBase::At(base.ok_or_else(broken)?)
                }
                EntryHeader::Against(id) => DeltaBase::ObjectId(id),
            };
            pending.push(PendingDelta {
                base,
                delta: data,
                at,
            });
        }
        found.resolve(pending, &mut reader.left, reader.most)?;
        Ok(Self {
            objects: found.objects,
        })
    }
}

/// The objects that are resolved.
#[derive(Default)]
struct ResolvedObjects {
    objects: HashMap<ObjectId, Object>,
    places: HashMap<usize, ObjectId>,
}

impl ResolvedObjects {
    fn put(&mut self, at: usize, object: Object) {
        let id = ObjectId::of(object.kind, &object.data);
        self.places.insert(at, id);
        self.objects.insert(id, object);
    }

    fn base(&self, base: &DeltaBase) -> Option<&Object> {
        match base {
            DeltaBase::At(at) => self.objects.get(self.places.get(at)?),
            DeltaBase::ObjectId(id) => self.objects.get(id),
        }
    }

    /// Applies deltas whose base is known, until none is left.
    fn resolve(
        &mut self,
        mut pending: Vec<PendingDelta>,
        left: &mut usize,
        most: usize,
    ) -> Result<(), String> {
        for _ in 0..MOST_DELTAS {
            if pending.is_empty() {
                return Ok(());
            }
            let before = pending.len();
            let mut waiting = Vec::new();
            for one in pending {
                let Some(base) = self.base(&one.base) else {
                    waiting.push(one);
                    continue;
                };
                let data = apply(&base.data, &one.delta, *left)
                    .map_err(|why| why.unwrap_or_else(|| too_much(most)))?;
                *left = left.saturating_sub(data.len());
                let kind = base.kind;
                self.put(one.at, Object { kind, data });
            }
            pending = waiting;
            if pending.len() == before {
                return Err("a delta of the pack has no base in it".to_owned());
            }
        }
        Err("the deltas of the pack are nested too deeply".to_owned())
    }
}

fn too_much(most: usize) -> String {
    format!("the objects of the pack have more than {most} bytes")
}

/// Reads the entries of a pack in memory, in order.
struct PackReader<'a> {
    content: &'a [u8],
    at: usize,
    /// The bytes that may still be unpacked.
    left: usize,
    most: usize,
}

impl PackReader<'_> {
    fn entry(&mut self) -> Result<(EntryHeader, Vec<u8>), String> {
        let mut rest = &self.content[self.at..];
        let (head, size) = head(&mut rest)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > self.left {
            return Err(too_much(self.most));
        }
        let data = inflate(&mut rest, size)?;
        self.left -= size;
        self.at = self.content.len() - rest.len();
        Ok((head, data))
    }
}

/// Reads the head of an entry: its kind, and the size of its content.
pub(crate) fn head(source: &mut impl Read) -> Result<(EntryHeader, u64), String> {
    let first = byte(source)?;
    let mut size = u64::from(first & 15);
    let mut shift = 4_u32;
    let mut last = first;
    while last & 0x80 != 0 {
        last = byte(source)?;
        if shift > 56 {
            return Err("an object of the pack has an impossible size".to_owned());
        }
        size |= u64::from(last & 0x7f) << shift;
        shift += 7;
    }
    let head = match first >> 4 & 7 {
        1 => EntryHeader::Whole(ObjectKind::Commit),
        2 => EntryHeader::Whole(ObjectKind::Tree),
        3 => EntryHeader::Whole(ObjectKind::Blob),
        4 => EntryHeader::Whole(ObjectKind::Tag),
        6 => EntryHeader::Before(distance(source)?),
        7 => {
            let mut id = [0; 20];
            source.read_exact(&mut id).map_err(|_| cut())?;
            EntryHeader::Against(ObjectId::from_bytes(&id).ok_or_else(cut)?)
        }
        _ => return Err("an object of the pack has an unknown kind".to_owned()),
    };
    Ok((head, size))
}

/// Reads the distance to the base of a delta.
fn distance(source: &mut impl Read) -> Result<u64, String> {
    let mut last = byte(source)?;
    let mut value = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        last = byte(source)?;
        value = value
            .checked_add(1)
            .and_then(|value| value.checked_mul(128))
            .ok_or_else(cut)?
            | u64::from(last & 0x7f);
    }
    Ok(value)
}

fn byte(source: &mut impl Read) -> Result<u8, String> {
    let mut one = [0];
    source.read_exact(&mut one).map_err(|_| cut())?;
    Ok(one[0])
}

fn cut() -> String {
    "the pack is malformed".to_owned()
}

/// Inflates exactly `size` bytes, and leaves the source behind them.
pub(crate) fn inflate(source: &mut impl std::io::BufRead, size: usize) -> Result<Vec<u8>, String> {
    let mut decoder: Take<ZlibDecoder<_>> = ZlibDecoder::new(source).take(size as u64 + 1);
    let mut data = Vec::new();
    decoder
        .read_to_end(&mut data)
        .map_err(|_| "an object of the pack cannot be unpacked".to_owned())?;
    if data.len() != size {
        return Err("an object of the pack does not have the size that it claims".to_owned());
    }
    Ok(data)
}

/// Applies a delta; at most `most` bytes result. The error is `None` if there would be more.
pub(crate) fn apply(base: &[u8], delta: &[u8], most: usize) -> Result<Vec<u8>, Option<String>> {
    let broken = || Some("a delta of the pack is malformed".to_owned());
    let mut rest = delta;
    let base_size = size(&mut rest).ok_or_else(broken)?;
    let result_size = size(&mut rest).ok_or_else(broken)?;
    if base_size != base.len() as u64 {
        return Err(broken());
    }
    let result_size = usize::try_from(result_size).unwrap_or(usize::MAX);
    if result_size > most {
        return Err(None);
    }
    let mut result = Vec::new();
    while let Some((command, after)) = rest.split_first() {
        rest = after;
        let piece = if command & 0x80 == 0 {
            let (piece, after) = rest
                .split_at_checked(usize::from(*command))
                .filter(|(piece, _)| !piece.is_empty())
                .ok_or_else(broken)?;
            rest = after;
            piece
        } else {
            let (start, length) = copy(*command, &mut rest).ok_or_else(broken)?;
            let end = start.checked_add(length).ok_or_else(broken)?;
            base.get(start..end).ok_or_else(broken)?
        };
        if result.len() + piece.len() > result_size {
            return Err(broken());
        }
        result.extend_from_slice(piece);
    }
    if result.len() != result_size {
        return Err(broken());
    }
    Ok(result)
}

/// Reads the offset and the size of a copy command.
fn copy(command: u8, rest: &mut &[u8]) -> Option<(usize, usize)> {
    let mut read = |bits: std::ops::Range<u8>| {
        let mut value = 0_usize;
        for (place, bit) in bits.enumerate() {
            if command & (1 << bit) != 0 {
                let (byte, after) = rest.split_first()?;
                value |= usize::from(*byte) << (8 * place);
                *rest = after;
            }
        }
        Some(value)
    };
    let start = read(0..4)?;
    let length = read(4..7)?;
    Some((start, if length == 0 { 0x1_0000 } else { length }))
}

fn size(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0_u32);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        if shift > 56 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}
