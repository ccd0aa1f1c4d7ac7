//! The image of an installation.

use super::{find, image_values, json, render, request};

#[test]
fn an_image_is_named_by_tag_or_digest_and_without_one_nothing_is_rendered() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    for (text, image) in [
        (
            "registry.example/orkestra",
            "registry.example/orkestra:0.1.0".to_owned(),
        ),
        (
            "registry.example:5000/a/b:1.2",
            "registry.example:5000/a/b:1.2".to_owned(),
        ),
        (
            &*format!("registry.example/orkestra@{digest}"),
            format!("registry.example/orkestra@{digest}"),
        ),
        (
            &*format!("registry.example/orkestra:1@{digest}"),
            format!("registry.example/orkestra@{digest}"),
        ),
    ] {
        let mut request = request("");
        request.values.push(image_values(text).unwrap());
        let manifests = render(&request).unwrap();
        let deployment = json(find(&manifests, "Deployment", "orkestra"));
        let found = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(
            *found,
            image.replace("0.1.0", orkestra_ground::VERSION),
            "{text}"
        );
    }
    for text in [
        "",
        ":1",
        "https://registry.example/a",
        "a b",
        "a@sha256:1",
        "a:",
    ] {
        assert!(image_values(text).is_err(), "{text}");
    }
    let mut request = request("");
    request.values.remove(0);
    let error = format!("{}", render(&request).unwrap_err());
    assert!(
        error.contains("make image-push REF=") && error.contains("--image"),
        "{error}"
    );
}
