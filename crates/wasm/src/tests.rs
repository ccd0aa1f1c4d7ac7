//! Modules as text: what they get, and what hostile ones cost.

use std::{io::Write as _, sync::Arc, time::Instant};

use super::*;

/// Imports and helpers of a module: `say` writes to a descriptor.
const PRELUDE: &str = r#"
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_recv" (func $recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func $say (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
"#;

fn module(body: &str) -> Arc<Module> {
    let text = format!("(module {PRELUDE} {body})");
    Module::load(wat::parse_str(text).unwrap().into()).unwrap()
}

fn run(body: &str) -> Result<String, RunError> {
    module(body).run("ask".into(), Limits::default())
}

/// Copies the request to the answer, through a buffer of 4 bytes.
const ECHO: &str = r#"(func (export "_start") (local $got i32)
  (loop $again
    (i32.store (i32.const 16) (i32.const 64))
    (i32.store (i32.const 20) (i32.const 4))
    (drop (call $read (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 24)))
    (local.set $got (i32.load (i32.const 24)))
    (call $say (i32.const 1) (i32.const 64) (local.get $got))
    (br_if $again (local.get $got))))"#;

#[test]
fn a_module_answers_what_it_is_asked() {
    let echo = module(ECHO);
    let text = "a request of more than one read: ä";
    assert_eq!(
        echo.run(text.into(), Limits::default()).as_deref(),
        Ok(text)
    );
    // A run of a few units at a time ends in the same way, with the same fuel.
    let count = |slice: u64| {
        let mut run = echo.start(text.into(), Limits::default());
        let mut steps = 0;
        loop {
            steps += 1;
            let before = run.used();
            match run.step(slice) {
                RunStep::More(more) => {
                    assert!(more.used() > before || slice < 200, "no progress");
                    run = more;
                }
                RunStep::Ended(ended) => return (ended, steps),
            }
        }
    };
    let (ended, steps) = count(300);
    assert_eq!(ended.as_deref(), Ok(text));
    assert!(steps > 5, "{steps} steps");
}

#[test]
fn a_compressed_module_is_the_same_module_and_equal_ones_are_shared() {
    let plain: Arc<[u8]> = wat::parse_str(format!("(module {PRELUDE} {ECHO})"))
        .unwrap()
        .into();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&plain).unwrap();
    let packed = Module::load(packed.finish().unwrap().into()).unwrap();
    assert_eq!(
        packed.run("x".into(), Limits::default()).as_deref(),
        Ok("x")
    );
    let first = Module::load(Arc::clone(&plain)).unwrap();
    assert_ne!(first.digest(), packed.digest());
    assert!(first.digest().starts_with("sha256:") && first.digest().len() == 71);
    assert!(Arc::ptr_eq(&first, &Module::load(plain).unwrap()));
}

#[test]
fn modules_that_cannot_be_hooks_say_why() {
    let text = |text: &str| Module::load(wat::parse_str(text).unwrap().into()).unwrap_err();
    let bytes = |bytes: &[u8]| Module::load(bytes.into()).unwrap_err();
    assert_eq!(bytes(b"#!/bin/sh"), ModuleError::NotWasm);
    assert_eq!(bytes(b"\x1f\x8bxx"), ModuleError::Compressed);
    assert_eq!(bytes(b"\0asm\x0d\0\x01\0"), ModuleError::Component);
    assert!(matches!(
        bytes(b"\0asm\x01\0\0\0\x09"),
        ModuleError::Invalid(_)
    ));
    assert_eq!(text("(module)"), ModuleError::NoStart);
    assert_eq!(
        text(r#"(module (func (export "_start")))"#),
        ModuleError::NoMemory
    );
    let import = text(r#"(module (import "env" "system" (func)))"#);
    assert!(import.to_string().contains("`env.system`"), "{import}");
    let memory = text(r#"(module (import "wasi_snapshot_preview1" "memory" (memory 1)))"#);
    assert!(matches!(memory, ModuleError::Import { .. }), "{memory}");
    let start = text(
        r#"(module (func $f) (start $f) (func (export "_start")) (memory (export "memory") 1))"#,
    );
    assert!(start.to_string().contains("start"), "{start}");
    let bomb = {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&vec![0; MOST_UNPACKED + 1]).unwrap();
        packed.finish().unwrap()
    };
    assert_eq!(bytes(&bomb), ModuleError::TooLarge);
}

#[test]
fn there_are_no_files_and_no_network_and_the_rest_is_the_same_in_each_run() {
    // EBADF and ENOSYS, two readings of the clock, a sleep of an hour, and random bytes: all of it is the answer.
    let body = r#"(func (export "_start")
      (i32.store (i32.const 100)
        (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 0)))
      (i32.store (i32.const 104)
        (call $recv (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 108)))
      (i64.store (i32.const 224) (i64.const 3600000000000))
      (drop (call $poll (i32.const 200) (i32.const 300) (i32.const 1) (i32.const 116)))
      (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 120)))
      (drop (call $random (i32.const 128) (i32.const 16)))
      (i64.store (i32.const 128) (i64.and (i64.load (i32.const 128)) (i64.const 0x7f7f7f7f7f7f7f7f)))
      (i64.store (i32.const 136) (i64.and (i64.load (i32.const 136)) (i64.const 0x7f7f7f7f7f7f7f7f)))
      (i64.store (i32.const 120) (i64.sub (i64.load (i32.const 120)) (i64.load (i32.const 108))))
      (i64.store (i32.const 108) (i64.const 0))
      (i64.store (i32.const 120) (i64.div_u (i64.load (i32.const 120)) (i64.const 1000000000)))
      (i64.store (i32.const 120) (i64.div_u (i64.load (i32.const 120)) (i64.const 60)))
      (call $say (i32.const 1) (i32.const 100) (i32.const 44)))"#;
    let first = run(body).unwrap();
    assert_eq!(run(body).unwrap(), first);
    let bytes = first.as_bytes();
    assert_eq!((bytes[0], bytes[4]), (8, 52));
    assert_eq!((bytes[16], bytes[20]), (1, 60), "the sleep takes no time");
    assert_ne!(bytes[28..36], bytes[36..44], "random bytes repeat");
}

// Over 60 lines: a table.
#[test]
fn a_hostile_module_costs_no_more_than_its_limits() {
    let cases = [
        (
            r#"(func (export "_start") (loop $l (br $l)))"#,
            "it did not end within 20 million instructions",
        ),
        (
            // 4 GiB of memory, a page at a time: it is refused, and the module continues.
            r#"(func (export "_start")
              (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
              (unreachable))"#,
            "it was stopped: ",
        ),
        (
            // An endless answer.
            r#"(func (export "_start") (loop $l (call $say (i32.const 1) (i32.const 64) (i32.const 65536)) (br $l)))"#,
            "it answered with more than 1024 KiB",
        ),
        (
            // Endless messages.
            r#"(func (export "_start") (loop $l (call $say (i32.const 2) (i32.const 64) (i32.const 65536)) (br $l)))"#,
            "it did not end within 20 million instructions",
        ),
        (
            r#"(func $f (export "_start") (call $f))"#,
            "it was stopped: ",
        ),
        (
            // A list of four billion parts.
            r#"(func (export "_start") (loop $l (drop (call $write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 8))) (br $l)))"#,
            "it did not end within 20 million instructions",
        ),
        (
            r#"(func (export "_start") (loop $l (drop (call $random (i32.const 0) (i32.const 131072))) (br $l)))"#,
            "it did not end within 20 million instructions",
        ),
        (
            r#"(data (i32.const 64) "\1b[31mno\n quota") (func (export "_start")
              (call $say (i32.const 2) (i32.const 64) (i32.const 14)) (call $exit (i32.const 3)))"#,
            "it exited with status 3: [31mno quota",
        ),
        (
            r#"(data (i32.const 64) "\ff") (func (export "_start") (call $say (i32.const 1) (i32.const 64) (i32.const 1)))"#,
            "its answer is not valid UTF-8",
        ),
    ];
    let limits = Limits {
        fuel: 20_000_000,
        ..Limits::default()
    };
    for (body, expected) in cases {
        let began = Instant::now();
        let error = module(body).run("ask".into(), limits).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{body}: {error}");
        assert!(
            began.elapsed().as_secs() < 20,
            "{body}: {:?}",
            began.elapsed()
        );
    }
    let huge = r#"(module (memory (export "memory") 65536) (func (export "_start")))"#;
    let huge = Module::load(wat::parse_str(huge).unwrap().into()).unwrap();
    let error = huge.run("ask".into(), limits).unwrap_err();
    assert_eq!(error, RunError::Memory { most: 64 << 20 });
}

#[test]
fn a_step_ends_soon_and_a_run_can_be_dropped() {
    let endless = module(r#"(func (export "_start") (loop $l (br $l)))"#);
    let mut run = endless.start("ask".into(), Limits::default());
    for _ in 0..3 {
        let RunStep::More(more) = run.step(100_000) else {
            panic!("it ended")
        };
        run = more;
    }
    assert!((299_000..400_000).contains(&run.used()), "{}", run.used());
    // A run moves between threads.
    std::thread::spawn(move || drop(run.step(1000)))
        .join()
        .unwrap();
}
