//! One child: its fields, and the edits of another client.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use http::{Method, Request};
use kube::Client;
use orkestra_language::api::names::ANNOTATION_CONFIG_HASH;
use serde_json::Value;
use testbed::eventually;

use super::fields::{self, Edit, Planned, Step, Trail};
use super::{LIMIT, RULES, Tally, sample};
use crate::scenario::code;

/// A child, and how to reach it.
pub(crate) struct Child {
    /// As it was found.
    object: Value,
    path: String,
    what: String,
}

impl Child {
    /// Finds out how the API server serves a child, and reads it with its managed fields.
    pub(crate) async fn find(client: &Client, object: Value) -> Result<Self> {
        let text = |at: &str| {
            object
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let root = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let served = send(client, Method::GET, &root, None).await?;
        let resources = served["resources"].as_array().into_iter().flatten();
        let resource = resources
            .into_iter()
            .find(|one| one["kind"] == kind && !one["name"].as_str().unwrap_or("/").contains('/'))
            .with_context(|| format!("{kind} is not served"))?;
        let plural = resource["name"].as_str().unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let path = if resource["namespaced"] == true {
            format!("{root}/namespaces/{namespace}/{plural}/{name}")
        } else {
            format!("{root}/{plural}/{name}")
        };
        Ok(Self {
            what: format!("{kind} {name}"),
            object: send(client, Method::GET, &path, None).await?,
            path,
        })
    }

    /// Returns the fields that the operator applies.
    fn applied(&self) -> Vec<Trail> {
        let entries = self.object["metadata"]["managedFields"].as_array();
        let ours = entries.into_iter().flatten().filter(|entry| {
            entry["operation"] == "Apply"
                && entry["manager"]
                    .as_str()
                    .unwrap_or_default()
                    .starts_with("orkestra/")
        });
        ours.flat_map(|entry| fields::applied(&entry["fieldsV1"]))
            .collect()
    }

    /// Makes the edits of one round, one after the other. Returns the number of rounds, and the results.
    pub(crate) async fn edit_round(&self, client: &Client, round: usize) -> Result<(usize, Tally)> {
        let applied = self.applied();
        let mut parents: BTreeSet<String> = BTreeSet::new();
        let mut planned = Vec::new();
        for trail in &applied {
            let edit = |edit| Planned {
                trail: trail.clone(),
                edit,
            };
            let is_item = matches!(trail.last(), Some(Step::Item(_)));
            planned.extend((!is_item).then(|| edit(Edit::Change)));
            planned.push(edit(Edit::Remove));
            let is_new = trail
                .split_last()
                .is_some_and(|(_, parent)| parents.insert(fields::text(parent)));
            planned.extend(is_new.then(|| edit(Edit::AddBeside)));
        }
        // The sample differs from child to child, and is the same in each run.
        let offset: usize = self.what.bytes().map(usize::from).sum();
        let sampled = planned.into_iter().enumerate();
        let sampled = sampled.filter(|(at, _)| (at + offset).is_multiple_of(sample()));
        let rounds = fields::rounds(sampled.map(|(_, edit)| edit).collect(), &applied);
        let mut tally = Tally::default();
        for edit in rounds.get(round).into_iter().flatten() {
            let what = || {
                format!(
                    "{}: {:?} {}",
                    self.what,
                    edit.edit,
                    fields::text(&edit.trail)
                )
            };
            self.edit(client, edit, &mut tally)
                .await
                .with_context(what)?;
        }
        Ok((rounds.len(), tally))
    }

    /// Makes an edit, and waits until it is corrected.
    async fn edit(&self, client: &Client, planned: &Planned, tally: &mut Tally) -> Result<()> {
        let trail = &planned.trail;
        let rule = RULES
            .iter()
            .find(|rule| (rule.applies)(&self.object, trail));
        if let Some(rule) = rule {
            if rule.is_made {
                let now = self.fetch(client).await?;
                self.make(client, &now, planned).await?;
                self.put_back(client, now).await?;
            }
            *tally.by_rule.entry(rule.why).or_default() += 1;
            return Ok(());
        }
        // As it is before the edit: a corrected object may have been created again.
        let before = eventually("the field is there", LIMIT, async || {
            let now = self.fetch(client).await?;
            Ok(fields::find(&now, trail).is_some().then_some(now))
        })
        .await?;
        let Some(edited) = self.make(client, &before, planned).await? else {
            tally.refused += 1;
            return Ok(());
        };
        let value = |object: &Value| fields::find(object, trail).map(|(_, value)| value.clone());
        if planned.edit != Edit::AddBeside && value(&edited) == value(&before) {
            tally.unchanged += 1;
            return Ok(());
        }
        if planned.edit == Edit::AddBeside {
            // It stays or goes; what is declared stays.
            tally.beside += 1;
        }
        let (wanted, wrong) = (value(&before), value(&edited));
        // The hash of what the pods read follows other children, which are edited at the same time.
        let follows =
            matches!(trail.last(), Some(Step::Field(field)) if field == ANNOTATION_CONFIG_HASH);
        eventually("it is corrected", LIMIT, async || {
            let now = self.fetch(client).await?;
            let is = value(&now);
            let is_other = follows && is.is_some() && is != wrong;
            ensure!(
                is == wanted || is_other,
                "it is {is:?}, and should be {wanted:?}"
            );
            Ok(Some(()))
        })
        .await?;
        tally.corrected += usize::from(planned.edit != Edit::AddBeside);
        Ok(())
    }

    /// Makes an edit in the first way that the API server takes. None if it takes none.
    async fn make(
        &self,
        client: &Client,
        before: &Value,
        planned: &Planned,
    ) -> Result<Option<Value>> {
        let path = format!("{}?fieldManager=drift", self.path);
        let mut kept = None;
        for patch in fields::patches(before, planned) {
            match send(client, Method::PATCH, &path, Some(&patch)).await {
                Ok(object)
                    if object["metadata"]["resourceVersion"]
                        == before["metadata"]["resourceVersion"] =>
                {
                    kept = Some(object);
                }
                Ok(object) => return Ok(Some(object)),
                Err(error) if matches!(code(&error), Some(400 | 403 | 422 | 500)) => {
                    if error.to_string().contains("immutable") {
                        break;
                    }
                }
                // Another client wrote in between: the operator itself, a controller.
                Err(error) if code(&error) == Some(409) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    /// Writes the object as it was, with its managed fields: each edit that is left alone is one of its own, since an object that
    /// has lost several of its marks belongs to no custom resource.
    async fn put_back(&self, client: &Client, mut before: Value) -> Result<()> {
        let path = format!("{}?fieldManager=drift", self.path);
        eventually("it is written back", LIMIT, async || {
            // Some kinds require a version, and another client may write in between.
            let now = self.fetch(client).await?;
            before["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
            send(client, Method::PUT, &path, Some(&before))
                .await
                .map(Some)
        })
        .await
        .map(drop)
    }

    async fn fetch(&self, client: &Client) -> Result<Value> {
        send(client, Method::GET, &self.path, None).await
    }
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    changes: Option<&Value>,
) -> Result<Value> {
    let mut request = Request::builder().method(method.clone()).uri(path);
    let mut body = Vec::new();
    if let Some(changes) = changes {
        let content = if method == Method::PATCH {
            "application/json-patch+json"
        } else {
            "application/json"
        };
        request = request.header("content-type", content);
        body = serde_json::to_vec(changes)?;
    }
    Ok(client.request(request.body(body)?).await?)
}
