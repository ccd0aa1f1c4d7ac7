//! Problems of custom resources and of their rendering, and the reported positions.

use orkestra_language::diagnostics::Code;

use super::{super::render, Desk, KATALOG, pond};

#[tokio::test]
async fn what_nobody_operates_is_an_error_that_says_what_is() {
    let desk = Desk::new("");
    for (cr, message, hint) in [
        (
            pond("").replace("Pond", "Puddle"),
            "no Katalog operates Puddle.water.example",
            "operated kinds: Pond.water.example",
        ),
        (
            pond("").replace("/v1", "/v2"),
            "no Katalog operates version `v2` of Pond.water.example",
            "operated versions: `v1`",
        ),
        (
            pond("").replace("Pond", "Lake"),
            "the entry `lake` that operates Lake.water.example is disabled",
            "write `enabled: true` to render it",
        ),
    ] {
        desk.write("cr.yaml", &cr);
        let rendered = render(&desk.request()).await;
        let problem = &rendered.problems.0[0];
        assert_eq!(problem.code, Code::NotOperated);
        assert_eq!(
            (&*problem.message, problem.hint.as_deref()),
            (message, Some(hint))
        );
        assert!(problem.file.is_some() && problem.line.is_some());
        assert!(rendered.passes.is_empty());
    }
    for cr in [
        "",
        "kind: Pond\n",
        "apiVersion: water.example/v1\nkind: Pond\nmetadata: {}\n",
        "7\n",
    ] {
        desk.write("cr.yaml", cr);
        assert!(
            render(&desk.request()).await.problems.has_errors(),
            "{cr:?}"
        );
    }
}

#[tokio::test]
async fn what_is_being_deleted_makes_nothing() {
    let desk = Desk::new(&pond(", deletionTimestamp: \"2025-01-01T00:00:00Z\""));
    let rendered = render(&desk.request()).await;
    assert_eq!(rendered.problems.0[0].code, Code::CannotRender);
    assert!(rendered.passes.is_empty());
}

#[tokio::test]
async fn a_failure_is_reported_at_its_field_in_the_katalog() {
    // The definition accepts the text of the field, but it is not a valid name.
    let desk = Desk::new(&pond("").replace("spec: {}", "spec: { fish: North Pond }"));
    let katalog = KATALOG.replace(
        "name: \"{{ .metadata.name }}\"\n",
        "name: \"{{ .spec.fish }}\"\n",
    );
    desk.write("k.yaml", &katalog);
    let rendered = render(&desk.request()).await;
    let problem = &rendered.problems.0[0];
    assert_eq!(problem.code, Code::CannotRender, "{problem}");
    assert!(
        problem.message.contains("(for Pond default/north)"),
        "{problem}"
    );
    assert!(problem.file.as_ref().unwrap().ends_with("k.yaml"));
    let line = katalog
        .lines()
        .nth(problem.line.unwrap() as usize - 1)
        .unwrap();
    assert!(line.contains("name: \"{{ .spec.fish }}\""), "{problem}");
}

#[tokio::test]
async fn a_failure_in_a_motif_is_reported_there() {
    let desk = Desk::new(&pond("").replace("north", "North"));
    let katalog = KATALOG.replace(
        "plural: ponds }\n",
        "plural: ponds }\n      imports: [{ motif: motif.yaml }]\n",
    );
    desk.write("k.yaml", &katalog);
    desk.write(
        "motif.yaml",
        "apiVersion: orkestra.orkspace.io/v1\nkind: Motif\nmetadata: { name: m }\nresources:\n  configMaps:\n    - name: \"{{ .metadata.name }}-m\"\n",
    );
    let rendered = render(&desk.request()).await;
    let places: Vec<_> = rendered
        .problems
        .iter()
        .map(|problem| {
            (
                problem.file.as_ref().unwrap().rsplit('/').next().unwrap(),
                problem.line,
            )
        })
        .collect();
    assert!(
        places.contains(&("motif.yaml", Some(6))),
        "{}",
        rendered.problems
    );
}

#[tokio::test]
async fn the_samples_of_codes_of_custom_resources_are_correct() {
    for code in [
        Code::NotOperated,
        Code::CannotRender,
        Code::RefusedResource,
        Code::RuleNotChecked,
    ] {
        let explained = code.explain();
        for (sample, expected) in [(explained.wrong, vec![code]), (explained.right, vec![])] {
            let desk = Desk::new("");
            // The custom resource is the last document, behind the Katalog and definitions.
            let (katalog, cr) = sample.rsplit_once("---\n").unwrap();
            let mut request = desk.request();
            request.katalogs = vec![desk.write("k.yaml", katalog)];
            desk.write("cr.yaml", cr);
            let rendered = render(&request).await;
            let codes: Vec<_> = rendered
                .problems
                .iter()
                .map(|problem| problem.code)
                .collect();
            assert_eq!(codes, expected, "{}", rendered.problems);
        }
    }
}
