//! Paginated lists, and objects that are too large or too deep to be shown completely.

use parking_lot::Mutex;

use super::*;

/// Returns a cluster with these ponds that supports `limit` and `continue`, and the limits of the requests to it.
fn paged(ponds: Vec<String>) -> (Cluster, Arc<Mutex<Vec<usize>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let limits = asked.clone();
    let ponds = Arc::new(ponds);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let (ponds, limits) = (ponds.clone(), limits.clone());
        async move {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let number = |name: &str| {
                let mut parameters = query.split('&').filter_map(|one| one.split_once('='));
                let found = parameters.find(|(key, _)| *key == name);
                found.map(|(_, value)| value.parse::<usize>().unwrap())
            };
            let limit = number("limit").unwrap();
            limits.lock().push(limit);
            let from = number("continue").unwrap_or(0);
            let to = (from + limit).min(ponds.len());
            let next = if to < ponds.len() {
                to.to_string()
            } else {
                String::new()
            };
            let items = ponds[from..to].join(",");
            let body = format!(r#"{{"metadata": {{"continue": "{next}"}}, "items": [{items}]}}"#);
            let body = kube::client::Body::from(body.into_bytes());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    (Cluster::new(kube::Client::new(service, "default")), asked)
}

fn of(cluster: &Cluster) -> Pages {
    pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        cluster,
    )
}

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_continues_where_its_last_page_ended() {
    let ponds: Vec<String> = (0..730)
        .map(|serial| pond("marsh", &format!("p{serial}")).to_string())
        .collect();
    let (cluster, _) = paged(ponds);
    let pages = of(&cluster);
    let (mut seen, mut next) = (Vec::new(), String::new());
    for expected in [250, 250, 230] {
        let path = format!("/katalog/pond/cr?limit=250{next}");
        let (code, page) = get_json(&pages, &path).await;
        assert_eq!(code, 200, "{page}");
        assert_eq!(names(&page).len(), expected);
        assert_eq!(page["truncated"], page["continue"].is_string());
        seen.extend(names(&page).into_iter().map(ToOwned::to_owned));
        next = format!("&continue={}", page["continue"].as_str().unwrap_or("end"));
    }
    let expected: Vec<String> = (0..730).map(|serial| format!("p{serial}")).collect();
    assert_eq!((seen, next), (expected, "&continue=end".to_owned()));
    for bad in ["0", "501", "x", "-1"] {
        let path = format!("/katalog/pond/cr?limit={bad}");
        assert_eq!(get_json(&pages, &path).await.0, 400, "{bad}");
    }
}

#[tokio::test]
async fn large_objects_are_asked_for_a_few_at_a_time_and_answers_stay_small() {
    let ponds: Vec<String> = (0..60)
        .map(|serial| {
            let mut pond = pond("marsh", &format!("p{serial}"));
            pond["spec"]["silt"] = "x".repeat(300_000).into();
            pond.to_string()
        })
        .collect();
    let (cluster, asked) = paged(ponds);
    let pages = of(&cluster);
    let (code, body) = send(&pages, "GET", "/katalog/pond/cr?field=spec.silt").await;
    assert_eq!(code, 200);
    assert!(body.len() < 20_000, "{}", body.len());
    let page: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(names(&page).len(), 60);
    assert_eq!(
        (
            &page["items"][3]["value"],
            &page["items"][3]["valueTruncated"]
        ),
        (&Value::Null, &json!(true))
    );
    assert_eq!(page["items"][3]["ready"], true, "{page}");
    // A page of 25 ponds has 7.5 MB.
    let asked = asked.lock();
    assert!(asked[0] == 100 && asked.contains(&25), "{asked:?}");
}

#[tokio::test]
async fn an_object_of_any_depth_is_shown_with_what_can_be_read_of_it() {
    let deep = |at: &str| {
        let (open, close) = ("{\"x\":".repeat(9_999), "}".repeat(9_999));
        let text = pond("marsh", at).to_string();
        let depth = format!("{open}1{close}");
        match at {
            "spec" => text.replacen(r#""depth":12"#, &format!(r#""depth":{depth}"#), 1),
            "phase" => text.replacen(r#""phase":"Filled""#, &format!(r#""phase":{depth}"#), 1),
            _ => text,
        }
    };
    let ponds = ["spec", "phase", "flat"].map(deep).to_vec();
    assert!(ponds.iter().filter(|pond| pond.len() > 50_000).count() == 2);
    let (cluster, _) = paged(ponds);
    let path = "/katalog/pond/cr?field=spec.depth";
    let (code, page) = get_json(&of(&cluster), path).await;
    assert_eq!(code, 200, "{page}");
    assert_eq!(names(&page), ["spec", "phase", "flat"]);
    let shown = |index: usize, field: &str| page["items"][index][field].clone();
    assert_eq!(shown(0, "value"), Value::Null);
    assert_eq!(shown(0, "valueTruncated"), true);
    assert_eq!(shown(0, "phase"), "Filled");
    assert_eq!(shown(1, "phase"), Value::Null);
    assert_eq!(shown(1, "ready"), true);
    assert_eq!(shown(2, "value"), 12);
}

#[tokio::test]
async fn the_probes_answer_on_their_own_router_and_nothing_else_does() {
    let pages = two_katalogs();
    let ask = async |pages: &Pages, path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = probes(pages.clone()).oneshot(request).await.unwrap();
        answer.status().as_u16()
    };
    for path in ["/livez", "/healthz", "/health"] {
        assert_eq!(ask(&pages, path).await, 200, "{path}");
    }
    for path in ["/readyz", "/ready", "/startup"] {
        assert_eq!(ask(&pages, path).await, 503, "{path}");
    }
    for path in ["/", "/metrics", "/katalog", "/katalog/lake", "/openapi/v3"] {
        assert_eq!(ask(&pages, path).await, 404, "{path}");
    }
    let dead = pages.with_liveness(Liveness::new(|| Err("a task is gone".to_owned())));
    for path in ["/livez", "/healthz", "/health"] {
        assert_eq!(ask(&dead, path).await, 503, "{path}");
    }
    let said = send(&dead, "GET", "/livez").await;
    assert_eq!(said, (503, "a task is gone\n".to_owned()));
}

#[tokio::test]
async fn a_request_with_a_body_is_refused() {
    let request = Request::get("/katalog").body(Body::from("x")).unwrap();
    let answer = router(two_katalogs()).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 400);
}
