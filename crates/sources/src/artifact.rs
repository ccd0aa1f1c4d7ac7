//! Fetched sources.

pub use orkestra_compiler::compose::{Artifact, Fetched, Verified};

/// Returns the text of a file.
///
/// # Errors
/// A sentence with the reason.
pub(crate) fn text(name: &str, data: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(data).map_err(|_| format!("{name} is not UTF-8"))?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

/// True for names of YAML files.
pub(crate) fn is_yaml(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("yaml" | "yml"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use sha2::{Digest as _, Sha256};

    use super::*;

    fn document(name: &str, text: &str) -> Fetched {
        Fetched {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn no_two_lists_of_documents_have_one_digest() {
        let sum = |text: &str| {
            let sum = Sha256::digest(text.as_bytes());
            sum.iter().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            })
        };
        let [a, b, c] = ["a: 1\n", "b: 1\n", "c: 1\n"];
        let list = format!(
            "{}  a.yaml\n{}  b.yaml\n{}  c.yaml\n",
            sum(a),
            sum(b),
            sum(c)
        );
        let name = format!("a.yaml\n{}  b.yaml", sum(b));
        let lists = [
            // `sha256sum` prints one list of checksums for the first two, without its escapes; it is the text of the next two.
            vec![
                document("a.yaml", a),
                document("b.yaml", b),
                document("c.yaml", c),
            ],
            vec![document(&name, a), document("c.yaml", c)],
            vec![document("", &list)],
            vec![document("c.yaml", &list)],
            // A name and a text, divided elsewhere, and in another order.
            vec![document("a.yaml", a), document("b.yaml", b)],
            vec![document("b.yaml", b), document("a.yaml", a)],
            vec![document("a.yaml", a)],
            vec![document("a.yam", &format!("l{a}"))],
            vec![],
        ];
        for (number, one) in lists.iter().enumerate() {
            for other in &lists[..number] {
                assert_ne!(Artifact::digest_of(one), Artifact::digest_of(other));
            }
        }
    }
}
