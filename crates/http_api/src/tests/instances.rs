//! Instances of an operator, read live from the API server.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn instances_are_listed_with_the_field_that_was_asked_for() {
    let answers = BTreeMap::from([(
        "/apis/water.example/v1/ponds",
        list_of(&[pond("marsh", "one"), pond("delta", "two")], ""),
    )]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        &cluster(answers),
    );
    let (code, page) = get_json(&pages, "/katalog/pond/cr?field=spec.fish.0.name").await;
    assert_eq!(code, 200);
    assert_eq!(page["truncated"], false);
    assert_eq!(
        page["items"][0],
        json!({"name": "one", "namespace": "marsh", "phase": "Filled", "ready": true, "age": "3h", "generation": 4,
            "deleting": false, "value": "carp"})
    );
    assert!(
        get_json(&pages, "/katalog/pond/cr").await.1["items"][1]
            .get("value")
            .is_none()
    );
    assert_eq!(get_json(&pages, "/katalog/pond/cr?field=a..b").await.0, 400);
    assert_eq!(get_json(&pages, "/katalog/pond/cr?feild=a").await.0, 400);
    assert_eq!(
        get_json(&pages, "/katalog/pond/cr?namespace=a%2Fb").await.0,
        400
    );
}

#[tokio::test]
async fn a_list_ends_at_five_hundred_instances_and_says_so() {
    let page: Vec<Value> = (0..120)
        .map(|serial| pond("marsh", &format!("p{serial}")))
        .collect();
    // Every page has a `continue` token, so without a limit the list would never end.
    let answers = BTreeMap::from([("/apis/water.example/v1/ponds", list_of(&page, "more"))]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        &cluster(answers),
    );
    let (_, page) = get_json(&pages, "/katalog/pond/cr").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 500);
    assert_eq!(page["truncated"], true);
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_ends_in_504() {
    let service = service_fn(|_: Request<kube::client::Body>| {
        std::future::pending::<Result<Response<kube::client::Body>, std::convert::Infallible>>()
    });
    let cluster = Cluster::new(kube::Client::new(service, "default"));
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        &cluster,
    );
    let (code, _) =
        tokio::time::timeout(Duration::from_mins(1), get_json(&pages, "/katalog/pond/cr"))
            .await
            .unwrap();
    assert_eq!(code, 504);
    // Four requests read and 32 wait until they time out; the others are refused.
    let many = (0..50).map(|_| get_json(&pages, "/katalog/pond/cr"));
    let answers = futures::future::join_all(many).await;
    let count = |code: u16| answers.iter().filter(|answer| answer.0 == code).count();
    assert_eq!((count(504), count(503)), (36, 14));
}

#[tokio::test]
async fn an_instance_shows_its_children_and_never_values_of_secrets() {
    let child = |name: &str, mark: &str| {
        json!({"metadata": {"name": name, "namespace": "marsh", "annotations": {"orkestra.orkspace.io/child": mark}},
            "spec": {"replicas": 2}, "status": {"observedGeneration": 1, "readyReplicas": 1},
            "data": {"password": "c2VjcmV0"}})
    };
    let children = list_of(
        &[
            child("one", "Deployment/one"),
            child("copy", "Deployment/one"),
        ],
        "",
    );
    let answers = BTreeMap::from([
        (
            "/apis/water.example/v1/ponds",
            list_of(&[pond("marsh", "one")], ""),
        ),
        (
            "/apis/water.example/v1/namespaces/marsh/ponds/one",
            pond("marsh", "one"),
        ),
        (
            "/apis/apps/v1/namespaces/marsh/deployments",
            children.clone(),
        ),
        ("/api/v1/namespaces/marsh/secrets", children),
    ]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        &cluster(answers),
    );
    for path in [
        "/katalog/pond/cr/one",
        "/katalog/marsh/reeds/pond/cr/marsh/one",
    ] {
        let (code, page) = get_json(&pages, path).await;
        assert_eq!(code, 200, "{path}: {page}");
        assert_eq!(page["status"]["phase"], "Filled");
        let deployments = page["children"]["Deployment"].as_array().unwrap();
        assert_eq!(deployments.len(), 1, "a copied mark counts: {page}");
        assert_eq!(
            (
                &deployments[0]["replicas"],
                &deployments[0]["readyReplicas"]
            ),
            (&json!(2), &json!(1))
        );
        assert_eq!(deployments[0]["ready"], false);
        assert_eq!(page["children"]["Secret"][0]["name"], "one");
        assert!(!page.to_string().contains("c2VjcmV0"), "{page}");
        // A kind that is not served has no children.
        assert_eq!(page["children"]["Ingress"], json!([]));
    }
    assert_eq!(get_json(&pages, "/katalog/pond/cr/delta/one").await.0, 404);
    assert_eq!(get_json(&pages, "/katalog/pond/cr/%2e%2e").await.0, 400);
}

#[tokio::test]
async fn namesakes_in_several_namespaces_are_distinguished() {
    let answers = BTreeMap::from([(
        "/apis/water.example/v1/ponds",
        list_of(&[pond("marsh", "one"), pond("delta", "one")], ""),
    )]);
    let pages = pages(
        vec![katalog("marsh", "reeds", vec![("pond", status())])],
        &cluster(answers),
    );
    let (code, page) = get_json(&pages, "/katalog/pond/cr/one").await;
    assert_eq!(code, 409);
    assert_eq!(
        page["candidates"][1],
        "/katalog/marsh/reeds/pond/cr/delta/one"
    );
}
