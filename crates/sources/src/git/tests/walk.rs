//! Walks over objects that no server sends by accident: endless, deep and wide trees, and names with another meaning.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::{
    object::{Object, ObjectId, ObjectKind, Objects},
    tree::{WalkError, WalkLimits, files},
};

const LIMITS: WalkLimits = WalkLimits {
    files: 1_000,
    file: 1 << 20,
    bytes: 4 << 20,
    folders: 16 << 20,
};

/// Objects under identifiers that the test chooses, so that a tree can contain itself.
#[derive(Default)]
struct Chosen {
    objects: HashMap<ObjectId, Object>,
    /// How often an object was read.
    reads: usize,
}

impl Objects for Chosen {
    fn object(&mut self, id: ObjectId) -> Result<Object, String> {
        self.reads += 1;
        let found = self.objects.get(&id).cloned();
        found.ok_or_else(|| format!("the object {id} is missing"))
    }
}

fn id(number: u8) -> ObjectId {
    ObjectId::from([number; 20])
}

const COMMIT: u8 = 1;
const ROOT: u8 = 2;
const BLOB: u8 = 3;

impl Chosen {
    /// Returns a repository with a commit, a root folder with these entries, and a file.
    fn new(root: &[(&str, &[u8], u8)]) -> Self {
        let mut new = Self::default();
        let commit = format!("tree {}\nauthor a <a> 0 +0000\n\nx", id(ROOT));
        new.put(COMMIT, ObjectKind::Commit, commit.into_bytes());
        new.put(BLOB, ObjectKind::Blob, b"a: 1\n".to_vec());
        new.folder(ROOT, root);
        new
    }

    fn put(&mut self, number: u8, kind: ObjectKind, data: Vec<u8>) {
        let data = Bytes::from(data);
        self.objects.insert(id(number), Object { kind, data });
    }

    fn folder(&mut self, number: u8, entries: &[(&str, &[u8], u8)]) {
        let mut tree = Vec::new();
        for (mode, name, target) in entries {
            tree.extend(mode.as_bytes());
            tree.push(b' ');
            tree.extend(*name);
            tree.push(0);
            tree.extend(id(*target).as_slice());
        }
        self.put(number, ObjectKind::Tree, tree);
    }

    fn names(&mut self, path: &str) -> Result<Vec<String>, WalkError> {
        let accept = crate::artifact::is_yaml;
        let found = files(self, id(COMMIT), path, accept, LIMITS)?;
        Ok(found.into_iter().map(|file| file.path).collect())
    }

    fn error(&mut self) -> String {
        match self.names("") {
            Err(WalkError::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

const FILE: &str = "100644";
const FOLDER: &str = "40000";

#[test]
fn files_are_found_and_links_and_submodules_are_left_out() {
    let mut chosen = Chosen::new(&[
        (FILE, b"a.yaml", BLOB),
        ("120000", b"b.yaml", BLOB),
        ("160000", b"c.yaml", BLOB),
        (FOLDER, b"d", 4),
    ]);
    chosen.folder(4, &[("100755", b"e.yaml", BLOB), (FILE, b"f.txt", BLOB)]);
    assert_eq!(chosen.names("").unwrap(), ["a.yaml", "d/e.yaml"]);
    assert_eq!(chosen.names("d").unwrap(), ["e.yaml"]);
    assert_eq!(chosen.names("d/e.yaml").unwrap(), ["e.yaml"]);
    assert_eq!(chosen.names("a.yaml/x"), Err(WalkError::Missing));
    for link in ["b.yaml", "c.yaml"] {
        let Err(WalkError::Failed(error)) = chosen.names(link) else {
            panic!("{link}");
        };
        assert!(error.contains("not followed"), "{error}");
    }
}

#[test]
fn trees_that_contain_themselves_or_are_deep_end() {
    let mut itself = Chosen::new(&[(FOLDER, b"a", ROOT)]);
    assert!(itself.error().contains("nested too deeply"));
    assert!(itself.reads < 100, "{}", itself.reads);
    let mut deep = Chosen::new(&[(FOLDER, b"a", 10)]);
    for number in 10..250 {
        deep.folder(number, &[(FOLDER, b"a", number + 1)]);
    }
    deep.folder(250, &[(FILE, b"a.yaml", BLOB)]);
    assert!(deep.error().contains("nested too deeply"));
    let mut tag = Chosen::new(&[]);
    tag.put(
        COMMIT,
        ObjectKind::Tag,
        format!("object {}\ntype tag\ntag a\n\nx", id(COMMIT)).into_bytes(),
    );
    assert!(tag.error().contains("too many others"));
}

#[test]
fn trees_in_many_places_are_counted_for_each_place() {
    // Twenty levels of two folders each: a million places of a few bytes.
    let mut doubled = Chosen::new(&[(FOLDER, b"a", 10), (FOLDER, b"b", 10)]);
    for number in 10..30 {
        let next = number + 1;
        doubled.folder(number, &[(FOLDER, b"a", next), (FOLDER, b"b", next)]);
    }
    doubled.folder(30, &[]);
    assert!(doubled.error().contains("too many"));
    assert!(doubled.reads <= 10 * LIMITS.files + 2);
    // A large folder in thousands of places, without a file that is wanted: what is read is bounded, not only what is found.
    let names: Vec<String> = (0..20_000).map(|number| format!("{number}.txt")).collect();
    let large: Vec<(&str, &[u8], u8)> = names
        .iter()
        .map(|name| (FILE, name.as_bytes(), BLOB))
        .collect();
    let places: Vec<(&str, &[u8], u8)> = names[..5_000]
        .iter()
        .map(|name| (FOLDER, name.as_bytes(), 10))
        .collect();
    let mut wide = Chosen::new(&places);
    wide.folder(10, &large);
    assert!(wide.error().contains("too many"));
    assert!(wide.reads < 50, "{}", wide.reads);
    let long = [b'a'; 5_000];
    let mut long = Chosen::new(&[(FOLDER, &long, 10)]);
    assert!(long.error().contains("more than 4096 bytes"));
}

#[test]
fn names_that_could_mean_something_else_are_refused() {
    for (name, why) in [
        (&b".."[..], "not a file name"),
        (b".git", "not a file name"),
        (b"a/b.yaml", "not a file name"),
        (b"a\\b.yaml", "not a file name"),
        (b"", "not a file name"),
        (b"a\n0000  b.yaml", "control character"),
        (b"a\r.yaml", "control character"),
        (b"a\xc2\x85.yaml", "control character"),
        (b"a\xff.yaml", "not UTF-8"),
    ] {
        let error = Chosen::new(&[(FILE, name, BLOB)]).error();
        assert!(error.contains(why), "{name:?}: {error}");
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }
    let mut folder = Chosen::new(&[(FOLDER, b"a\nb", 10)]);
    folder.folder(10, &[(FILE, b"c.yaml", BLOB)]);
    assert!(folder.error().contains("control character"));
    let twice = Chosen::new(&[(FILE, b"a.yaml", BLOB), (FILE, b"a.yaml", BLOB)]).error();
    assert!(twice.contains("a.yaml is a duplicate"), "{twice}");
    // Files that are not read may have any name, such as the `Icon\r` of macOS.
    let mut beside = Chosen::new(&[(FILE, b"Icon\r", BLOB), (FILE, b"a.yaml", BLOB)]);
    assert_eq!(beside.names("").unwrap(), ["a.yaml"]);
}

#[test]
fn malformed_objects_are_errors() {
    for (kind, data, why) in [
        (ObjectKind::Commit, &b"author x\n\n"[..], "no tree"),
        (ObjectKind::Commit, b"", "no tree"),
        (ObjectKind::Tag, b"x", "no object"),
        (ObjectKind::Blob, b"x", "expected a commit"),
    ] {
        let mut chosen = Chosen::new(&[]);
        chosen.put(COMMIT, kind, data.to_vec());
        let error = chosen.error();
        assert!(error.contains(why), "{error}");
    }
    for tree in [&b"100644 a"[..], b"100644 a\x0012", b"\xff a\0", b"x"] {
        let mut chosen = Chosen::new(&[]);
        chosen.put(ROOT, ObjectKind::Tree, tree.to_vec());
        assert!(chosen.error().contains("malformed"), "{tree:?}");
    }
    let mut blob = Chosen::new(&[(FOLDER, b"a", BLOB)]);
    assert!(blob.error().contains("expected a tree"));
    let mut tree = Chosen::new(&[(FILE, b"a.yaml", ROOT)]);
    assert!(tree.error().contains("expected a file"));
}
