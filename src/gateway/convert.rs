//! Conversion of custom resources between the versions of their kind. It reads nothing: it works with any leader, and without
//! records.

use std::sync::Arc;

use orkestra_core::{conversion::convert, value::Node};
use orkestra_ground::tasks::{self, Task};
use tokio::time::Instant;

use super::{
    Gateway,
    catalogue::Conversion,
    review::{self, converted},
};
use crate::metrics::Reviewed;

/// Returns the kind of the objects, as group and kind; none if there are none, or if they differ.
fn kind(objects: &[Node]) -> Option<(String, String)> {
    let of = |object: &Node| {
        let text = |field: &str| object.get(field).and_then(Node::as_str);
        let (group, _) = text("apiVersion")?.split_once('/')?;
        Some((group.to_owned(), text("kind")?.to_owned()))
    };
    of(objects.first()?)
}

/// Converts the objects of a review; returns the bytes of the response, and whether all were converted.
pub(super) async fn review(gateway: &Gateway, request: &review::Conversion) -> (Vec<u8>, bool) {
    let converted_objects = objects(gateway, request).await;
    let is_done = converted_objects.is_ok();
    (converted(&request.uid, &converted_objects), is_done)
}

async fn objects(gateway: &Gateway, request: &review::Conversion) -> Result<Vec<Node>, String> {
    let objects = request.objects().map_err(|error| error.to_string())?;
    if objects.is_empty() {
        return Ok(objects);
    }
    let (group, kind) = kind(&objects).ok_or("an object has no `apiVersion` and `kind`")?;
    let Some(found) = gateway.conversion(&group, &kind) else {
        return Err(format!(
            "no Katalog declares a conversion of {kind}.{group}: apply one with `conversion` for objects of other versions than the storage version"
        ));
    };
    let start = Instant::now();
    let (count, plan) = (objects.len(), found.plan.clone());
    let desired: Arc<str> = request.desired_api_version.as_str().into();
    let named = tasks::named(Task::Review, &plan.kind);
    let work = named.start_blocking(move || {
        let objects = objects.into_iter();
        let converted = objects.map(|object| convert(&plan, object, &desired));
        converted
            .collect::<Result<Vec<Node>, _>>()
            .map_err(|error| error.to_string())
    });
    let result = match work.await {
        Ok(result) => result,
        Err(_) => Err("internal error: the conversion failed".to_owned()),
    };
    note(gateway, &found, (count, result.is_ok()), start);
    result
}

fn note(gateway: &Gateway, found: &Conversion, (count, done): (usize, bool), start: Instant) {
    let reviewed = if done {
        Reviewed::Converted(count, 0)
    } else {
        Reviewed::Converted(0, count)
    };
    let about = (&found.katalog, found.entry.as_str());
    let window = Some(found.security.conversion_window);
    gateway
        .metrics
        .note(about, reviewed, start.elapsed(), window);
}
