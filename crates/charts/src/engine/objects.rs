//! The fields and methods of objects.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::Offset;
use orkestra_template::go::{self, EvalFailure};
use semver::Version;

use crate::engine::{Engine, functions, glob, write};
use crate::value::object::{Files, Object, capability, kube_version};
use crate::value::{Entries, Raw, Value, base64_text};

impl Object {
    /// Returns the value of a field, or of a method without arguments.
    pub(crate) fn field(&self, name: &str, engine: &mut Engine<'_>) -> Result<Value, EvalFailure> {
        let found = match self {
            Object::Capabilities(capabilities) => capability(capabilities, name),
            Object::KubeVersion(capabilities) => kube_version(capabilities, name),
            Object::Version(version) => version_part(version, name),
            // A key of the map, unless it is a method.
            Object::Files(files) if !matches!(name, "AsConfig" | "AsSecrets") => {
                let file = files.get(name);
                Some(file.map_or(Value::Nil, |f| Value::Bytes(Rc::clone(f), Raw::Slice)))
            }
            _ => None,
        };
        match found {
            Some(value) => Ok(value),
            None => self.method(name, &[], engine),
        }
    }

    /// Calls a method.
    pub(crate) fn method(
        &self,
        name: &str,
        args: &[Value],
        engine: &mut Engine<'_>,
    ) -> Result<Value, EvalFailure> {
        let unknown = || {
            let message = format!("can't evaluate field {name} in type {}", self.type_name());
            EvalFailure::wrong_type(message)
        };
        match (self, args) {
            (Object::Files(files), args) => {
                files_method(files, name, args, engine)?.ok_or_else(unknown)
            }
            (Object::Versions(capabilities), [version]) if name == "Has" => {
                let version = functions::string(version)?;
                let has = capabilities
                    .api_versions
                    .iter()
                    .any(|known| **known == *version);
                Ok(Value::Bool(has))
            }
            (Object::Time(time), args) => {
                time_method(*time, name, args, engine)?.ok_or_else(unknown)
            }
            (Object::Duration(nanos), []) => duration_method(*nanos, name).ok_or_else(unknown),
            (Object::Version(version), [other]) => {
                version_method(version, name, other).ok_or_else(unknown)
            }
            (object, []) if name == "String" => object.text().map(Value::text).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }
}

fn version_part((version, original): &(Version, Box<str>), name: &str) -> Option<Value> {
    let number = |n: u64| Value::Int64(i64::try_from(n).unwrap_or(i64::MAX));
    Some(match name {
        "Major" => number(version.major),
        "Minor" => number(version.minor),
        "Patch" => number(version.patch),
        "Prerelease" => Value::text(version.pre.as_str()),
        "Metadata" => Value::text(version.build.as_str()),
        "Original" => Value::text(original),
        "String" => Value::text(version.to_string()),
        _ => return None,
    })
}

fn version_method(version: &(Version, Box<str>), name: &str, other: &Value) -> Option<Value> {
    let Value::Object(Object::Version(other)) = other else {
        return None;
    };
    let order = version.0.cmp_precedence(&other.0);
    Some(match name {
        "Compare" => Value::Int(order as i64),
        "LessThan" => Value::Bool(order.is_lt()),
        "GreaterThan" => Value::Bool(order.is_gt()),
        "Equal" => Value::Bool(order.is_eq()),
        _ => return None,
    })
}

fn files_method(
    files: &Rc<Files>,
    name: &str,
    args: &[Value],
    engine: &mut Engine<'_>,
) -> Result<Option<Value>, EvalFailure> {
    let first = args.first().map(functions::string).transpose()?;
    let file = |name: &str| files.get(name).cloned().unwrap_or_default();
    Ok(Some(match (name, first) {
        ("Get", Some(path)) => Value::bytes(&file(&path)),
        ("GetBytes", Some(path)) => Value::Bytes(file(&path), Raw::Slice),
        ("Lines", Some(path)) => {
            let data = file(&path);
            let text = String::from_utf8_lossy(&data);
            engine.text(text.len())?;
            match text.strip_suffix('\n').unwrap_or(&text) {
                "" if text.is_empty() => Value::texts([""; 0]),
                text => Value::texts(text.split('\n')),
            }
        }
        ("Glob", Some(pattern)) => {
            let pattern = glob::Pattern::compile(&pattern);
            engine.steps(files.len() as u64)?;
            let mut matched = Files::new();
            for (name, data) in files.iter() {
                if pattern.matches(name, engine)? {
                    matched.insert(Rc::clone(name), Rc::clone(data));
                }
            }
            Value::Object(Object::Files(Rc::new(matched)))
        }
        ("AsConfig", None) => as_data(files, engine, Value::bytes)?,
        ("AsSecrets", None) => as_data(files, engine, |data| Value::text(base64_text(data)))?,
        _ => return Ok(None),
    }))
}

/// Returns the files by their last names, as YAML.
fn as_data(
    files: &Files,
    engine: &mut Engine<'_>,
    text: impl Fn(&[u8]) -> Value,
) -> Result<Value, EvalFailure> {
    let mut entries = Entries::new();
    for (name, data) in files {
        engine.text(data.len().saturating_mul(2))?;
        let base = name.rsplit('/').next().unwrap_or(name);
        entries.insert(base.into(), text(data));
    }
    write::write(&Value::map(entries), engine).map(Value::text)
}

fn time_method(
    time: Timestamp,
    name: &str,
    args: &[Value],
    engine: &mut Engine<'_>,
) -> Result<Option<Value>, EvalFailure> {
    let date = Offset::UTC.to_datetime(time);
    Ok(Some(match (name, args) {
        ("Unix", []) => Value::Int64(time.as_second()),
        ("UnixMilli", []) => Value::Int64(time.as_millisecond()),
        ("UnixNano", []) => Value::Int64(i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)),
        ("Year", []) => Value::Int(date.year().into()),
        ("Month", []) => Value::Int(date.month().into()),
        ("Day", []) => Value::Int(date.day().into()),
        ("Hour", []) => Value::Int(date.hour().into()),
        ("Minute", []) => Value::Int(date.minute().into()),
        ("Second", []) => Value::Int(date.second().into()),
        ("YearDay", []) => Value::Int(date.day_of_year().into()),
        ("UTC" | "Local", []) => Value::Object(Object::Time(time)),
        ("String", []) => Value::text(Object::Time(time).text().unwrap_or_default()),
        ("Format", [layout]) => {
            let layout = functions::string(layout)?;
            Value::text(go::format_time(time, &layout, engine.budget_mut())?)
        }
        _ => return Ok(None),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "as Go does")]
fn duration_method(nanos: i64, name: &str) -> Option<Value> {
    Some(match name {
        "Seconds" => Value::Float(nanos as f64 / 1e9),
        "Minutes" => Value::Float(nanos as f64 / 6e10),
        "Hours" => Value::Float(nanos as f64 / 3.6e12),
        "Milliseconds" => Value::Int64(nanos / 1_000_000),
        "Microseconds" => Value::Int64(nanos / 1000),
        "Nanoseconds" => Value::Int64(nanos),
        "String" => Value::text(go::duration_text(i128::from(nanos))),
        _ => return None,
    })
}
