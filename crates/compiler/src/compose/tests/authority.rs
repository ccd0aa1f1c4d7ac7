//! Sources that a fetched document may not name.

use std::sync::Arc;

use super::*;

/// The registry that brings the fetched document.
const OUTER: &str = "oci://r.example/outer:v1";

/// Merges a Komposer with one source, whose Katalog has the sources `inner`; the requests that remain, or the problems.
fn merged_at(base: Base, outer: &str, inner: &str) -> Result<Vec<String>, Vec<String>> {
    let text = komposer(outer, "");
    let stream = parse_stream(KOMPOSER, &text);
    let (document, _) = read_komposer(&stream.sources[0]).unwrap();
    let composition = Composition::of_komposer(&document, base);
    let katalog = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{ name: outer }}\nsources:\n{inner}\nspec: {{ crds: {{}} }}\n"
    );
    let documents = vec![Fetched {
        name: "katalog.yaml".to_owned(),
        text: katalog,
    }];
    let artifacts: Artifacts = [(OUTER.to_owned(), Arc::new(artifact(OUTER, documents)))].into();
    match merge(&composition, &artifacts) {
        Ok(Merged::Need(requests)) => Ok(requests.into_iter().map(|one| one.id).collect()),
        Ok(other) => panic!("{inner}: {other:?}"),
        Err(problems) => {
            for problem in &problems {
                let file = problem.file.as_deref().unwrap_or_default();
                assert!(file.ends_with("/katalog.yaml"), "{problem}");
                assert!(
                    problem.line.is_some() && problem.hint.is_some(),
                    "{problem}"
                );
            }
            Err(problems.iter().map(|one| one.message.clone()).collect())
        }
    }
}

fn on_disk(inner: &str) -> Result<Vec<String>, Vec<String>> {
    let outer = "  registry: [{ url: 'r.example/outer:v1' }]";
    merged_at(Base::File(KOMPOSER.to_owned()), outer, inner)
}

fn in_cluster(more: &str, inner: &str) -> Result<Vec<String>, Vec<String>> {
    let outer = format!("  registry: [{{ url: 'r.example/outer:v1' }}]\n{more}");
    let namespace = "shop".to_owned();
    merged_at(Base::Cluster { namespace }, &outer, inner)
}

#[track_caller]
fn refused(found: Result<Vec<String>, Vec<String>>, why: &str) {
    let problems = found.expect_err("it is refused");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let message = &problems[0];
    assert!(
        message.starts_with("a fetched document cannot"),
        "{message}"
    );
    assert!(message.contains(why), "{message}");
}

#[test]
fn a_fetched_document_uses_no_secrets_and_no_variables() {
    let keyless = "keyless: { issuer: i, subject: s, secretRef: { name: mine } }";
    for (inner, why) in [
        (
            "  registry: [{ url: 'r.example/a:v1', auth: { secretRef: { name: mine } } }]",
            "Secrets",
        ),
        (
            "  registry: [{ url: 'r.example/a:v1', verify: { secretRef: { name: mine } } }]",
            "Secrets",
        ),
        (
            "  git: [{ url: 'https://r.example/a', auth: { secretRef: { name: mine } } }]",
            "Secrets",
        ),
        (
            "  files: [{ url: 'https://r.example/a', auth: { fromEnv: MINE } }]",
            "variables",
        ),
        (
            "  helm: [{ repo: 'https://r.example/a', chart: c, auth: { fromEnv: MINE } }]",
            "variables",
        ),
        ("  files: ['https://r.example/$MINE']", "variables"),
        ("  files: ['$MINE']", "variables"),
        (
            "  git: [{ url: 'https://r.example/${MINE}/a' }]",
            "variables",
        ),
        (
            "  registry: [{ url: 'oci://$ORK_REGISTRY$MINE/a:v1' }]",
            "variables",
        ),
        (
            "  registry: [{ url: 'oci://$ORK_REGISTRY_TOKEN/a:v1' }]",
            "variables",
        ),
        (
            "  registry: [{ url: '$ORK_REGISTRY/$MINE/a:v1' }]",
            "variables",
        ),
        (
            "  helm: [{ repo: 'https://r.example/a', chart: c, valueFiles: ['https://r.example/$MINE'] }]",
            "variables",
        ),
    ] {
        refused(on_disk(inner), why);
        refused(in_cluster("", inner), why);
    }
    let inner = format!("  registry: [{{ url: 'r.example/a:v1', verify: {{ {keyless} }} }}]");
    refused(on_disk(&inner), "Secrets");
}

// Over 60 lines: a table of places and the message of each.
#[test]
fn a_fetched_document_names_no_files_and_no_addresses_of_this_machine() {
    for url in [
        "file:///home/me/repo",
        "FILE:///home/me/repo",
        "file://localhost/home/me/repo",
        "ftp://r.example/a",
    ] {
        refused(on_disk(&format!("  git: [{{ url: '{url}' }}]")), "expected");
        refused(
            on_disk(&format!("  helm: [{{ repo: '{url}', chart: c }}]")),
            "expected",
        );
        refused(on_disk(&format!("  files: ['{url}']")), "expected");
    }
    refused(on_disk("  git: [{ url: '/home/me/repo' }]"), "expected");
    refused(
        on_disk("  helm: [{ repo: '/home/me/chart', chart: c }]"),
        "expected",
    );
    for host in [
        "localhost",
        "LocalHost",
        "localhost.",
        "a.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "localhost:8080",
        "localhost.localdomain",
    ] {
        refused(
            on_disk(&format!("  files: ['https://{host}/k.yaml']")),
            "this machine",
        );
        refused(
            on_disk(&format!("  git: [{{ url: 'https://{host}/k' }}]")),
            "this machine",
        );
        refused(
            on_disk(&format!("  helm: [{{ repo: 'https://{host}', chart: c }}]")),
            "this machine",
        );
        let values = format!("valueFiles: ['https://{host}/v']");
        refused(
            on_disk(&format!(
                "  helm: [{{ repo: 'https://r.example', chart: c, {values} }}]"
            )),
            "this machine",
        );
    }
    for url in [
        "localhost:5000/a:v1",
        "oci://localhost/a:v1",
        "oci://127.0.0.1:5000/a:v1",
    ] {
        refused(
            on_disk(&format!("  registry: [{{ url: '{url}' }}]")),
            "this machine",
        );
        let repo = url.trim_end_matches(":v1");
        let why = if repo.contains("://") {
            "this machine"
        } else {
            "expected"
        };
        refused(
            on_disk(&format!("  helm: [{{ repo: '{repo}', chart: c }}]")),
            why,
        );
    }
}

#[test]
fn a_fetched_document_names_only_the_objects_and_hosts_that_your_document_names_in_a_cluster() {
    for inner in [
        "  configMaps: [{ name: mine }]",
        "  configMaps: [{ name: mine, key: a.yaml }]",
        "  katalogs: [{ name: mine }]",
        "  katalogs: [{ labelSelector: { matchLabels: { a: b } } }]",
    ] {
        refused(in_cluster("", inner), "objects of the cluster");
    }
    let mine = "  configMaps: [{ name: mine, key: b.yaml }]";
    let named = in_cluster(mine, "  configMaps: [{ name: mine, key: a.yaml }]").unwrap();
    assert_eq!(named, ["configmap/mine/a.yaml", "configmap/mine/b.yaml"]);
    for inner in [
        "  registry: [{ url: 'other.example/a:v1' }]",
        "  registry: [{ url: 'r.example:8443/a:v1' }]",
        "  files: ['https://other.example/a']",
        "  files: ['https://other.example?r.example/a']",
        "  git: [{ url: 'https://xr.example/a' }]",
        "  helm: [{ repo: 'https://r.example.other.example/a', chart: c }]",
    ] {
        refused(in_cluster("", inner), "further host");
    }
    let inner =
        "  registry: [{ url: 'r.example/a:v1' }, { url: '$ORK_REGISTRY/b:v1' }, { url: 'c@v1' }]";
    assert_eq!(in_cluster("", inner).unwrap().len(), 3);
    let more = "  files: ['https://other.example/mine.yaml']";
    let named = in_cluster(more, "  git: [{ url: 'https://other.example:443/a' }]").unwrap();
    assert_eq!(named.len(), 2, "{named:?}");
}

#[test]
fn documents_on_disk_have_the_authority_of_their_user() {
    let inner = "  registry: [{ url: 'localhost:5000/a:v1', auth: { fromEnv: MINE } }]\n  git: [{ url: 'file:///repo' }]";
    let text = komposer("  files: [inner.yaml]", "");
    let (composition, _) = composition(&text).unwrap();
    let artifacts: Artifacts = [disk(
        "inner.yaml",
        &komposer(inner, "").replace("waters", "inner"),
    )]
    .into();
    let Ok(Merged::Need(requests)) = merge(&composition, &artifacts) else {
        panic!("it is refused");
    };
    assert_eq!(requests.len(), 2);
    let remote = "  files: ['https://r.example/a', 'https://other.example/b']";
    assert_eq!(on_disk(remote).unwrap().len(), 2);
}

#[test]
fn charts_of_setup_in_a_fetched_document_are_of_servers() {
    let resolved = |helm: &str| {
        let katalog = POND.replace(
            "      operatorBox:",
            &format!("      setup: {{ helm: [{helm}] }}\n      operatorBox:"),
        );
        let file = |name: &str, text: &str| Fetched {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let documents = vec![
            file("katalog.yaml", &katalog),
            file("values/a.yaml", "a: 1\n"),
        ];
        let artifacts: Artifacts =
            [(OUTER.to_owned(), Arc::new(artifact(OUTER, documents)))].into();
        let text = komposer("  registry: [{ url: 'r.example/outer:v1' }]", "");
        let found = merged(&text, &artifacts);
        found.map_err(|problems| {
            problems
                .iter()
                .map(|one| one.message.clone())
                .collect::<Vec<_>>()
        })
    };
    for chart in ["./chart", "/home/me/chart", "chart", "../chart.tgz"] {
        let problems = resolved(&format!("{{ chart: '{chart}' }}")).unwrap_err();
        assert!(problems[0].contains("a chart on disk"), "{problems:?}");
    }
    for chart in [
        "chart: c, repo: 'https://localhost:8080'",
        "chart: 'oci://127.0.0.1/c'",
    ] {
        let problems = resolved(&format!("{{ {chart} }}")).unwrap_err();
        assert!(problems[0].contains("this machine"), "{problems:?}");
    }
    let remote = "chart: c, repo: 'https://charts.example'";
    for file in [
        "/etc/passwd",
        "../../../etc/passwd",
        "file:///etc/passwd",
        "b.yaml",
    ] {
        let problems = resolved(&format!("{{ {remote}, valueFiles: ['{file}'] }}")).unwrap_err();
        assert!(problems[0].contains("there is no file"), "{problems:?}");
    }
    let found = resolved(&format!("{{ {remote}, valueFiles: [values/a.yaml] }}")).unwrap();
    let Merged::Done(found, _) = found else {
        panic!("{found:?}")
    };
    let at = FieldPath::parse("spec.crds.pond.setup.helm[0].valueFiles[0]");
    let (_, text) = found.manifest(&at, "values/a.yaml").unwrap().unwrap();
    assert_eq!(text, "a: 1\n");
}
