//! The identity in a certificate: its subject, and the issuer that authenticated it.

use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::shown;

/// The issuer as raw text: 1.3.6.1.4.1.57264.1.1.
const ISSUER_RAW: &str = "1.3.6.1.4.1.57264.1.1";
/// The issuer as `UTF8String` in DER: 1.3.6.1.4.1.57264.1.8.
const ISSUER: &str = "1.3.6.1.4.1.57264.1.8";
/// The parts of a subject are joined with these, after its scheme.
const SEPARATORS: [&str; 2] = ["@", "//"];
/// The tag of `UTF8String`.
const UTF8_STRING: u8 = 0x0c;

/// Checks the issuer and the subject; returns the subject.
pub(crate) fn check(leaf: &[u8], issuer: &str, subject: &str) -> Result<String, String> {
    let (rest, certificate) =
        X509Certificate::from_der(leaf).map_err(|_| "its certificate is not valid".to_owned())?;
    if !rest.is_empty() {
        return Err("its certificate is not valid: there are bytes after it".to_owned());
    }
    let issuers = issuers(&certificate)?;
    if issuers.is_empty() {
        return Err(format!(
            "its certificate names no issuer of an identity, expected `{issuer}`"
        ));
    }
    if let Some(other) = issuers.iter().find(|found| *found != issuer) {
        return Err(format!(
            "its certificate has the issuer `{}`, expected `{issuer}`",
            shown(other)
        ));
    }
    let subjects = subjects(&certificate)?;
    match subjects.iter().find(|found| matches(subject, found)) {
        Some(found) => Ok(shown(found)),
        None if subjects.is_empty() => Err(format!(
            "its certificate names no e-mail address or URI, expected `{subject}`"
        )),
        None => {
            let found: Vec<String> = subjects.iter().take(4).map(|text| shown(text)).collect();
            let ends = if subject.contains('*') {
                ", in which a `*` ends at an `@` and a `//` of its own"
            } else {
                ""
            };
            Err(format!(
                "its certificate is of `{}`, expected `{subject}`{ends}",
                found.join("`, `")
            ))
        }
    }
}

/// Returns the issuers that the extensions name: all of them have to be the expected one.
fn issuers(certificate: &X509Certificate<'_>) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for extension in certificate.extensions() {
        let value = match &*extension.oid.to_id_string() {
            ISSUER_RAW => extension.value,
            ISSUER => utf8_string(extension.value)
                .ok_or_else(|| "the issuer in its certificate is not valid".to_owned())?,
            _ => continue,
        };
        let text = std::str::from_utf8(value)
            .map_err(|_| "the issuer in its certificate is not text".to_owned())?;
        found.push(text.to_owned());
    }
    Ok(found)
}

/// Returns the content of a `UTF8String`.
fn utf8_string(der: &[u8]) -> Option<&[u8]> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, content) = match length {
        0x00..=0x7f => (usize::from(length), rest),
        0x81 => {
            let (&length, content) = rest.split_first()?;
            (usize::from(length), content)
        }
        0x82 => {
            let (length, content) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), content)
        }
        _ => return None,
    };
    (tag == UTF8_STRING && content.len() == length).then_some(content)
}

fn subjects(certificate: &X509Certificate<'_>) -> Result<Vec<String>, String> {
    let names = certificate
        .subject_alternative_name()
        .map_err(|_| "the subject in its certificate is not valid".to_owned())?;
    let names = names.map_or(&[][..], |names| &names.value.general_names);
    let subjects = names.iter().filter_map(|name| match name {
        GeneralName::RFC822Name(text) | GeneralName::URI(text) => Some((*text).to_owned()),
        _ => None,
    });
    Ok(subjects.collect())
}

/// True if a subject matches a pattern in which `*` stands for any text, but not for a separator that the pattern has itself.
///
/// The issuer joins parts with separators: a workflow and the ref that it ran for with `@`, as in
/// `https://github.com/acme/lakes/.github/workflows/release.yml@refs/tags/v1`, and a project and a file with `//`. Anyone who may push
/// a branch chooses its name, which may contain an `@`.
///
/// ```text
/// https://git.example/acme/*@refs/tags/*   …/acme/release.yml@refs/tags/v1             true
///                                          …/acme/x.yml@refs/heads/x@refs/tags/v1      false
/// https://git.example/acme/*               …/acme/release.yml@refs/heads/main          true
/// ```
fn matches(pattern: &str, subject: &str) -> bool {
    let (pattern, subject) = match (pattern.split_once("://"), subject.split_once("://")) {
        (Some((scheme, pattern)), Some((other, subject))) if scheme == other => (pattern, subject),
        _ => (pattern, subject),
    };
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == subject;
    };
    let Some(mut text) = subject.strip_prefix(first) else {
        return false;
    };
    let separators = SEPARATORS.iter().filter(|one| pattern.contains(**one));
    // No text of a wildcard has a separator: the latest place where the next part can begin.
    let latest = |text: &str| {
        let places = separators.clone().filter_map(|one| text.find(one));
        places.min().unwrap_or(text.len())
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        // The first place leaves the most text for the other parts, and no later one has fewer separators before it.
        match text.find(part).filter(|at| *at <= latest(text)) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    let at = text.len().checked_sub(last.len());
    at.is_some_and(|at| at <= latest(text)) && text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Over 60 lines: a table of patterns and subjects.
    #[test]
    fn a_wildcard_ends_at_a_separator_of_its_pattern() {
        const W: &str = "https://github.com/acme/lakes/.github/workflows";
        for (pattern, subject, wanted) in [
            ("/*@refs/tags/*", "/release.yml@refs/tags/v1", true),
            ("/*@refs/tags/*", "/release.yml@refs/tags/v1/x", true),
            (
                "/*@refs/tags/*",
                "/release.yml@refs/heads/x@refs/tags/v9",
                false,
            ),
            (
                "/*@refs/tags/*",
                "/release.yml@refs/heads/@refs/tags/v9",
                false,
            ),
            (
                "/*@refs/tags/*",
                "/release.yml@refs/tags/v9@refs/tags/v9",
                false,
            ),
            (
                "/*@refs/heads/main",
                "/a.yml@refs/heads/x@refs/heads/main",
                false,
            ),
            (
                "/release.yml@*/main",
                "/release.yml@refs/heads/x@y/main",
                false,
            ),
            ("/*.yml@refs/*/v*", "/a.b.yml@refs/tags/v1", true),
            ("/*@refs/tags/v1", "/release.yml@refs/tags/v1", true),
            ("/*@refs/tags/v1", "/release.yml@refs/tags/v12", false),
            ("/*", "/release.yml@refs/heads/main", true),
            (
                "/release.yml@refs/tags/v1",
                "/release.yml@refs/tags/v1",
                true,
            ),
            (
                "/release.yml@refs/tags/v1",
                "/release.yml@refs/tags/v1*",
                false,
            ),
        ] {
            let (pattern, subject) = (format!("{W}{pattern}"), format!("{W}{subject}"));
            assert_eq!(matches(&pattern, &subject), wanted, "{pattern} {subject}");
        }
        for (pattern, subject, wanted) in [
            (
                "https://gitlab.com/acme/*//.gitlab-ci.yml@refs/tags/*",
                "https://gitlab.com/acme/a/b//.gitlab-ci.yml@refs/tags/v1",
                true,
            ),
            (
                "https://gitlab.com/acme/*//.gitlab-ci.yml@refs/tags/*",
                "https://gitlab.com/acme/a//x//.gitlab-ci.yml@refs/tags/v1",
                false,
            ),
            ("*@acme.example", "ci@acme.example", true),
            ("*@acme.example", "ci@evil.example@acme.example", false),
            ("*", "https://anything@refs/heads/main", true),
            ("https://*/a@b", "https://h/a@b", true),
            ("https://h/a@*", "http://h/a@b", false),
        ] {
            assert_eq!(matches(pattern, subject), wanted, "{pattern} {subject}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, text, expected) in [
            ("a@b", "a@b", true),
            ("a@b", "a@b.evil", false),
            ("a@b", "xa@b", false),
            ("*@b", "a@b", true),
            ("*@b", "a@b.evil", false),
            ("https://h/*/x@*", "https://h/a/b/x@v1", true),
            ("https://h/*/x@*", "https://evil/h/a/x@v1", false),
            ("a.b", "aXb", false),
            ("**", "", true),
            ("a*b*c", "abbbcbc", true),
            ("a*b*c", "abbbcb", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        let hostile = "a".repeat(4000);
        assert!(!matches(
            &"*a".repeat(200).replace("aa", "a"),
            &(hostile + "b")
        ));
    }

    #[test]
    fn an_issuer_in_der_has_the_length_that_it_says() {
        assert_eq!(utf8_string(b"\x0c\x01a"), Some(&b"a"[..]));
        let long = [&[UTF8_STRING, 0x81, 200][..], &[b'a'; 200]].concat();
        assert_eq!(utf8_string(&long).map(<[u8]>::len), Some(200));
        for bad in [
            &b""[..],
            b"\x0c",
            b"\x0c\x02a",
            b"\x0c\x01ab",
            b"\x13\x01a",
            b"\x0c\x83",
        ] {
            assert_eq!(utf8_string(bad), None, "{bad:?}");
        }
    }
}
