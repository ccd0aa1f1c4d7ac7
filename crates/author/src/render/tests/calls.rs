//! Rendering with external calls: their responses come from a file, or are missing.

use super::{
    super::{RenderRequest, render, to_yaml},
    ALL, Desk, KATALOG, objects, pond,
};

#[tokio::test]
async fn calls_have_the_answers_that_are_given_and_none_is_made() {
    let desk = Desk::new(&pond(""));
    let called = KATALOG
        .replace("        onReconcile:\n", "        onReconcile:\n          external: [{ name: flags, url: \"https://flags.example/{{ .metadata.name }}\", expectedStatus: 200 }]\n")
        .replace("fish: \"{{ .spec.fish }}\", was", "fish: \"{{ .external.flags.json.fish }}\", was");
    desk.write("k.yaml", &called);
    let given = async |text: &str| {
        let path = desk.write("calls.yaml", text);
        let request = RenderRequest {
            calls: Some(path),
            ..desk.request()
        };
        render(&request).await
    };
    let rendered = given("flags: { body: { fish: pike } }").await;
    let objects = objects(&rendered);
    let map = objects.iter().find(|object| object["kind"] == "ConfigMap");
    assert_eq!(map.unwrap()["data"]["fish"], "pike");
    for (text, reported) in [
        ("flags: { status: 404 }", "the response has status 404"),
        ("flags: { error: it is down }", "failed: it is down"),
        ("flags: { code: 200 }", "unknown field `code`"),
        (
            "flagz: { status: 200 }",
            "no operator makes a call or has a hook `flagz`",
        ),
        ("[flags]", "a map from names of calls and hooks"),
    ] {
        let problems = given(text).await.problems.to_string();
        assert!(problems.contains(reported), "{problems}");
    }
}

#[tokio::test]
async fn a_call_without_an_answer_hides_only_what_depends_on_it() {
    let desk = Desk::new(&pond("").replace("spec: {}", "spec: { deep: true }"));
    let called = KATALOG
        .replace("        onReconcile:\n", "        onReconcile:\n          external:\n            - { name: flags, url: \"https://flags.example/{{ .metadata.name }}\", expectedStatus: 200 }\n            - { name: next, url: \"https://flags.example/{{ .external.flags.body }}\" }\n")
        .replace("fish: \"{{ .spec.fish }}\", was", "fish: \"{{ .external.flags.json.fish }}\", was")
        .replace("data: { key: \"{{ .metadata.name }}\" }", "data: { key: \"{{ .external.next.body }}\" }");
    desk.write("k.yaml", &called);
    let rendered = render(&desk.request()).await;
    let [secret, map] = &rendered.problems.0[..] else {
        panic!("{}", rendered.problems)
    };
    let hint = Some("put the response into a file and pass it with `--external`");
    for (problem, call) in [(map, "flags"), (secret, "next")] {
        let unread = format!("`.external.{call}` cannot be read");
        assert!(problem.message.contains(&unread), "{problem}");
        assert_eq!(problem.hint.as_deref(), hint);
    }
    let yaml = to_yaml(&rendered.passes, ALL).unwrap();
    for at in ["onReconcile.configMaps[0]", "onCreate.secrets[0]"] {
        let left_out = format!("operatorBox.{at}: `.external.");
        assert!(yaml.contains(&left_out), "{yaml}");
    }
    assert!(yaml.contains("name: north-deep\n"), "{yaml}");
    assert!(!yaml.contains("name: north-key\n"), "{yaml}");
}
