//! Names of Events.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::CONTROLLER;

/// Longest name of an object, in bytes. Source: Kubernetes, "Object Names and IDs".
const NAME_BYTES: usize = 253;

/// `<object>.<nanoseconds><serial>` in hexadecimal, like the names of client-go and kube.
pub(crate) fn event_name(object: &str, now: &MicroTime, serial: u64) -> String {
    let suffix = format!(".{:x}{:04x}", now.0.as_nanosecond(), serial & 0xffff);
    let stem = cut(object, NAME_BYTES - suffix.len()).trim_end_matches(['.', '-']);
    let stem = if stem.is_empty() { CONTROLLER } else { stem };
    format!("{stem}{suffix}")
}

/// Returns the longest prefix of at most so many bytes, without splitting a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        let name = event_name(&"p".repeat(253), &MicroTime(jiff::Timestamp::UNIX_EPOCH), 1);
        assert_eq!(name.len(), NAME_BYTES);
    }
}
