//! Packs: objects in one stream, whole or as deltas against others.
//!
//! ```text
//!  pack ── checksum, number of objects ──► entry by entry: charge its size, unpack ──► whole: an object ──┬──► objects by identifier
//!                                                                                  └─► delta: wait for its base ┘ (charge the result first)
//! ```
//!
//! `gix-pack` decodes entries and deltas. The order and the limits are here: every byte is charged before memory is reserved for it.
//! A delta is resolved once, as soon as its base is known, so that neither long chains nor deltas in any order cost more.
//!
//! Source: gitformat-pack(5).

use std::{collections::HashMap, path::PathBuf};

use gix_pack::{
    cache,
    data::{
        self, Entry,
        decode::{entry, header},
        entry::Header,
    },
};
use gix_zlib::Inflate;

use super::object::{Object, ObjectId, Objects, SHA1, checksum, id_of};
use crate::Limits;

/// The most bytes of bases that deltas are applied to, as a multiple of the bytes that may be unpacked.
const MOST_BASES: usize = 16;

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

impl Pack {
    /// Reads a pack.
    ///
    /// # Errors
    /// A sentence with the reason, if it is malformed or exceeds a limit.
    pub(crate) fn read(bytes: Vec<u8>, limits: &Limits) -> Result<Self, String> {
        let end = bytes.len().checked_sub(SHA1.len_in_bytes());
        let end = end.filter(|end| *end >= data::header::SIZE);
        let end = end.ok_or_else(malformed)?;
        let file = data::File::from_data(bytes, PathBuf::new(), SHA1)
            .map_err(|_| "the pack is not of version 2".to_owned())?;
        let slice = |from: usize, to: usize| {
            let slice = file.entry_slice(from as u64..to as u64);
            slice.ok_or_else(malformed)
        };
        if checksum(slice(0, end)?)?.as_slice() != slice(end, file.data_len())? {
            return Err("the pack does not have the checksum that it claims".to_owned());
        }
        let count = usize::try_from(file.num_objects()).unwrap_or(usize::MAX);
        if count > limits.object_count {
            return Err(format!(
                "the pack has {count} objects, more than {}",
                limits.object_count
            ));
        }
        let mut reader = PackReader::new(file, limits.objects);
        let mut at = data::header::SIZE as u64;
        for _ in 0..count {
            at = reader.entry(at)?;
        }
        if at != end as u64 {
            return Err(malformed());
        }
        if !reader.waiting.is_empty() {
            return Err("a delta of the pack has no base in it".to_owned());
        }
        Ok(Self {
            objects: reader.objects,
        })
    }
}

fn malformed() -> String {
    "the pack is malformed".to_owned()
}

/// The base of a delta.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DeltaBase {
    /// The entry at this offset.
    At(u64),
    /// An object of the pack.
    Object(ObjectId),
}

/// Reads the entries of a pack in memory, in order.
struct PackReader {
    file: data::File<Vec<u8>>,
    inflate: Inflate,
    /// The bytes that may still be unpacked.
    left: usize,
    /// The bytes of bases that deltas may still be applied to.
    bases_left: usize,
    most: usize,
    objects: HashMap<ObjectId, Object>,
    /// The objects by the offsets of their entries.
    places: HashMap<u64, ObjectId>,
    /// Deltas whose base is not known yet.
    waiting: HashMap<DeltaBase, Vec<Entry>>,
}

impl PackReader {
    fn new(file: data::File<Vec<u8>>, most: usize) -> Self {
        Self {
            file,
            inflate: Inflate::default(),
            left: most,
            bases_left: most.saturating_mul(MOST_BASES),
            most,
            objects: HashMap::new(),
            places: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Reads the entry at an offset, and returns the offset behind it.
    fn entry(&mut self, at: u64) -> Result<u64, String> {
        let entry = self.file.entry(at).map_err(|_| malformed())?;
        let mut data = vec![0; self.charge(entry.decompressed_size)?];
        let read = self
            .file
            .decompress_entry(&entry, &mut self.inflate, &mut data)
            .map_err(|_| "an object of the pack cannot be unpacked".to_owned())?;
        let next = entry.data_offset + read as u64;
        let base = match entry.header {
            Header::OfsDelta { base_distance } => {
                let base = entry.checked_base_pack_offset(base_distance);
                DeltaBase::At(base.ok_or_else(malformed)?)
            }
            Header::RefDelta { base_id } => DeltaBase::Object(base_id),
            _ => {
                let kind = entry.header.as_kind().ok_or_else(malformed)?;
                let data = data.into();
                self.put(at, Object { kind, data })?;
                return Ok(next);
            }
        };
        // Its instructions are unpacked again with their base: until then, thousands of deltas take no memory.
        drop(data);
        match self.known(base) {
            Some(base) => {
                let object = self.resolve(&entry, &base)?;
                self.put(at, object)?;
            }
            None => self.waiting.entry(base).or_default().push(entry),
        }
        Ok(next)
    }

    fn known(&self, base: DeltaBase) -> Option<Object> {
        let id = match base {
            DeltaBase::At(at) => self.places.get(&at)?,
            DeltaBase::Object(ref id) => id,
        };
        self.objects.get(id).cloned()
    }

    /// Keeps an object, and those that are deltas against it.
    fn put(&mut self, at: u64, object: Object) -> Result<(), String> {
        let mut ready = vec![(at, object)];
        while let Some((at, object)) = ready.pop() {
            let id = id_of(object.kind, &object.data)?;
            for base in [DeltaBase::At(at), DeltaBase::Object(id)] {
                for delta in self.waiting.remove(&base).unwrap_or_default() {
                    ready.push((delta.pack_offset(), self.resolve(&delta, &object)?));
                }
            }
            self.places.insert(at, id);
            self.objects.insert(id, object);
        }
        Ok(())
    }

    /// Applies a delta to its base.
    fn resolve(&mut self, delta: &Entry, base: &Object) -> Result<Object, String> {
        let broken = |_| "a delta of the pack is malformed".to_owned();
        // The entry alone: with a base by identifier, the decoder asks for it and does not follow a chain.
        let alone = Entry {
            header: Header::RefDelta {
                base_id: SHA1.null(),
            },
            ..delta.clone()
        };
        let size = self
            .file
            .decode_header(alone.clone(), &mut self.inflate, &|_| {
                Ok(Some(header::ResolvedBase::OutOfPack {
                    kind: base.kind,
                    num_deltas: None,
                }))
            })
            .map_err(broken)?
            .object_size;
        let bases_left = self.bases_left.checked_sub(base.data.len());
        self.bases_left = bases_left.ok_or_else(|| self.too_large())?;
        // While it works, the decoder has two buffers of the larger size, which must fit as well.
        let larger = size.max(base.data.len() as u64);
        if larger.saturating_mul(2) > self.left as u64 {
            return Err(self.too_large());
        }
        self.file.alloc_limit_bytes = Some(self.left);
        self.charge(size)?;
        let mut data = Vec::new();
        let resolved = self.file.decode_entry(
            alone,
            &mut data,
            &mut self.inflate,
            &|_, out| {
                out.clear();
                out.extend_from_slice(&base.data);
                Ok(Some(entry::ResolvedBase::OutOfPack {
                    kind: base.kind,
                    end: base.data.len(),
                }))
            },
            &mut cache::Never,
        );
        match resolved {
            Ok(_) => {}
            Err(error) if error.is_resource_exhausted() => return Err(self.too_large()),
            Err(error) => return Err(broken(error)),
        }
        data.shrink_to_fit();
        Ok(Object {
            kind: base.kind,
            data: data.into(),
        })
    }

    /// Takes bytes from those that may be unpacked.
    fn charge(&mut self, bytes: u64) -> Result<usize, String> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| self.too_large())?;
        Ok(bytes)
    }

    fn too_large(&self) -> String {
        format!("the objects of the pack have more than {} bytes", self.most)
    }
}
