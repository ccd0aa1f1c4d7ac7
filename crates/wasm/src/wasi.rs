//! The functions of WASI preview 1 that a module gets. Pure: no file, no clock and no randomness of the process.
//!
//! One file: the functions of one interface, with the access to the memory of a module that they share.
//!
//! | functions | behaviour |
//! | --- | --- |
//! | `fd_read` of 0 | the request |
//! | `fd_write` of 1 and 2 | the answer, limited; messages, of which the first are kept |
//! | `args_*`, `environ_*` | one argument, `hook`; no variables |
//! | `clock_time_get`, `poll_oneoff` | a clock that starts at the same moment in each run: a reading takes a microsecond, a sleep no time |
//! | `random_get` | the same bytes in each run |
//! | `proc_exit`, `sched_yield` | the end of the run; nothing |
//! | others | `EBADF` for descriptors, `ENOSYS` for the rest |

use std::sync::Arc;

use wasmi::{
    Caller, Engine, Error, ExternType, Linker, Memory, ResourceLimiter, StoreLimits,
    StoreLimitsBuilder, Val, errors::HostError,
};

use super::{Limits, ModuleError};

/// The name of the memory that functions of WASI use.
pub(crate) const MEMORY: &str = "memory";
/// The module that functions of WASI are imported from.
const WASI: &str = "wasi_snapshot_preview1";
/// The name of the program, its only argument.
const PROGRAM: &[u8] = b"hook\0";
/// The most bytes of messages that are kept.
const MOST_SAID: usize = 2048;
/// The most characters of messages in an error.
const SHOWN: usize = 500;
/// What the clock shows when a run begins, in nanoseconds since 1970: the first second of the year 2000, in UTC.
const BEGINNING: u64 = 946_684_800_000_000_000;
/// What one reading of the clock takes, in nanoseconds.
const TICK: u64 = 1_000;
/// The most parts of memory of one read or write, and the most events of one wait. Source: POSIX, `IOV_MAX` of common systems.
const MOST_PARTS: u32 = 1024;
/// The fuel for a call of a function of WASI, and for each of its items.
const CALL_FUEL: u64 = 100;
/// The bytes that a function of WASI copies for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

/// Error numbers. Source: `snapshot_preview1`, "errno".
#[derive(Clone, Copy)]
enum Errno {
    Success = 0,
    BadDescriptor = 8,
    Fault = 21,
    Invalid = 28,
    NotSupported = 52,
    NotSeekable = 70,
}

/// Why a function of WASI ends a run.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It asked for its end, with this status.
    Exit(i32),
    /// Its answer is too large.
    TooLarge,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "it exited with status {status}"),
            Self::TooLarge => f.write_str("its answer is too large"),
        }
    }
}

impl HostError for Stop {}

/// The world of a run.
pub(crate) struct Host {
    request: Arc<str>,
    /// How much of the request was read.
    read: usize,
    answer: Vec<u8>,
    most_answer: usize,
    /// Standard error, as far as it is kept.
    said: Vec<u8>,
    clock: u64,
    random: u64,
    limits: StoreLimits,
}

impl Host {
    pub(crate) fn new(request: Arc<str>, limits: &Limits) -> Self {
        Self {
            request,
            read: 0,
            answer: Vec::new(),
            most_answer: limits.answer,
            said: Vec::new(),
            clock: BEGINNING,
            random: 0,
            limits: StoreLimitsBuilder::new()
                .memory_size(limits.memory)
                .table_elements(1 << 20)
                .instances(1)
                .tables(16)
                .memories(1)
                .build(),
        }
    }

    pub(crate) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.limits
    }

    pub(crate) fn take_answer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answer)
    }

    /// Returns what it wrote to standard error as one line, cut, without control characters.
    pub(crate) fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let clean: String = text
            .chars()
            .map(|one| if one.is_control() { ' ' } else { one })
            .collect();
        let words: Vec<&str> = clean.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// Returns the next eight random bytes: `SplitMix64`.
    fn random(&mut self) -> [u8; 8] {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    }
}

type Wasi<'a> = Caller<'a, Host>;
/// An error number, or the end of the run.
type Called = Result<i32, Error>;
/// The result of a part of a function.
type Part<T> = Result<T, Errno>;

/// Returns the functions that a module imports.
///
/// # Errors
/// It imports anything else.
pub(crate) fn linker(engine: &Engine, module: &wasmi::Module) -> Result<Linker<Host>, ModuleError> {
    let mut linker = Linker::new(engine);
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        let unknown = || ModuleError::Import {
            module: from.to_owned(),
            name: name.to_owned(),
        };
        let ExternType::Func(type_) = import.ty() else {
            return Err(unknown());
        };
        if from != WASI {
            return Err(unknown());
        }
        let defined = match name {
            "args_sizes_get" => linker.func_wrap(from, name, args_sizes_get),
            "args_get" => linker.func_wrap(from, name, args_get),
            "environ_sizes_get" => linker.func_wrap(from, name, environ_sizes_get),
            "environ_get" => linker.func_wrap(from, name, |_: i32, _: i32| Errno::Success as i32),
            "fd_read" => linker.func_wrap(from, name, fd_read),
            "fd_write" => linker.func_wrap(from, name, fd_write),
            "fd_fdstat_get" => linker.func_wrap(from, name, fd_fdstat_get),
            "fd_fdstat_set_flags" => linker.func_wrap(from, name, |fd: i32, _: i32| known(fd)),
            "fd_close" => linker.func_wrap(from, name, known),
            "fd_seek" => linker.func_wrap(from, name, fd_seek),
            "clock_res_get" => linker.func_wrap(from, name, clock_res_get),
            "clock_time_get" => linker.func_wrap(from, name, clock_time_get),
            "poll_oneoff" => linker.func_wrap(from, name, poll_oneoff),
            "random_get" => linker.func_wrap(from, name, random_get),
            "sched_yield" => linker.func_wrap(from, name, || Errno::Success as i32),
            "proc_exit" => linker.func_wrap(from, name, |status: i32| -> Result<(), Error> {
                Err(Error::host(Stop::Exit(status)))
            }),
            other => {
                let answer = unsupported(other) as i32;
                linker.func_new(from, name, type_.clone(), move |_, _, results| {
                    for result in results {
                        if let Val::I32(number) = result {
                            *number = answer;
                        }
                    }
                    Ok(())
                })
            }
        };
        // The same function may be imported twice.
        let _ = defined;
    }
    Ok(linker)
}

/// Returns what functions answer that are not supported: there are no other descriptors, and no files.
fn unsupported(name: &str) -> Errno {
    if name.starts_with("fd_") || name.starts_with("path_") {
        Errno::BadDescriptor
    } else {
        Errno::NotSupported
    }
}

/// Returns the result of a function of a descriptor: there are three.
fn known(fd: i32) -> i32 {
    let errno = if (0..=2).contains(&fd) {
        Errno::Success
    } else {
        Errno::BadDescriptor
    };
    errno as i32
}

fn args_sizes_get(mut caller: Wasi<'_>, count: i32, bytes: i32) -> i32 {
    let length = u32::try_from(PROGRAM.len()).unwrap_or_default();
    done(
        put(&mut caller, count, &1_u32.to_le_bytes())
            .and_then(|()| put(&mut caller, bytes, &length.to_le_bytes())),
    )
}

fn args_get(mut caller: Wasi<'_>, pointers: i32, texts: i32) -> i32 {
    done(
        put(&mut caller, pointers, &texts.to_le_bytes())
            .and_then(|()| put(&mut caller, texts, PROGRAM)),
    )
}

fn environ_sizes_get(mut caller: Wasi<'_>, count: i32, bytes: i32) -> i32 {
    done(put(&mut caller, count, &[0; 4]).and_then(|()| put(&mut caller, bytes, &[0; 4])))
}

fn fd_read(mut caller: Wasi<'_>, fd: i32, vectors: i32, count: i32, read: i32) -> i32 {
    if fd != 0 {
        return Errno::BadDescriptor as i32;
    }
    done(part(|| {
        let mut total = 0_u32;
        for index in 0..parts(count)? {
            let (start, length) = vector(&mut caller, vectors, index)?;
            let host = caller.data();
            let request = Arc::clone(&host.request);
            let rest = request.as_bytes().get(host.read..).unwrap_or_default();
            let taken = rest.len().min(size(length));
            put(&mut caller, start.cast_signed(), &rest[..taken])?;
            caller.data_mut().read += taken;
            total = total.saturating_add(u32::try_from(taken).unwrap_or(u32::MAX));
            if taken < size(length) {
                break;
            }
        }
        put(&mut caller, read, &total.to_le_bytes())
    }))
}

fn fd_write(mut caller: Wasi<'_>, fd: i32, vectors: i32, count: i32, written: i32) -> Called {
    if !(1..=2).contains(&fd) {
        return Ok(Errno::BadDescriptor as i32);
    }
    let mut is_too_large = false;
    let result = part(|| {
        let mut total = 0_u32;
        for index in 0..parts(count)? {
            let (start, length) = vector(&mut caller, vectors, index)?;
            charge(&mut caller, length);
            let memory = memory(&caller)?;
            let (bytes, host) = memory.data_and_store_mut(&mut caller);
            let end = start.checked_add(length).ok_or(Errno::Fault)?;
            let bytes = bytes.get(size(start)..size(end)).ok_or(Errno::Fault)?;
            if fd == 2 {
                let room = MOST_SAID.saturating_sub(host.said.len());
                host.said.extend(&bytes[..room.min(bytes.len())]);
            } else if host.answer.len() + bytes.len() > host.most_answer {
                is_too_large = true;
                return Ok(());
            } else {
                host.answer.extend_from_slice(bytes);
            }
            total = total.saturating_add(length);
        }
        put(&mut caller, written, &total.to_le_bytes())
    });
    if is_too_large {
        return Err(Error::host(Stop::TooLarge));
    }
    Ok(done(result))
}

/// Describes a descriptor: a character device without flags, with all permissions.
fn fd_fdstat_get(mut caller: Wasi<'_>, fd: i32, at: i32) -> i32 {
    if known(fd) != Errno::Success as i32 {
        return Errno::BadDescriptor as i32;
    }
    let mut stat = [0_u8; 24];
    stat[0] = 2;
    stat[8..].fill(0xff);
    done(put(&mut caller, at, &stat))
}

fn fd_seek(fd: i32, _: i64, _: i32, _: i32) -> i32 {
    if known(fd) == Errno::Success as i32 {
        Errno::NotSeekable as i32
    } else {
        Errno::BadDescriptor as i32
    }
}

fn clock_res_get(mut caller: Wasi<'_>, _: i32, at: i32) -> i32 {
    done(put(&mut caller, at, &TICK.to_le_bytes()))
}

fn clock_time_get(mut caller: Wasi<'_>, _: i32, _: i64, at: i32) -> i32 {
    let host = caller.data_mut();
    host.clock = host.clock.saturating_add(TICK);
    let now = host.clock;
    done(put(&mut caller, at, &now.to_le_bytes()))
}

fn random_get(mut caller: Wasi<'_>, at: i32, length: i32) -> i32 {
    done(part(|| {
        charge(&mut caller, unsigned(length));
        let memory = memory(&caller)?;
        let (bytes, host) = memory.data_and_store_mut(&mut caller);
        let (start, length) = (unsigned(at), unsigned(length));
        let end = start.checked_add(length).ok_or(Errno::Fault)?;
        let bytes = bytes.get_mut(size(start)..size(end)).ok_or(Errno::Fault)?;
        for chunk in bytes.chunks_mut(8) {
            let random = host.random();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
        Ok(())
    }))
}

/// Waits for nothing: what a descriptor is asked for is there, and otherwise the clock advances to the earliest moment.
fn poll_oneoff(mut caller: Wasi<'_>, asked: i32, events: i32, count: i32, made: i32) -> i32 {
    done(part(|| {
        let mut earliest: Option<(u64, [u8; 32])> = None;
        let mut ready = 0_u32;
        for index in 0..parts(count)? {
            let at = unsigned(asked).checked_add(index.checked_mul(48).ok_or(Errno::Fault)?);
            let asked: [u8; 48] = get(&mut caller, at.ok_or(Errno::Fault)?)?;
            let kind = asked[8];
            // The event has the user's data and the kind.
            let mut event = [0_u8; 32];
            event[..8].copy_from_slice(&asked[..8]);
            event[10] = kind;
            if kind == 0 {
                let timeout = u64_at(&asked, 24);
                let is_absolute = asked[40] & 1 == 1;
                let now = caller.data().clock;
                let due = if is_absolute {
                    timeout.max(now)
                } else {
                    now.saturating_add(timeout)
                };
                if earliest.is_none_or(|(first, _)| due < first) {
                    earliest = Some((due, event));
                }
                continue;
            }
            event[16..24].copy_from_slice(&1_u64.to_le_bytes());
            let to = unsigned(events).checked_add(ready.checked_mul(32).ok_or(Errno::Fault)?);
            put(&mut caller, to.ok_or(Errno::Fault)?.cast_signed(), &event)?;
            ready += 1;
        }
        if ready == 0 {
            let (due, event) = earliest.ok_or(Errno::Invalid)?;
            caller.data_mut().clock = due;
            put(&mut caller, events, &event)?;
            ready = 1;
        }
        put(&mut caller, made, &ready.to_le_bytes())
    }))
}

/// Runs the parts of a function.
fn part<T>(all: impl FnOnce() -> Part<T>) -> Part<T> {
    all()
}

/// Returns the number of items of a list, which is limited: a run cannot be interrupted inside of a function.
fn parts(count: i32) -> Part<u32> {
    let count = unsigned(count);
    if count <= MOST_PARTS {
        Ok(count)
    } else {
        Err(Errno::Invalid)
    }
}

fn done(result: Part<()>) -> i32 {
    match result {
        Ok(()) => Errno::Success as i32,
        Err(errno) => errno as i32,
    }
}

/// Charges a call for an item and its bytes: what the host does takes time, too.
fn charge(caller: &mut Wasi<'_>, bytes: u32) {
    let cost = CALL_FUEL + u64::from(bytes) / BYTES_PER_FUEL;
    let left = caller.get_fuel().unwrap_or_default();
    // The engine counts fuel.
    let _ = caller.set_fuel(left.saturating_sub(cost));
}

fn memory(caller: &Wasi<'_>) -> Part<Memory> {
    let export = caller.get_export(MEMORY);
    export
        .and_then(wasmi::Extern::into_memory)
        .ok_or(Errno::Fault)
}

fn put(caller: &mut Wasi<'_>, at: i32, bytes: &[u8]) -> Part<()> {
    charge(caller, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let memory = memory(caller)?;
    memory
        .write(caller, size(unsigned(at)), bytes)
        .map_err(|_| Errno::Fault)
}

fn get<const N: usize>(caller: &mut Wasi<'_>, at: u32) -> Part<[u8; N]> {
    charge(caller, u32::try_from(N).unwrap_or(u32::MAX));
    let mut bytes = [0; N];
    let memory = memory(caller)?;
    memory
        .read(&*caller, size(at), &mut bytes)
        .map_err(|_| Errno::Fault)?;
    Ok(bytes)
}

/// Returns the start and the length of a part of memory that a list of them names.
fn vector(caller: &mut Wasi<'_>, vectors: i32, index: u32) -> Part<(u32, u32)> {
    let offset = index.checked_mul(8).ok_or(Errno::Fault)?;
    let at = unsigned(vectors).checked_add(offset).ok_or(Errno::Fault)?;
    let bytes: [u8; 8] = get(caller, at)?;
    let number = |from: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[from..from + 4]);
        u32::from_le_bytes(number)
    };
    Ok((number(0), number(4)))
}

fn u64_at(bytes: &[u8; 48], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Addresses and lengths are unsigned in WASI.
fn unsigned(number: i32) -> u32 {
    number.cast_unsigned()
}

/// Returns an address of 32 bits as an index.
fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
