//! Values with fields and methods: `.Files`, `.Capabilities`, times, versions.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::Offset;
use orkestra_template::go;
use semver::Version;

use super::{Elem, Entries, Items, Raw, Value};
use crate::Capabilities;

/// The files of a chart by path.
pub(crate) type Files = BTreeMap<Rc<str>, Rc<[u8]>>;

/// A value that is not plain data.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    /// `.Files`
    Files(Rc<Files>),
    /// `.Capabilities`
    Capabilities(Rc<Capabilities>),
    /// `.Capabilities.APIVersions`
    Versions(Rc<Capabilities>),
    /// `.Capabilities.KubeVersion`
    KubeVersion(Rc<Capabilities>),
    /// `time.Time`
    Time(Timestamp),
    /// `time.Duration`, in nanoseconds
    Duration(i64),
    /// `*semver.Version` and its original text
    Version(Rc<(Version, Box<str>)>),
}

impl Object {
    /// Returns the Go type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Object::Files(_) => "engine.files",
            Object::Capabilities(_) => "*common.Capabilities",
            Object::Versions(_) => "common.VersionSet",
            Object::KubeVersion(_) => "common.KubeVersion",
            Object::Time(_) => "time.Time",
            Object::Duration(_) => "time.Duration",
            Object::Version(_) => "*semver.Version",
        }
    }

    /// Returns the Go kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Object::Files(_) => "map",
            Object::Capabilities(_) | Object::Version(_) => "ptr",
            Object::Versions(_) => "slice",
            Object::KubeVersion(_) | Object::Time(_) => "struct",
            Object::Duration(_) => "int64",
        }
    }

    /// True if a condition treats it as false.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Object::Files(files) => files.is_empty(),
            Object::Versions(capabilities) => capabilities.api_versions.is_empty(),
            Object::Duration(nanos) => *nanos == 0,
            _ => false,
        }
    }

    /// True if both are equal.
    pub(crate) fn same(&self, other: &Object) -> bool {
        match (self, other) {
            (Object::Time(a), Object::Time(b)) => a == b,
            (Object::Duration(a), Object::Duration(b)) => a == b,
            (Object::Version(a), Object::Version(b)) => a.0 == b.0,
            (Object::Files(a), Object::Files(b)) => a == b,
            (Object::Capabilities(a), Object::Capabilities(b))
            | (Object::Versions(a), Object::Versions(b))
            | (Object::KubeVersion(a), Object::KubeVersion(b)) => a == b,
            _ => false,
        }
    }

    /// Returns the value of its JSON.
    pub(crate) fn data(&self) -> Option<Value> {
        Some(match self {
            Object::Files(files) => {
                let entry = |(name, data): (&Rc<str>, &Rc<[u8]>)| {
                    (Rc::clone(name), Value::Bytes(Rc::clone(data), Raw::Slice))
                };
                Value::map(files.iter().map(entry).collect::<Entries>())
            }
            Object::Versions(capabilities) => Value::texts(&capabilities.api_versions),
            Object::KubeVersion(capabilities) => {
                let part = |name| kube_version(capabilities, name).unwrap_or_default();
                Value::object(["Version", "Major", "Minor"].map(|name| (name, part(name))))
            }
            Object::Capabilities(capabilities) => {
                let part = |name| capability(capabilities, name).unwrap_or_default();
                Value::object(["APIVersions", "HelmVersion", "KubeVersion"].map(|n| (n, part(n))))
            }
            Object::Duration(nanos) => Value::Int64(*nanos),
            Object::Version(_) | Object::Time(_) => Value::text(self.text()?),
        })
    }

    /// Returns the text of a value that formats itself.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Object::KubeVersion(capabilities) => Some(capabilities.normal_version()),
            Object::Time(time) => {
                let time = Offset::UTC.to_datetime(*time);
                let date = time.strftime("%Y-%m-%d %H:%M:%S%.f");
                Some(format!("{date} +0000 UTC"))
            }
            Object::Duration(nanos) => Some(go::duration_text(i128::from(*nanos))),
            Object::Version(version) => Some(version.0.to_string()),
            Object::Files(_) | Object::Capabilities(_) | Object::Versions(_) => None,
        }
    }
}

/// Returns a field of `.Capabilities`.
pub(crate) fn capability(capabilities: &Rc<Capabilities>, name: &str) -> Option<Value> {
    let shared = Rc::clone(capabilities);
    Some(match name {
        "KubeVersion" => Value::Object(Object::KubeVersion(shared)),
        "APIVersions" => Value::Object(Object::Versions(shared)),
        "HelmVersion" => Value::object([
            ("GitCommit", Value::text("")),
            ("GitTreeState", Value::text("")),
            ("GoVersion", Value::text("")),
            ("KubeClientVersion", Value::text("")),
            ("Version", Value::text(&capabilities.helm_version)),
        ]),
        _ => return None,
    })
}

/// Returns a field of `.Capabilities.KubeVersion`.
pub(crate) fn kube_version(capabilities: &Capabilities, name: &str) -> Option<Value> {
    let (major, minor) = capabilities.numbers();
    Some(match name {
        "Version" | "GitVersion" => Value::text(&capabilities.kube_version),
        "Major" => Value::text(major),
        "Minor" => Value::text(minor),
        _ => return None,
    })
}

/// Returns the keys and values for a `range`, if the object supports it.
pub(crate) fn items(object: &Object) -> Option<Vec<(Value, Value)>> {
    match object {
        Object::Files(files) => Some(
            files
                .iter()
                .map(|(name, data)| {
                    let data = Value::Bytes(Rc::clone(data), Raw::Slice);
                    (Value::Str(Rc::clone(name)), data)
                })
                .collect(),
        ),
        Object::Versions(capabilities) => {
            let versions = capabilities.api_versions.iter();
            let pair = |(at, version): (usize, &String)| {
                (
                    Value::Int(i64::try_from(at).unwrap_or(0)),
                    Value::text(version),
                )
            };
            Some(versions.enumerate().map(pair).collect())
        }
        _ => None,
    }
}

/// Returns the elements of a value that Go treats as a slice.
pub(crate) fn slice(value: &Value) -> Option<(Rc<Items>, Elem)> {
    match value {
        Value::List(items, elem) => Some((Rc::clone(items), *elem)),
        Value::Object(Object::Versions(capabilities)) => {
            let items = capabilities.api_versions.iter().map(Value::text).collect();
            Some((Items::new(items), Elem::Text))
        }
        _ => None,
    }
}
