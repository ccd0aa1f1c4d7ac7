//! Reads a repository in a folder of this machine, without the program `git`.
//!
//! Source: gitrepository-layout(5), gitformat-pack(5).

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::bufread::ZlibDecoder;

use super::{
    Tip, candidates,
    object::{Object, ObjectId, ObjectKind, Objects},
    pack::{self, EntryHeader},
};
use crate::{Error, Limits};

/// The most symbolic references that lead to one another, and the most alternate folders.
const MOST_LEVELS: usize = 5;
/// The longest chain of deltas.
const MOST_DELTAS: usize = 256;
/// The most bytes of a text file.
const MOST_TEXT: u64 = 16 << 20;

/// A repository.
pub(crate) struct Local {
    folder: PathBuf,
    /// Folders with objects: its own and its alternates.
    stores: Vec<PathBuf>,
    packs: Vec<PackFile>,
    /// The most bytes of an object.
    most: usize,
}

struct PackFile {
    index: PackIndex,
    file: File,
}

/// The index of a pack, in memory: identifiers with offsets.
struct PackIndex(HashMap<ObjectId, u64>);

impl Local {
    /// Opens a repository: a bare one, or the folder of a working tree.
    pub(crate) fn open(folder: &Path, limits: &Limits) -> Result<Self, Error> {
        let what = folder.display().to_string();
        let folder = git_folder(folder)
            .ok_or_else(|| Error::NotFound(format!("a Git repository in the folder {what}")))?;
        let config = read(&folder.join("config")).unwrap_or_default();
        let is_other = |format: &str| config.to_lowercase().replace(' ', "").contains(format);
        if is_other("objectformat=sha256") || is_other("refstorage=reftable") {
            let why =
                "the repository has SHA-256 identifiers or a reftable, which are not supported";
            return Err(Error::Unsupported(format!("{what}: {why}")));
        }
        let stores = stores(&folder.join("objects"));
        let mut local = Self {
            folder,
            stores,
            packs: Vec::new(),
            most: limits.objects,
        };
        local.packs = local.open_packs(limits).map_err(|source| Error::Local {
            what: format!("the packs of {what}"),
            source,
        })?;
        Ok(local)
    }

    fn open_packs(&self, limits: &Limits) -> io::Result<Vec<PackFile>> {
        let mut packs = Vec::new();
        for store in &self.stores {
            let Ok(entries) = fs::read_dir(store.join("pack")) else {
                continue;
            };
            for entry in entries {
                let path = entry?.path();
                if path.extension().is_some_and(|ending| ending == "idx") {
                    packs.push(PackFile {
                        index: PackIndex::read(&path, limits)?,
                        file: File::open(path.with_extension("pack"))?,
                    });
                }
            }
        }
        Ok(packs)
    }

    /// Returns the commit of a branch, a tag or another reference.
    pub(crate) fn tip(&self, name: &str) -> Result<Tip, Error> {
        for candidate in candidates(name) {
            if let Some(commit) = self.reference(&candidate, 0) {
                return Ok(Tip { commit });
            }
        }
        let folder = self.folder.display();
        Err(Error::NotFound(format!(
            "the branch or tag {name} of {folder}"
        )))
    }

    fn reference(&self, name: &str, level: usize) -> Option<ObjectId> {
        if level > MOST_LEVELS || (name != "HEAD" && super::check_name(name).is_err()) {
            return None;
        }
        if let Some(text) = read(&self.folder.join(name)) {
            let text = text.trim();
            return match text.strip_prefix("ref: ") {
                Some(next) => self.reference(next.trim(), level + 1),
                None => text.parse().ok(),
            };
        }
        let packed = read(&self.folder.join("packed-refs"))?;
        packed.lines().find_map(|line| {
            let (id, found) = line.split_once(' ')?;
            (found == name).then(|| id.parse().ok())?
        })
    }

    fn loose(&self, id: ObjectId) -> Option<Result<Object, String>> {
        let name = id.to_string();
        let file = self
            .stores
            .iter()
            .find_map(|store| File::open(store.join(&name[..2]).join(&name[2..])).ok())?;
        Some(read_loose(file, id, self.most))
    }

    fn packed(&mut self, id: ObjectId, depth: usize) -> Result<Object, String> {
        if depth > MOST_DELTAS {
            return Err("the deltas of a pack are nested too deeply".to_owned());
        }
        let place = self
            .packs
            .iter()
            .enumerate()
            .find_map(|(number, pack)| Some((number, *pack.index.0.get(&id)?)));
        let (number, at) = place.ok_or_else(|| format!("the object {id} is missing"))?;
        self.entry(number, at, depth)
    }

    fn entry(&mut self, number: usize, at: u64, depth: usize) -> Result<Object, String> {
        if depth > MOST_DELTAS {
            return Err("the deltas of a pack are nested too deeply".to_owned());
        }
        let unreadable = |error: io::Error| format!("a pack cannot be read: {error}");
        let file = &mut self.packs[number].file;
        file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        let mut source = BufReader::new(file);
        let (head, size) = pack::head(&mut source)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > self.most {
            return Err(format!("an object has more than {} bytes", self.most));
        }
        let data = pack::inflate(&mut source, size)?;
        let base = match head {
            EntryHeader::Whole(kind) => return Ok(Object { kind, data }),
            EntryHeader::Before(distance) => {
                let base = at.checked_sub(distance).filter(|_| distance > 0);
                let base = base.ok_or_else(|| "a pack is malformed".to_owned())?;
                self.entry(number, base, depth + 1)?
            }
            EntryHeader::Against(id) => self.packed(id, depth + 1)?,
        };
        let most = self.most;
        let data = pack::apply(&base.data, &data, most).map_err(|why| {
            why.unwrap_or_else(|| format!("an object has more than {most} bytes"))
        })?;
        Ok(Object {
            kind: base.kind,
            data,
        })
    }
}

impl Objects for Local {
    fn object(&mut self, id: ObjectId) -> Result<Object, String> {
        let object = match self.loose(id) {
            Some(loose) => loose?,
            None => self.packed(id, 0)?,
        };
        if ObjectId::of(object.kind, &object.data) == id {
            return Ok(object);
        }
        Err(format!("the object {id} is damaged"))
    }
}

impl PackIndex {
    /// Reads an index of version 2.
    fn read(path: &Path, limits: &Limits) -> io::Result<Self> {
        let broken = || io::Error::other(format!("{} is malformed", path.display()));
        let most = 64 * limits.object_count as u64 * 10;
        let mut bytes = Vec::new();
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        };
        if !bytes.starts_with(b"\xfftOc\0\0\0\x02") {
            return Err(broken());
        }
        let count = word(8 + 255 * 4).ok_or_else(broken)? as usize;
        let (ids, offsets) = (8 + 256 * 4, 8 + 256 * 4 + count * 24);
        let large = offsets + count * 4;
        let mut found = HashMap::new();
        for number in 0..count {
            let at = ids + number * 20;
            let id = bytes.get(at..at + 20).and_then(ObjectId::from_bytes);
            let offset = word(offsets + number * 4).ok_or_else(broken)?;
            let offset = if offset & 0x8000_0000 == 0 {
                u64::from(offset)
            } else {
                let at = large + (offset & 0x7fff_ffff) as usize * 8;
                let high = word(at).ok_or_else(broken)?;
                u64::from(high) << 32 | u64::from(word(at + 4).ok_or_else(broken)?)
            };
            found.insert(id.ok_or_else(broken)?, offset);
        }
        Ok(Self(found))
    }
}

/// Returns the folder with the references: `.git` of a working tree, or the folder itself.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".git");
    let candidates = if inner.is_file() {
        let text = read(&inner)?;
        let leads = folder.join(text.trim().strip_prefix("gitdir: ")?);
        // A working tree of its own shares references and objects with the others.
        match read(&leads.join("commondir")) {
            Some(common) => vec![leads.join(common.trim())],
            None => vec![leads],
        }
    } else {
        vec![inner, folder.to_owned()]
    };
    candidates
        .into_iter()
        .find(|folder| folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

fn stores(own: &Path) -> Vec<PathBuf> {
    let mut stores = vec![own.to_owned()];
    let mut at = 0;
    while at < stores.len() && stores.len() <= MOST_LEVELS {
        let text = read(&stores[at].join("info/alternates")).unwrap_or_default();
        let leads = text.lines().filter(|line| !line.trim().is_empty());
        let more: Vec<PathBuf> = leads.map(|line| stores[at].join(line.trim())).collect();
        stores.extend(more);
        at += 1;
    }
    stores
}

/// Reads a short text file.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_TEXT).read_to_string(&mut text).ok()?;
    Some(text)
}

fn read_loose(file: File, id: ObjectId, most: usize) -> Result<Object, String> {
    let broken = || format!("the object {id} is damaged");
    let mut bytes = Vec::new();
    let mut decoder = ZlibDecoder::new(BufReader::new(file)).take(most as u64 + 64);
    decoder.read_to_end(&mut bytes).map_err(|_| broken())?;
    let zero = bytes.iter().take(64).position(|byte| *byte == 0);
    let zero = zero.ok_or_else(broken)?;
    let head = std::str::from_utf8(&bytes[..zero]).map_err(|_| broken())?;
    let (kind, size) = head.split_once(' ').ok_or_else(broken)?;
    let kind = ObjectKind::of_name(kind).ok_or_else(broken)?;
    let size: usize = size.parse().map_err(|_| broken())?;
    let data = bytes.split_off(zero + 1);
    if size != data.len() {
        return Err(if data.len() >= most {
            format!("an object has more than {most} bytes")
        } else {
            broken()
        });
    }
    Ok(Object { kind, data })
}
