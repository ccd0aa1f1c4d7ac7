//! `/`: what is where.

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, header},
    response::{Html, IntoResponse, Response},
};

use super::answers::{Index, IndexEntry};

/// The pages of the main port, with their descriptions.
const PAGES: [(&str, &str); 6] = [
    (
        "/katalog",
        "Katalogs and their operators, with links to instances",
    ),
    ("/metrics", "metrics for Prometheus"),
    (
        "/openapi/v3",
        "the description of these pages, in OpenAPI 3.1",
    ),
    ("/livez", "whether the process works; no authentication"),
    ("/readyz", "whether it is ready; no authentication"),
    ("/startup", "whether it has started; no authentication"),
];

/// Returns the index, as HTML for browsers and as JSON for others. It has no data of the cluster, not even a version, so it
/// needs no token.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    let pages = PAGES.map(|(path, shows)| IndexEntry { path, shows });
    let index = Index {
        pages: pages.into(),
    };
    let accept = headers.get(header::ACCEPT).map(HeaderValue::to_str);
    let is_browser = matches!(accept, Some(Ok(accept)) if accept.contains("text/html"));
    let vary = [(header::VARY, HeaderValue::from_static("accept"))];
    if is_browser {
        return (vary, Html(html(&index))).into_response();
    }
    (vary, Json(index)).into_response()
}

/// The texts are constants, which need no escapes.
fn html(index: &Index) -> String {
    let rows = index.pages.iter().map(|IndexEntry { path, shows }| {
        format!("<li><a href=\"{path}\">{path}</a>: {shows}</li>\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Orkestra</title>\n<h1>Orkestra</h1>\n<ul>\n{}</ul>\n</html>\n",
        rows.collect::<String>(),
    )
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::Request, routing::get};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn answer(accept: Option<&str>) -> (String, String) {
        let mut request = Request::get("/");
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        let router: Router = Router::new().route("/", get(index));
        let response = router
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let kind = response.headers()[header::CONTENT_TYPE]
            .to_str()
            .unwrap()
            .to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_index_is_json_and_html_for_browsers() {
        for accept in [None, Some("*/*"), Some("application/json")] {
            let (kind, body) = answer(accept).await;
            assert_eq!(kind, "application/json", "{accept:?}");
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["pages"][0]["path"], "/katalog");
        }
        let (kind, body) = answer(Some("text/html,application/xhtml+xml,*/*;q=0.8")).await;
        assert!(kind.starts_with("text/html"), "{kind}");
        assert!(body.contains("<a href=\"/katalog\">/katalog</a>"), "{body}");
    }
}
