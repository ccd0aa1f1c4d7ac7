//! The formats of texts that the API server checks.
//!
//! Source: Kubernetes, `supportedFormats` of `apiextensions-apiserver`, and `strfmt` of `kube-openapi`.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::{Engine as _, engine::general_purpose};

use crate::regex;
use orkestra_language::api::names;
use orkestra_object::value::Network;

/// Formats that are known to the API server; others are ignored, with a warning.
pub(crate) const KNOWN: [&str; 31] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// True if a text has a format, or the format is not checked.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    let matches = |pattern: &str| regex(pattern).is_ok_and(|pattern| pattern.is_match(text));
    match format {
        "bsonobjectid" => matches("^[0-9a-fA-F]{24}$"),
        "byte" => is_base64(text),
        "cidr" => text.contains('/') && Network::parse(text).is_some(),
        "date" => matches(r"^\d{4}-\d{2}-\d{2}$") && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" | "datetime" => is_time(text),
        "duration" => is_duration(text),
        "email" => matches(r"^[^@\s<>,]+@[^@\s<>,]+$"),
        "hexcolor" => matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "hostname" => {
            !text.is_empty()
                && text.len() <= 255
                && matches(
                    r"^([a-zA-Z0-9\p{L}_]([a-zA-Z0-9\p{L}_-]{0,62}[a-zA-Z0-9\p{L}_])?)(\.[a-zA-Z0-9\p{L}_]([a-zA-Z0-9\p{L}_-]{0,62}[a-zA-Z0-9\p{L}_])?)*\.?$",
                )
        }
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "k8s-short-name" => text.len() <= 63 && matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        "k8s-long-name" => names::check_dns1123_subdomain(text).is_ok(),
        "mac" => matches(
            "^([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2})$|^([0-9a-fA-F]{2}[:-]){7}([0-9a-fA-F]{2})$|^([0-9a-fA-F]{4}[.]){2}([0-9a-fA-F]{4})$|^([0-9a-fA-F]{4}[.]){3}([0-9a-fA-F]{4})$",
        ),
        "rgbcolor" => matches(
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
        ),
        "ssn" => matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        // As Go's `url.ParseRequestURI`: an absolute path or an absolute address.
        "uri" => {
            !text.contains(|c: char| c.is_ascii_control() || c == ' ')
                && (text.starts_with('/') || matches("^[a-zA-Z][a-zA-Z0-9+.-]*:"))
        }
        "uuid" => matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        "uuid3" => {
            matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        }
        "uuid4" => {
            matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")
        }
        "uuid5" => {
            matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")
        }
        _ => true,
    }
}

fn is_base64(text: &str) -> bool {
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && general_purpose::STANDARD.decode(text).is_ok()
}

/// RFC 3339, with `T` and a time zone.
fn is_time(text: &str) -> bool {
    let shape = regex(r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}([.,]\d+)?([Zz]|[+-]\d{2}:?\d{2})$");
    shape.is_ok_and(|shape| shape.is_match(text)) && text.parse::<jiff::Timestamp>().is_ok()
}

/// Go's `time.ParseDuration`, or one number with a unit in words, as in `2 days`.
fn is_duration(text: &str) -> bool {
    let go = regex(r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$");
    let words = regex(
        r"^(\d+)\s*(ns|nanos|nanoseconds?|us|µs|micros|microseconds?|ms|millis|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)$",
    );
    [go, words]
        .into_iter()
        .flatten()
        .any(|pattern| pattern.is_match(text))
}
