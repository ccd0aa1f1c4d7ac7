//! Logs of the controller: all lines, or those about an operator or an object.
//!
//! ```text
//!  log of each Pod ── lines, cut ── LogFilter ──► LogLine, as they arrive
//! ```

use std::pin::pin;

use futures::{AsyncBufRead, AsyncBufReadExt as _, StreamExt as _, stream::FuturesUnordered};
use orkestra_cluster::requests::{ClusterError, LogQuery, Served};
use orkestra_object::ObjectKey;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Reader, Unavailable,
    controllers::{ControllerPod, no_pods},
    list::declaring,
    tree::katalog::operators_of,
};
use crate::operate::Error;

/// The most bytes of a line; the rest is cut.
const LINE: usize = 32 << 10;
/// The lines that may wait for the printer.
const WAITING: usize = 256;
/// The fields of log lines that name an object.
const OBJECTS: [&str; 3] = ["object", "custom_resource", "owner"];
/// The field that names an operator.
const OPERATOR: &str = "operator";
/// The field that names a Katalog.
const KATALOG: &str = "katalog";

/// The log that is asked for.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// The namespace of the controller.
    pub system: String,
    /// Which lines of each Pod.
    pub query: LogQuery,
    /// Which of these lines.
    pub filter: LogFilter,
}

/// The lines of a log that are wanted; by default, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only lines about operators of these names.
    pub operators: Option<Vec<String>>,
    /// Only lines about the object of this key; of a Katalog, lines about its operators, too.
    pub object: Option<ObjectKey>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The Pod that wrote it.
    pub pod: String,
    /// The line, without its end.
    pub text: String,
}

impl LogFilter {
    /// The filter of an object: its key, and where Katalogs may be read, the operators of its kind.
    pub async fn about(reader: &Reader, kind: &Served, key: &ObjectKey) -> Self {
        let is_declaring = declaring().iter().any(|own| own.is(&kind.group_kind()));
        let operators = if is_declaring {
            None
        } else {
            let operators =
                operators_of(reader, &kind.group_kind(), key.namespace.as_deref()).await;
            (!operators.is_empty()).then(|| {
                let names = operators.into_iter().map(|(_, row)| row.name);
                names.collect()
            })
        };
        Self {
            operators,
            object: Some(key.clone()),
        }
    }

    /// True if the line is wanted.
    pub fn admits(&self, line: &str) -> bool {
        if *self == Self::default() {
            return true;
        }
        let fields = Fields::read(line);
        let operator = fields.get(OPERATOR);
        let is_operator = self.operators.as_ref().is_none_or(|wanted| {
            operator
                .as_ref()
                .is_some_and(|operator| wanted.contains(operator))
        });
        let Some(key) = &self.object else {
            return is_operator;
        };
        let key = key.to_string();
        let mut objects = OBJECTS.iter().chain([&KATALOG]);
        let is_object = objects.any(|field| fields.get(field).is_some_and(|text| text == key));
        // A line without an operator is about the object, whichever operator it has.
        is_object && (is_operator || operator.is_none())
    }
}

/// The fields of a line, in either of the formats of the log.
enum Fields<'l> {
    Json(Value),
    Human(&'l str),
}

impl<'l> Fields<'l> {
    fn read(line: &'l str) -> Self {
        match serde_json::from_str::<Value>(line) {
            Ok(json) if json.is_object() => Self::Json(json),
            _ => Self::Human(line),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        match self {
            Self::Json(json) => json[name].as_str().map(str::to_owned),
            Self::Human(line) => {
                let mut rest = *line;
                loop {
                    let at = rest.find(name)?;
                    let is_start = at == 0 || rest[..at].ends_with(' ');
                    let after = &rest[at + name.len()..];
                    match after.strip_prefix('=').filter(|_| is_start) {
                        Some(value) => return Some(value_of(value)),
                        None => rest = after,
                    }
                }
            }
        }
    }
}

/// Returns the value that a text begins with: a quoted one, or a word.
fn value_of(text: &str) -> String {
    let value = match text.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => text.split(' ').next(),
    };
    value.unwrap_or_default().to_owned()
}

/// Passes the wanted lines of all Pods of the controller to `take`, as they arrive; returns what could not be read. Followed logs
/// end with their Pods.
///
/// # Errors
/// [`Error::Request`] if the namespace has no Pods of the controller.
pub async fn logs(
    reader: &Reader,
    request: &LogRequest,
    take: &mut dyn FnMut(LogLine) -> Result<(), std::io::Error>,
) -> Result<Vec<Unavailable>, Error> {
    let (pods, missing) = reader.controller_pods(&request.system).await;
    let mut unavailable: Vec<Unavailable> = missing.into_iter().collect();
    if pods.is_empty() && unavailable.is_empty() {
        return Err(Error::Request {
            what: "read the log".to_owned(),
            source: Box::new(no_pods(&request.system)),
        });
    }
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let reading = pods
        .iter()
        .map(|pod| read(reader, pod, request, sender.clone()));
    let mut reading: FuturesUnordered<_> = reading.collect();
    drop(sender);
    loop {
        tokio::select! {
            Some(ended) = reading.next(), if !reading.is_empty() => unavailable.extend(ended.err()),
            line = receiver.recv() => match line {
                // A reader that has closed the pipe wants no more.
                Some(line) => if take(line).is_err() {
                    return Ok(unavailable);
                },
                None => break,
            },
        }
    }
    while let Some(ended) = reading.next().await {
        unavailable.extend(ended.err());
    }
    Ok(unavailable)
}

/// Reads the log of a Pod.
async fn read(
    reader: &Reader,
    pod: &ControllerPod,
    request: &LogRequest,
    sender: mpsc::Sender<LogLine>,
) -> Result<(), Unavailable> {
    let named = request.query.container.clone();
    let query = LogQuery {
        container: named.or_else(|| pod.containers.first().cloned()),
        ..request.query.clone()
    };
    let failed =
        |error: &ClusterError| Unavailable::of(format!("the log of Pod {}", pod.key.name), error);
    let body = reader.cluster.log(&pod.key, &query).await;
    let mut body = pin!(body.map_err(|error| failed(&error))?);
    loop {
        let line = line(&mut body).await;
        let line = line.map_err(|error| failed(&ClusterError::Unavailable(error.to_string())))?;
        let Some(text) = line else {
            return Ok(());
        };
        if !request.filter.admits(&text) {
            continue;
        }
        let line = LogLine {
            pod: pod.key.name.to_string(),
            text,
        };
        if sender.send(line).await.is_err() {
            return Ok(());
        }
    }
}

/// Returns the next line, cut to [`LINE`] bytes; none at the end.
async fn line<B: AsyncBufRead + Unpin>(body: &mut B) -> std::io::Result<Option<String>> {
    let (mut line, mut any) = (Vec::new(), false);
    loop {
        let part = body.fill_buf().await?;
        if part.is_empty() {
            return Ok(any.then(|| String::from_utf8_lossy(&line).into_owned()));
        }
        any = true;
        let end = part.iter().position(|byte| *byte == b'\n');
        let used = end.unwrap_or(part.len());
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&part[..used.min(room)]);
        body.consume_unpin(end.map_or(used, |end| end + 1));
        if end.is_some() {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUMAN: &str = "2026-01-01T00:00:00Z  WARN orkestra_operator::pass: pass failed operator=pond object=shop/north reason=\"Denied\" error=\"no\"";

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    fn filter(operators: Option<&[&str]>, object: Option<ObjectKey>) -> LogFilter {
        LogFilter {
            operators: operators.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            object,
        }
    }

    #[test]
    fn lines_are_filtered_in_both_formats() {
        let json =
            r#"{"level":"WARN","message":"pass failed","operator":"pond","object":"shop/north"}"#;
        for line in [HUMAN, json] {
            assert!(LogFilter::default().admits(line));
            assert!(filter(Some(&["pond"]), None).admits(line), "{line}");
            assert!(!filter(Some(&["lake", "pon"]), None).admits(line), "{line}");
            assert!(filter(None, Some(key("shop", "north"))).admits(line));
            assert!(!filter(None, Some(key("shop", "nort"))).admits(line));
            assert!(filter(Some(&["pond"]), Some(key("shop", "north"))).admits(line));
            assert!(!filter(Some(&["lake"]), Some(key("shop", "north"))).admits(line));
        }
        let katalog = r#"{"message":"operator stopped","katalog":"shop/waters","operator":"pond"}"#;
        assert!(filter(None, Some(key("shop", "waters"))).admits(katalog));
        assert!(!filter(Some(&["pond"]), None).admits("no field at all"));
        assert!(filter(Some(&["pond"]), None).admits("operator=\"pond\" and more"));
        assert!(!filter(Some(&["pond"]), None).admits("suboperator=pond"));
    }

    #[tokio::test]
    async fn lines_are_cut_and_the_last_one_needs_no_end() {
        let text = format!("one\n\n{}\nlast", "x".repeat(LINE + 10));
        let mut body = futures::io::Cursor::new(text.into_bytes());
        let mut lines = Vec::new();
        while let Some(one) = line(&mut body).await.unwrap() {
            lines.push(one.len());
        }
        assert_eq!(lines, [3, 0, LINE, 4]);
    }
}
