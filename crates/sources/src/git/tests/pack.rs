//! Packs that the tests build from bytes: deltas, limits, broken packs, and content made for collisions.

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};

use super::super::{
    object::{ObjectKind, Objects as _, checksum, id_of},
    pack::Pack,
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
    for entry in entries {
        pack.extend(packed(entry));
    }
    sealed(pack)
}

/// Returns an entry of a pack.
fn packed((kind, head, data): &(u8, &[u8], &[u8])) -> Vec<u8> {
    let mut size = data.len() >> 4;
    let low = u8::try_from(data.len() & 15).unwrap();
    let mut entry = vec![kind << 4 | low | 0x80];
    entry.extend(varint(&mut size));
    entry.extend(*head);
    entry.extend(deflated(data));
    entry
}

/// Returns a number with seven bits in each byte, the lowest first.
fn varint(number: &mut usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(*number & 0x7f).unwrap();
        *number >>= 7;
        if *number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
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
    let against = id_of(ObjectKind::Blob, BASE).unwrap();
    let delta_first = pack(&[(7, against.as_slice(), DELTA), (3, b"", BASE)]);
    let distance = u8::try_from(packed(&(3, b"", BASE)).len()).unwrap();
    let base_first = pack(&[(3, b"", BASE), (6, &[distance], DELTA)]);
    for pack in [delta_first, base_first] {
        let mut read = Pack::read(pack, &Limits::default()).unwrap();
        let id = id_of(ObjectKind::Blob, b"kind: Motif\n").unwrap();
        assert_eq!(&*read.object(id).unwrap().data, b"kind: Motif\n");
    }
    let missing = pack(&[(7, against.as_slice(), DELTA)]);
    let error = error_of(missing, &Limits::default());
    assert!(error.contains("no base"), "{error}");
    // A delta against itself has no base either.
    let itself = id_of(ObjectKind::Blob, b"kind: Motif\n").unwrap();
    let error = error_of(pack(&[(7, itself.as_slice(), DELTA)]), &Limits::default());
    assert!(error.contains("no base"), "{error}");
}

fn error_of(pack: Vec<u8>, limits: &Limits) -> String {
    Pack::read(pack, limits).err().unwrap()
}

#[test]
fn any_change_of_a_pack_gives_a_result_or_an_error() {
    let distance = u8::try_from(packed(&(3, b"", BASE)).len()).unwrap();
    let good = pack(&[(3, b"", BASE), (6, &[distance], DELTA), (2, b"", b"x")]);
    assert!(Pack::read(good.clone(), &Limits::default()).is_ok());
    let body = good.len() - 20;
    let mut errors = 0;
    for at in 0..body {
        for change in [1, 0x80, 0xff] {
            let mut changed = good[..body].to_vec();
            changed[at] ^= change;
            errors += usize::from(Pack::read(sealed(changed), &Limits::default()).is_err());
        }
        assert!(Pack::read(sealed(good[..at].to_vec()), &Limits::default()).is_err());
    }
    assert!(errors > body, "{errors}");
    let longer = sealed([&good[..body], b"x"].concat());
    assert!(error_of(longer, &Limits::default()).contains("malformed"));
    for at in body..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(error_of(changed, &Limits::default()).contains("checksum"));
    }
}

#[test]
fn objects_are_counted_before_they_are_unpacked() {
    let limits = Limits {
        objects: 20,
        ..Limits::default()
    };
    let good = pack(&[(3, b"", BASE)]);
    assert!(Pack::read(good, &limits).is_ok());
    let mut empty = Pack::read(pack(&[(3, b"", b"")]), &limits).unwrap();
    let id = id_of(ObjectKind::Blob, b"").unwrap();
    assert!(empty.object(id).unwrap().data.is_empty());
    let twice = pack(&[(3, b"", BASE), (3, b"", b"kind: Komposer\n")]);
    let error = error_of(twice, &limits);
    assert!(error.contains("more than 20 bytes"), "{error}");
    // A head that claims 1 EiB.
    let mut claimed = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    claimed.push(3 << 4 | 0x80);
    claimed.extend(varint(&mut (1 << 56)));
    claimed.extend(deflated(BASE));
    let error = error_of(sealed(claimed), &Limits::default());
    assert!(error.contains("more than"), "{error}");
    let against = id_of(ObjectKind::Blob, BASE).unwrap();
    let delta = |delta: &[u8]| pack(&[(3, b"", BASE), (7, against.as_slice(), delta)]);
    // A delta of a few bytes requests 4 GiB.
    let huge = [&[14, 0xff, 0xff, 0xff, 0xff, 15][..], &[0x90, 14]].concat();
    let error = error_of(delta(&huge), &Limits::default());
    assert!(error.contains("more than"), "{error}");
    for broken in [
        &b""[..],
        &[14],
        &[14, 5, 0],
        &[14, 5, 0x91, 13, 9],
        &[13, 5, 0x90, 5],
        &[14, 5, 9, 1],
    ] {
        let error = error_of(delta(broken), &Limits::default());
        assert!(error.contains("malformed"), "{broken:?}: {error}");
    }
}

/// Returns a delta that copies its base of `size` bytes twice.
fn doubling(size: usize) -> Vec<u8> {
    let mut delta = varint(&mut size.clone());
    delta.extend(varint(&mut (2 * size)));
    for _ in 0..2 {
        let mut at = 0;
        while at < size {
            let length = (size - at).min(0xff_ffff);
            delta.push(0xff);
            delta.extend(u32::try_from(at).unwrap().to_le_bytes());
            delta.extend(&u32::try_from(length).unwrap().to_le_bytes()[..3]);
            at += length;
        }
    }
    delta
}

/// Returns the distance to the base of a delta, as an entry has it.
fn distance(mut number: usize) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(number & 0x7f).unwrap()];
    while number > 0x7f {
        number = (number >> 7) - 1;
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
    }
    bytes.reverse();
    bytes
}

#[test]
fn a_chain_of_deltas_that_doubles_an_object_is_refused_before_it_is_large() {
    // 1 KiB, doubled 22 times: 4 GiB from a pack of a few kilobytes.
    let small = vec![b'a'; 1024];
    let mut body = packed(&(3, b"", &small));
    let mut before = body.len();
    for level in 0..22 {
        let entry = packed(&(6, &distance(before), &doubling(1024 << level)));
        before = entry.len();
        body.extend(entry);
    }
    let bomb = [&b"PACK\0\0\0\x02\0\0\0\x17"[..], &body].concat();
    assert!(bomb.len() < 16 << 10, "{}", bomb.len());
    let error = error_of(sealed(bomb), &Limits::default());
    assert!(error.contains("more than 100663296 bytes"), "{error}");
    // The deltas first: they wait for their bases, and the bound is the same.
    let limits = Limits {
        objects: 1 << 20,
        ..Limits::default()
    };
    let mut content = small.clone();
    let mut deltas = Vec::new();
    for _ in 0..10 {
        let base = id_of(ObjectKind::Blob, &content).unwrap();
        deltas.push((base, doubling(content.len())));
        content.extend_from_within(..);
    }
    let build = |levels: usize| {
        let waiting = deltas[..levels].iter().rev();
        let mut entries: Vec<(u8, &[u8], &[u8])> = waiting
            .map(|(base, delta)| (7, base.as_slice(), &**delta))
            .collect();
        entries.push((3, b"", &small));
        pack(&entries)
    };
    let error = error_of(build(10), &limits);
    assert!(error.contains("more than 1048576 bytes"), "{error}");
    let mut good = Pack::read(build(6), &limits).unwrap();
    let largest = id_of(ObjectKind::Blob, &content[..64 << 10]).unwrap();
    assert_eq!(good.object(largest).unwrap().data.len(), 64 << 10);
}

#[test]
fn many_small_deltas_against_a_large_object_are_bounded() {
    let large = vec![b'a'; 1 << 20];
    let base = id_of(ObjectKind::Blob, &large).unwrap();
    // Each copies one byte of a mebibyte.
    let mut delta = varint(&mut (1 << 20));
    delta.extend([1, 0x90, 1]);
    let mut entries: Vec<(u8, &[u8], &[u8])> = vec![(3, b"", &large)];
    entries.extend(std::iter::repeat_n((7, base.as_slice(), &*delta), 1000));
    let limits = Limits {
        objects: 8 << 20,
        ..Limits::default()
    };
    let error = error_of(pack(&entries), &limits);
    assert!(error.contains("more than 8388608 bytes"), "{error}");
    entries.truncate(100);
    assert!(Pack::read(pack(&entries), &limits).is_ok());
}

/// The two beginnings of files with one SHA-1 digest. Source: Stevens and others, The First Collision for Full SHA-1, 2017.
const SHATTERED: [&str; 3] = [
    "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01",
    "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1",
    "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// No collision of two Git objects is known: their headers come first, and a collision is made for one beginning. What is known
/// goes through the function that finishes the digests of objects and packs.
#[test]
fn content_that_was_made_for_a_collision_is_refused() {
    let [beginning, one, other] = SHATTERED.map(bytes);
    let files = [[&*beginning, &one].concat(), [&*beginning, &other].concat()];
    let digest = |data: &[u8]| {
        ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, data)
            .as_ref()
            .to_vec()
    };
    assert_ne!(files[0], files[1]);
    assert_eq!(digest(&files[0]), digest(&files[1]));
    for file in &files {
        let error = checksum(file).unwrap_err();
        assert!(error.contains("collision"), "{error}");
        let id = id_of(ObjectKind::Blob, file).unwrap();
        let header = [b"blob 320\0", &**file].concat();
        assert_eq!(id.as_slice(), digest(&header));
    }
}
