//! The last write of the process. It shows whether etcd was restored to a state before it, even if the restored etcd has
//! passed every resourceVersion that a watch knows since: whatever an operator reacts to leads to a write of its own.

use orkestra_object::{decode::Version, value::Node};
use serde::Deserialize;

/// Asks for metadata alone, so that no value of a Secret is answered.
///
/// Source: Kubernetes API Concepts, "Metadata-only fetches".
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// An object as a write of this process left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenObject {
    /// Path and query of a list of this object alone: a process that watches a kind can list it.
    pub(crate) path: String,
    /// Its resourceVersion then.
    version: Version,
    /// Whether nothing had asked for its deletion.
    stays: bool,
}

impl WrittenObject {
    /// From the answer to the write; none where that is not an object in etcd.
    pub(crate) fn read(path: String, answer: &Node) -> Option<Self> {
        let version = answer.meta_text("resourceVersion")?;
        Some(Self {
            path,
            version: Version::from(version),
            stays: answer.meta("deletionTimestamp").is_none(),
        })
    }

    /// Whether the object, as it is found now, shows that the write is lost. An object that is gone shows it unless it was
    /// being deleted: a deletion by another client meanwhile looks the same and costs one unnecessary list of each kind.
    pub(crate) fn is_lost(&self, found: Option<&Version>) -> bool {
        found.map_or(self.stays, |found| found.is_behind(&self.version))
    }
}

/// The resourceVersion of the only object of that list; none where the list is empty.
pub(crate) async fn look(
    client: kube::Client,
    path: String,
) -> Result<Option<Version>, kube::Error> {
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, METADATA_LIST)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    // Not `request::<List>`: kube logs the whole text of an answer that it cannot parse.
    let text = client.request_text(request).await?;
    read(&text).map_err(kube::Error::SerdeError)
}

fn read(list: &str) -> Result<Option<Version>, serde_json::Error> {
    let list: List = serde_json::from_str(list)?;
    let first = list.items.unwrap_or_default().into_iter().next();
    Ok(first.map(|item| Version::from(&*item.metadata.resource_version)))
}

#[derive(Deserialize)]
struct List {
    /// Null where there is none.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::testing::node;

    fn written(metadata: &str) -> Option<WrittenObject> {
        WrittenObject::read(
            "/list".to_owned(),
            &node(&format!(r#"{{"metadata":{metadata}}}"#)),
        )
    }

    #[test]
    fn an_object_in_an_older_state_or_missing_is_a_lost_write() {
        let kept = written(r#"{"resourceVersion":"70"}"#).unwrap();
        let cases = [
            (Some("69"), true),
            (Some("70"), false),
            (Some("400"), false),
            (None, true),
        ];
        for (found, lost) in cases {
            assert_eq!(
                kept.is_lost(found.map(Version::from).as_ref()),
                lost,
                "{found:?}"
            );
        }
        let ending = r#"{"resourceVersion":"70","deletionTimestamp":"2031-05-06T07:08:09Z"}"#;
        let ending = written(ending).unwrap();
        assert!(!ending.is_lost(None), "a deletion counts as lost");
        assert!(ending.is_lost(Some(&Version::from("69"))));
    }

    #[test]
    fn a_list_of_nothing_is_read_as_the_api_server_writes_it() {
        let list = |items: &str| {
            read(&format!(
                r#"{{"kind":"PartialObjectMetadataList","items":{items}}}"#
            ))
        };
        assert_eq!(list("null").unwrap(), None);
        assert_eq!(list("[]").unwrap(), None);
        let one = r#"[{"metadata":{"name":"north","resourceVersion":"70"}}]"#;
        assert_eq!(list(one).unwrap(), Some(Version::from("70")));
        assert!(list("[{}]").is_err());
    }

    #[test]
    fn an_answer_without_a_resource_version_is_no_write_to_look_for() {
        assert_eq!(written(r#"{"name":"review"}"#), None);
        assert_eq!(WrittenObject::read("/list".to_owned(), &node("{}")), None);
    }
}
