//! Modules: loaded, checked, and shared by their digest.

use std::{
    cmp::Ordering,
    collections::HashMap,
    fmt,
    hash::{Hash, Hasher},
    io,
    io::Read as _,
    sync::{Arc, LazyLock, Weak},
};

use flate2::read::GzDecoder;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use wasmi::{CompilationMode, Config, Engine, ExternType, Linker};

use super::{ModuleError, wasi, wasi::Host};

/// The most bytes of a module that is not compressed.
pub const MOST_UNPACKED: usize = 16 << 20;
/// What a compressed file begins with. Source: RFC 1952, section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a module begins with, before its version. Source: WebAssembly core specification, "Binary format", "Modules".
const MAGIC: &[u8] = b"\0asm";
/// The version of a module.
const VERSION: [u8; 4] = [1, 0, 0, 0];
/// The most nested calls.
const MOST_DEPTH: usize = 4_000;
/// The most bytes of values and frames of a run.
const MOST_STACK: usize = 8 << 20;

/// The modules that are in use, by digest.
static LOADED: LazyLock<Mutex<HashMap<Box<str>, Weak<Module>>>> = LazyLock::new(Mutex::default);

/// A module that can run. Equal modules have the same digest.
pub struct Module {
    /// `sha256:…` of the bytes as they were given.
    digest: Box<str>,
    /// As they were given.
    bytes: Arc<[u8]>,
    pub(crate) engine: Engine,
    pub(crate) code: wasmi::Module,
    pub(crate) linker: Linker<Host>,
}

impl Module {
    /// Loads a module, which may be compressed with gzip: it is validated and translated. A module that is in use already is not
    /// loaded again.
    ///
    /// # Errors
    /// The bytes are not a command of WASI preview 1.
    pub fn load(bytes: Arc<[u8]>) -> Result<Arc<Self>, ModuleError> {
        let digest = Self::digest_of(&bytes);
        if let Some(known) = LOADED.lock().get(&digest).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let loaded = Arc::new(Self::new(digest.clone(), bytes)?);
        let mut all = LOADED.lock();
        all.retain(|_, module| module.strong_count() > 0);
        all.insert(digest, Arc::downgrade(&loaded));
        Ok(loaded)
    }

    /// Returns the digest of the bytes of a module: `sha256:` and 64 hexadecimal digits.
    pub fn digest_of(bytes: &[u8]) -> Box<str> {
        use fmt::Write as _;
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(bytes) {
            // Writing to a String never fails.
            let _ = write!(digest, "{byte:02x}");
        }
        digest.into()
    }

    fn new(digest: Box<str>, bytes: Arc<[u8]>) -> Result<Self, ModuleError> {
        let unpacked;
        let code = if bytes.starts_with(&GZIP) {
            unpacked = unpack(&bytes)?;
            &*unpacked
        } else if bytes.len() > MOST_UNPACKED {
            return Err(ModuleError::TooLarge);
        } else {
            &*bytes
        };
        match code.strip_prefix(MAGIC) {
            None => return Err(ModuleError::NotWasm),
            Some(rest) if !rest.starts_with(&VERSION) => return Err(ModuleError::Component),
            Some(_) => {}
        }
        let engine = Engine::new(&config());
        let invalid = |error: wasmi::Error| ModuleError::Invalid(error.to_string());
        let module = wasmi::Module::new(&engine, code).map_err(invalid)?;
        let linker = wasi::linker(&engine, &module)?;
        match module.get_export("_start") {
            Some(ExternType::Func(start))
                if start.params().is_empty() && start.results().is_empty() => {}
            _ => return Err(ModuleError::NoStart),
        }
        let Some(ExternType::Memory(_)) = module.get_export(wasi::MEMORY) else {
            return Err(ModuleError::NoMemory);
        };
        Ok(Self {
            digest,
            bytes,
            engine,
            code: module,
            linker,
        })
    }

    /// Returns `sha256:…` of the bytes as they were given.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the bytes as they were given.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Module {}

impl PartialOrd for Module {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Module {
    fn cmp(&self, other: &Self) -> Ordering {
        self.digest.cmp(&other.digest)
    }
}

impl Hash for Module {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.digest)
    }
}

/// Returns the limits of translation and execution. Everything that is not needed by common compilers is off.
fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // A translation during a run would use fuel of the first run only, and cannot be interrupted.
        .compilation_mode(CompilationMode::Eager)
        .ignore_custom_sections(true)
        // It would run before anything can interrupt it.
        .allow_start_fn(false)
        .wasm_multi_memory(false)
        .set_max_recursion_depth(MOST_DEPTH)
        .set_max_stack_height(MOST_STACK)
        .set_max_cached_stacks(1);
    config
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, ModuleError> {
    let most = u64::try_from(MOST_UNPACKED).unwrap_or(u64::MAX);
    let mut unpacked = Vec::new();
    let read: io::Result<usize> = GzDecoder::new(bytes)
        .take(most.saturating_add(1))
        .read_to_end(&mut unpacked);
    read.map_err(|_| ModuleError::Compressed)?;
    if unpacked.len() > MOST_UNPACKED {
        return Err(ModuleError::TooLarge);
    }
    Ok(unpacked)
}
