//! Packs that the tests build from bytes: deltas, limits, and broken packs.

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};

use super::{
    object::{ObjectId, ObjectKind, Objects as _},
    pack::{Pack, apply},
};
use crate::Limits;

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Builds a pack with these entries: kind, the rest of the head, and content.
fn pack(entries: &[(u8, &[u8], &[u8])]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    for (kind, head, data) in entries {
        let size = u8::try_from(data.len()).unwrap();
        pack.push(kind << 4 | size & 15 | 0x80);
        pack.push(size >> 4);
        pack.extend(*head);
        pack.extend(deflated(data));
    }
    sealed(pack)
}

fn sealed(mut pack: Vec<u8>) -> Vec<u8> {
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &pack);
    pack.extend(sum.as_ref());
    pack
}

const BASE: &[u8] = b"kind: Katalog\n";
/// Copies 6 bytes of the base, inserts `Motif`, and copies the line break.
const DELTA: &[u8] = &[
    14, 12, 0x90, 6, 5, b'M', b'o', b't', b'i', b'f', 0x91, 13, 1,
];

#[test]
fn deltas_are_resolved_in_any_order() {
    let against = ObjectId::of(ObjectKind::Blob, BASE);
    let bytes: Vec<u8> = (0..20)
        .map(|at| u8::from_str_radix(&against.to_string()[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let delta_first = pack(&[(7, &bytes, DELTA), (3, b"", BASE)]);
    let distance = u8::try_from(deflated(BASE).len() + 2).unwrap();
    let base_first = pack(&[(3, b"", BASE), (6, &[distance], DELTA)]);
    for pack in [delta_first, base_first] {
        let mut read = Pack::read(&pack, &Limits::default()).unwrap();
        let id = ObjectId::of(ObjectKind::Blob, b"kind: Motif\n");
        assert_eq!(read.object(id).unwrap().data, b"kind: Motif\n");
    }
    let missing = pack(&[(7, &bytes, DELTA)]);
    let error = Pack::read(&missing, &Limits::default()).err().unwrap();
    assert!(error.contains("no base"), "{error}");
}

#[test]
fn any_change_of_a_pack_gives_a_result_or_an_error() {
    let distance = u8::try_from(deflated(BASE).len() + 2).unwrap();
    let good = pack(&[(3, b"", BASE), (6, &[distance], DELTA), (2, b"", b"x")]);
    let body = good.len() - 20;
    let mut errors = 0;
    for at in 0..body {
        for change in [1, 0x80, 0xff] {
            let mut changed = good[..body].to_vec();
            changed[at] ^= change;
            errors += usize::from(Pack::read(&sealed(changed), &Limits::default()).is_err());
        }
        assert!(Pack::read(&sealed(good[..at].to_vec()), &Limits::default()).is_err());
    }
    assert!(errors > body, "{errors}");
}

#[test]
fn objects_are_counted_before_they_are_unpacked() {
    let limits = Limits {
        objects: 20,
        ..Limits::default()
    };
    let good = pack(&[(3, b"", BASE)]);
    assert!(Pack::read(&good, &limits).is_ok());
    let twice = pack(&[(3, b"", BASE), (3, b"", b"kind: Komposer\n")]);
    let error = Pack::read(&twice, &limits).err().unwrap();
    assert!(error.contains("more than 20 bytes"), "{error}");
    // A delta of a few bytes requests 4 GiB.
    let huge = [&[14, 0xff, 0xff, 0xff, 0xff, 15][..], &[0x90, 14]].concat();
    assert_eq!(apply(BASE, &huge, 1 << 20), Err(None));
    for broken in [
        &b""[..],
        &[14],
        &[14, 5, 0],
        &[14, 5, 0x91, 13, 9],
        &[13, 5, 0x90, 5],
        &[14, 5, 9, 1],
    ] {
        assert!(
            matches!(apply(BASE, broken, 1 << 20), Err(Some(_))),
            "{broken:?}"
        );
    }
}
