//! Checks of text formats.

mod image;
mod url;

pub use image::is_reference as is_image_reference;

use serde::de::IgnoredAny;

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_language::api::names;
use orkestra_object::value::Node;

/// A note from text to a boolean.
const CHECK: BuiltInNote = BuiltInNote {
    params: &[NoteType::Text],
    result: NoteType::Bool,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "isValidEmail",
        doc: "True if the text is a bare email address, without a name or brackets.",
        example: (
            r#"{{ isValidEmail "mira@pond.example" }} {{ isValidEmail "Mira <mira@pond.example>" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| Ok(is_email(call.text(0)).into())),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidURL",
        doc: "True if the text is an http or https URL with a host.",
        example: (
            r#"{{ isValidURL "https://pond.example/koi?depth=4" }} {{ isValidURL "http://" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| address(call, url::is_web)),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidGitRepository",
        doc: "True if the text is the address of a Git repository: an https, git or ssh URL, or `user@host:path`.",
        example: (
            r#"{{ isValidGitRepository "git@git.example:pond/koi" }} {{ isValidGitRepository "koi" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| address(call, url::is_repository)),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidImageRef",
        doc: "True if the text is a container image reference: an optional host, a lower-case path, and an optional tag or digest.",
        example: (
            r#"{{ isValidImageRef "registry.example:5000/pump:2.4" }} {{ isValidImageRef "Pump/koi" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| Ok(image::is_reference(call.text(0)).into())),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidJSON",
        doc: "True if the text is JSON, of any type.",
        example: (
            r#"{{ isValidJSON "[1, 2]" }} {{ isValidJSON "[1,]" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| {
            Ok(serde_json::from_str::<IgnoredAny>(call.text(0))
                .is_ok()
                .into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidPort",
        doc: "True if the value is a port, 1 to 65535, as a number or as text.",
        example: (
            r#"{{ isValidPort 8080 }} {{ isValidPort "65536" }}"#,
            "true false",
        ),
        params: &[NoteType::Any],
        run: NoteBody::Eager(is_port),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidLabelValue",
        doc: "True if the text is a valid label value in Kubernetes; it may be empty.",
        example: (
            r#"{{ isValidLabelValue "eu_west" }} {{ isValidLabelValue "eu_" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| {
            Ok(names::check_label_value(short(call.text(0))).is_ok().into())
        }),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidLabelKey",
        doc: "True if the text is a valid label key in Kubernetes: a name, optionally after a domain and a slash.",
        example: (
            r#"{{ isValidLabelKey "garden.example/tier" }} {{ isValidLabelKey "a b" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| Ok(names::check_label_key(short(call.text(0))).is_ok().into())),
        ..CHECK
    },
    BuiltInNote {
        name: "isValidAnnotationKey",
        doc: "True if the text is a valid annotation key in Kubernetes: as for labels, but the domain may contain capital letters.",
        example: (
            r#"{{ isValidAnnotationKey "garden.example/Keeper" }} {{ isValidAnnotationKey "" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(is_annotation_key),
        ..CHECK
    },
    BuiltInNote {
        name: "isDNS1123Subdomain",
        doc: "True if the text is a valid name for most Kubernetes objects: lower-case letters, digits, hyphens and dots.",
        example: (
            r#"{{ isDNS1123Subdomain "koi.pond" }} {{ isDNS1123Subdomain "a..b" }}"#,
            "true false",
        ),
        run: NoteBody::Eager(|call| {
            Ok(names::check_dns1123_subdomain(short(call.text(0)))
                .is_ok()
                .into())
        }),
        ..CHECK
    },
];

/// More than the length of any name that Kubernetes accepts.
const TOO_LONG: usize = 512;

/// Truncates a text that is too long for any name, so that a message that quotes it stays short.
fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(TOO_LONG)]
}

/// Checks an address. An address is scanned several times.
fn address<'d>(
    call: &mut NoteCall<'_, 'd>,
    check: fn(&str) -> bool,
) -> Result<Value<'d>, EvalFailure> {
    let bytes = call.text(0).len() as u64;
    call.budget.step(bytes / 4)?;
    Ok(check(call.text(0)).into())
}

fn is_port<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let port = match call.node(0) {
        Node::Int(n) => u16::try_from(*n).ok(),
        Node::Str(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    Ok(port.is_some_and(|port| port > 0).into())
}

/// Kubernetes converts an annotation's key to lower case before it validates it.
fn is_annotation_key<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let key = short(call.text(0)).to_ascii_lowercase();
    Ok(names::check_label_key(&key).is_ok().into())
}

/// Checks for a dot-atom, `@` and a domain.
///
/// Source: RFC 5322, section 3.4.1, without quoted local parts, domain literals and comments; RFC 6531 for
/// letters beyond ASCII; RFC 5321, section 4.5.3.1 for the lengths.
fn is_email(text: &str) -> bool {
    const SPECIAL: &str = "!#$%&'*+-/=?^_`{|}~";
    let atom = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || SPECIAL.contains(c);
        !part.is_empty() && part.chars().all(allowed)
    };
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    text.len() <= 254
        && local.len() <= 64
        && local.split('.').all(atom)
        && !domain.ends_with('.')
        && url::is_host_name(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_addresses_are_bare() {
        for good in [
            "a@b.io",
            "a.b+c@x-y.example",
            "o'neil@b.io",
            "jörg@bücher.example",
            "root@localhost",
        ] {
            assert!(is_email(good), "{good}");
        }
        let long = format!("{}@b.io", "a".repeat(65));
        for bad in [
            "",
            "a",
            "@b.io",
            "a@",
            "a@b@c.io",
            ".a@b.io",
            "a..b@c.io",
            "a@b..io",
            "a@-b.io",
            "a b@c.io",
            " a@b.io",
            "<a@b.io>",
            "A <a@b.io>",
            "a@b.io.",
            &long,
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_stays_too_long_when_it_is_cut() {
        assert!(names::check_dns1123_subdomain(short(&"a".repeat(1000))).is_err());
        assert!(names::check_label_value(short(&"é".repeat(1000))).is_err());
        let key = format!("{}/{}", "a".repeat(253), "b".repeat(63));
        assert!(names::check_label_key(short(&key)).is_ok());
        assert!(names::check_label_key(short(&format!("{key}{}", "b".repeat(1000)))).is_err());
    }
}
