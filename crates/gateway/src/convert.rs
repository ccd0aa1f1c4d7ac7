//! Conversion of custom resources between the versions of their kind. It reads nothing: it works with any leader, and without
//! records.

use orkestra_engine::conversion::convert_json;
use orkestra_ground::tasks::{self, Task};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{
    Gateway,
    catalogue::KindConversion,
    review::{self, converted},
};
use orkestra_operator::metrics::Reviewed;

/// Converts the objects of a review; returns the bytes of the response, and whether all were converted.
pub(crate) async fn review(
    gateway: &Gateway,
    request: review::ConversionRequest,
) -> (Vec<u8>, bool) {
    let uid = request.uid.clone();
    let converted_objects = objects(gateway, request).await;
    let is_done = converted_objects.is_ok();
    (converted(&uid, &converted_objects), is_done)
}

async fn objects(
    gateway: &Gateway,
    request: review::ConversionRequest,
) -> Result<Vec<Box<RawValue>>, String> {
    if request.objects.is_empty() {
        return Ok(Vec::new());
    }
    let (group, kind) = (request.kind()).ok_or("an object has no `apiVersion` and `kind`")?;
    let Some(found) = gateway.conversion(&group, &kind) else {
        return Err(format!(
            "no Katalog declares a conversion of {kind}.{group}: apply one with `conversion` for objects of versions other than the storage version"
        ));
    };
    let start = Instant::now();
    let (count, plan) = (request.objects.len(), found.plan.clone());
    let named = tasks::named(Task::Review, &plan.kind);
    let work = named.start_blocking(move || {
        let desired = &request.desired_api_version;
        let converted = request.objects.iter().map(|object| {
            let text =
                convert_json(&plan, object.get(), desired).map_err(|error| error.to_string())?;
            RawValue::from_string(text).map_err(|error| error.to_string())
        });
        converted.collect::<Result<Vec<_>, String>>()
    });
    let result = match work.await {
        Ok(result) => result,
        Err(_) => Err("internal error: the conversion failed".to_owned()),
    };
    note(gateway, &found, (count, result.is_ok()), start);
    result
}

fn note(gateway: &Gateway, found: &KindConversion, (count, done): (usize, bool), start: Instant) {
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
