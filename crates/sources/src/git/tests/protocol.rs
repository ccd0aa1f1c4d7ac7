//! Answers of servers, read byte by byte as no server writes them.

use super::super::protocol::{capabilities, listed, packfile};

const ID: &str = "0123456789012345678901234567890123456789";
/// The most bytes of a pack.
const MOST: usize = 1 << 10;

fn framed(lines: &[&[u8]]) -> Vec<u8> {
    let lines = lines.iter().map(|text| match text {
        [] => b"0000".to_vec(),
        [1] => b"0001".to_vec(),
        text => [format!("{:04x}", text.len() + 4).as_bytes(), text].concat(),
    });
    lines.collect::<Vec<_>>().concat()
}

/// Returns an answer of each kind that is read without an error.
fn answers() -> [Vec<u8>; 3] {
    let peeled = format!("{ID} refs/tags/v1 peeled:{ID}\n");
    let head = format!("{ID} HEAD symref-target:refs/heads/main\n");
    [
        framed(&[
            b"# service=git-upload-pack\n",
            b"",
            b"version 2\n",
            b"agent=git/2\n",
            b"ls-refs=unborn\n",
            b"fetch=shallow wait-for-done\n",
            b"object-format=sha1\n",
            b"",
        ]),
        framed(&[peeled.as_bytes(), head.as_bytes(), b""]),
        framed(&[
            b"shallow-info\n",
            format!("shallow {ID}\n").as_bytes(),
            b"\x01",
            b"packfile\n",
            b"\x02working",
            b"\x01PACK and",
            b"\x01 more",
            b"",
        ]),
    ]
}

/// Reads an answer as each of the kinds.
fn read(answer: &[u8]) -> [Result<(), String>; 3] {
    let names = ["refs/tags/v1".to_owned(), "HEAD".to_owned()];
    [
        capabilities(answer),
        listed(answer, &names).map(drop),
        packfile(answer, MOST).map(drop),
    ]
}

#[test]
fn answers_are_read() {
    let [offered, references, fetched] = answers();
    assert_eq!(capabilities(&offered), Ok(()));
    let id = |name: &str| listed(&references, &[name.to_owned()]).unwrap();
    assert_eq!(id("refs/tags/v1").unwrap().to_string(), ID);
    assert_eq!(id("HEAD").unwrap().to_string(), ID);
    assert_eq!(id("refs/heads/main"), None);
    assert_eq!(packfile(&fetched, MOST).unwrap(), b"PACK and more");
    let error = packfile(&fetched, 5).unwrap_err();
    assert!(error.contains("more than 5 bytes"), "{error}");
}

#[test]
fn any_change_of_an_answer_gives_a_result_or_an_error() {
    let mut errors = 0;
    for (kind, answer) in answers().iter().enumerate() {
        for at in 0..answer.len() {
            for change in [1, 4, 0x10, 0x80, 0xff] {
                let mut changed = answer.clone();
                changed[at] ^= change;
                errors += usize::from(read(&changed)[kind].is_err());
            }
            let cut = read(&answer[..at]);
            assert!(cut[kind].is_err(), "{kind} {at}");
            let mut longer = answer[..at].to_vec();
            longer.extend(b"0004");
            longer.extend(&answer[at..]);
            let _ = read(&longer);
        }
    }
    assert!(errors > 500, "{errors}");
}
