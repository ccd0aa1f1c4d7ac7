//! One fetch of one source, with the Secrets that it names.

use std::{sync::Arc, time::Duration};

use orkestra_compiler::compose::{Artifact, SourceRequest};
use orkestra_language::api::sources::{SourceSecret, Verify};
use orkestra_plan::KatalogRef;
use serde_json::Value;
use tokio::time::Instant;

use super::{super::calls::ServedResource, FetchError, Secret, Secrets, SourceContext};

/// The result of a fetch.
pub(crate) struct FinishedFetch {
    /// The identity of the source.
    pub(crate) id: String,
    pub(crate) result: Result<Arc<Artifact>, FetchError>,
    /// How long it took; none if the source was not asked.
    pub(crate) took: Option<Duration>,
}

/// Fetches one source, at most as many at a time as the process permits; `None` if the process is stopping.
pub(crate) async fn fetch(
    context: Arc<SourceContext>,
    of: KatalogRef,
    request: SourceRequest,
) -> Option<FinishedFetch> {
    let _permit = context.fetches.acquire().await.ok()?;
    let id = request.id.clone();
    let auth = request.auth.as_ref();
    let auth = auth.and_then(|auth| auth.secret_ref.as_ref());
    let secrets = async {
        let mut verify = Vec::new();
        for wanted in request.verify.iter().flat_map(Verify::secrets) {
            verify.extend(secret(&context, &of, Some(wanted)).await?);
        }
        Ok(Secrets {
            auth: secret(&context, &of, auth).await?,
            verify,
        })
    };
    let secrets = match secrets.await {
        Ok(secrets) => secrets,
        Err(error) => {
            return Some(FinishedFetch {
                id,
                result: Err(error),
                took: None,
            });
        }
    };
    let began = Instant::now();
    let result = context.fetch.fetch(&request, &secrets).await;
    Some(FinishedFetch {
        id,
        result,
        took: Some(began.elapsed()),
    })
}

/// Reads a Secret by name, in the namespace of the Komposer.
async fn secret(
    context: &SourceContext,
    of: &KatalogRef,
    wanted: Option<&SourceSecret>,
) -> Result<Option<Secret>, FetchError> {
    let Some(SourceSecret { name, .. }) = wanted else {
        return Ok(None);
    };
    let transient = |message: String| FetchError {
        message,
        permanent: false,
    };
    let secrets = ServedResource::secrets(&context.runtime.cluster);
    let found = secrets.get(Some(&of.namespace), name).await;
    let found =
        found.map_err(|error| transient(format!("cannot read Secret `{name}`: {error}")))?;
    let found = found.ok_or_else(|| {
        transient(format!(
            "there is no Secret `{name}` in namespace {}",
            of.namespace
        ))
    })?;
    let decode = |(key, value): (&String, &Value)| {
        let value: k8s_openapi::ByteString = serde_json::from_value(value.clone()).ok()?;
        Some((key.clone(), value.0))
    };
    let data = found.data.get("data").and_then(Value::as_object);
    let type_ = found.data.get("type").and_then(Value::as_str);
    Ok(Some(Secret {
        name: name.clone(),
        type_: type_.unwrap_or_default().to_owned(),
        data: data.into_iter().flatten().filter_map(decode).collect(),
    }))
}
