//! Helm charts: found in a repository, a registry or a Git repository, and rendered in memory.

mod index;
mod version;

use orkestra_charts::{
    Budget, Capabilities, Chart, Release, archive, merge_values, read_values, render,
};
use orkestra_language::api::names::{API_VERSION, OLD_API_VERSION};
use orkestra_object::value::Node;

pub(crate) use index::RepositoryIndex;

use crate::{Error, Fetched, Limits, git::Blob};

/// Selects a version among the tags of a repository. Tags have `_` for the `+` of versions.
pub(crate) fn select_tag(wanted: &str, tags: &[String]) -> Result<String, String> {
    let versions: Vec<String> = tags.iter().map(|tag| tag.replace('_', "+")).collect();
    let place = version::select(wanted, versions.iter().map(String::as_str))?;
    tags.get(place)
        .cloned()
        .ok_or_else(|| "it has no versions".to_owned())
}

/// True if a version is one tag, and no list of tags is needed.
pub(crate) fn is_exact(version: &str) -> bool {
    let core = version.trim().trim_start_matches('v');
    let core = core.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

/// A chart that was fetched.
pub(crate) enum PackedChart {
    /// A `.tgz`.
    Archive(Vec<u8>),
    /// The files of its folder.
    Files(Vec<Blob>),
}

/// A text with values.
pub(crate) enum ValuesText {
    /// A file of the chart.
    InChart(String),
    /// A text with its name.
    Text(String, String),
}

/// The result of rendering.
#[derive(Debug)]
pub(crate) struct RenderedChart {
    /// The documents of Orkestra's kinds.
    pub(crate) documents: Vec<Fetched>,
    /// The version that the chart itself says it has.
    pub(crate) version: String,
}

/// Renders a chart and keeps the documents of Orkestra's kinds. Blocks.
///
/// The release has the chart's name, in the namespace `default`. Time is the epoch and randomness is fixed: the same chart and
/// values give the same documents.
pub(crate) fn rendered(
    what: &str,
    packed: PackedChart,
    files: &[ValuesText],
    values: &Node,
    limits: &Limits,
) -> Result<RenderedChart, Error> {
    let wrong = |error: orkestra_charts::Error| Error::Chart(what.to_owned(), Box::new(error));
    let (chart, named) = load(what, packed, files)?;
    let mut merged = Node::object([]);
    for (file, text) in named {
        let read = read_values(&text).map_err(|why| {
            let why = format!("the values of {file}: {why}");
            Error::Malformed(what.to_owned(), why)
        })?;
        merge_values(&mut merged, &read);
    }
    if !matches!(values, Node::Null) {
        merge_values(&mut merged, values);
    }
    // What a source draws is merged into a document that others can read or render again: it is no secret.
    let release = Release {
        seed: None,
        ..Release::new(&chart.metadata().name)
    };
    let capabilities = Capabilities::default();
    let budget = Budget::default();
    let rendered = render(&chart, &merged, &release, &capabilities, &budget).map_err(wrong)?;
    let mut documents = Vec::new();
    let mut left = limits.documents;
    for (number, document) in rendered
        .documents
        .into_iter()
        .filter(|document| is_ours(&document.object))
        .enumerate()
    {
        if number >= limits.files || document.text.len() > left {
            let why = "it renders too many documents".to_owned();
            return Err(Error::Malformed(what.to_owned(), why));
        }
        left -= document.text.len();
        documents.push(Fetched {
            name: document.source,
            text: document.text,
        });
    }
    number_duplicates(&mut documents);
    Ok(RenderedChart {
        documents,
        version: chart.metadata().version.clone(),
    })
}

/// Loads a chart, and the texts of its values files.
fn load(
    what: &str,
    packed: PackedChart,
    files: &[ValuesText],
) -> Result<(Chart, Vec<(String, String)>), Error> {
    let limits = archive::Limits::default();
    let wrong = |error: orkestra_charts::Error| Error::Chart(what.to_owned(), Box::new(error));
    let wants_own = files
        .iter()
        .any(|values| matches!(values, ValuesText::InChart(_)));
    let mut own: Vec<(String, Vec<u8>)> = Vec::new();
    let chart = match packed {
        PackedChart::Archive(bytes) => {
            if wants_own {
                let unpacked = archive::unpack(&bytes, &limits)
                    .map_err(|why| Error::Malformed(what.to_owned(), why.to_string()))?;
                own.extend(unpacked.into_iter().filter_map(|file| {
                    let (_, path) = file.path.split_once('/')?;
                    Some((path.to_owned(), file.data))
                }));
            }
            Chart::from_archive(&bytes, &limits)
        }
        PackedChart::Files(blobs) => {
            if wants_own {
                own.extend(
                    blobs
                        .iter()
                        .map(|blob| (blob.path.clone(), blob.data.clone())),
                );
            }
            Chart::from_files(blobs.into_iter().map(|blob| (blob.path, blob.data)))
        }
    };
    let chart = chart.map_err(wrong)?;
    let mut named = Vec::new();
    for values in files {
        match values {
            ValuesText::Text(name, text) => named.push((name.clone(), text.clone())),
            ValuesText::InChart(name) => {
                let path = name.trim_start_matches("./");
                let found = own.iter().find(|(own, _)| own == path);
                let (_, data) = found.ok_or_else(|| {
                    Error::NotFound(format!("the values file {name} in the chart {what}"))
                })?;
                let text = crate::artifact::text(name, data.clone())
                    .map_err(|why| Error::Malformed(what.to_owned(), why))?;
                named.push((name.clone(), text));
            }
        }
    }
    Ok((chart, named))
}

/// True for a document of one of Orkestra's kinds.
fn is_ours(object: &Node) -> bool {
    let group = |version: &str| version.split('/').next().unwrap_or_default().to_owned();
    let version = object.get("apiVersion").and_then(Node::as_str);
    version.is_some_and(|version| {
        [API_VERSION, OLD_API_VERSION]
            .into_iter()
            .any(|ours| group(ours) == group(version))
    })
}

/// Gives the documents of one template names of their own: `pond/templates/all.yaml`, `pond/templates/all.2.yaml`.
fn number_duplicates(documents: &mut [Fetched]) {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for document in documents {
        let count = seen.entry(document.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let (stem, ending) = document
                .name
                .rsplit_once('.')
                .map_or((&*document.name, ""), |(stem, ending)| (stem, ending));
            document.name = format!("{stem}.{count}.{ending}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_numbers_are_an_exact_version() {
        for exact in ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build.1"] {
            assert!(is_exact(exact), "{exact}");
        }
        for range in [
            "",
            "*",
            "1.2",
            "^1.2.3",
            "1.2.x",
            ">=1.2.3",
            "1.2.3 - 2.0.0",
        ] {
            assert!(!is_exact(range), "{range}");
        }
        let tags = ["1.0.0", "1.1.0_build.2", "latest"].map(str::to_owned);
        assert_eq!(select_tag("^1", &tags).unwrap(), "1.1.0_build.2");
    }

    /// Renders a chart whose Katalog has `value` as a field.
    fn with_value(value: &str) -> Result<String, String> {
        let template = format!(
            "apiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata: {{name: k}}\nspec: {{value: {value:?}}}\n"
        );
        let template = template.replace("\\\"", "\"");
        let chart = [
            ("Chart.yaml", "apiVersion: v2\nname: pond\nversion: 1.0.0\n"),
            (
                "templates/_own.tpl",
                "{{ define \"own.password\" }}{{ randAlphaNum 8 }}{{ end }}",
            ),
            ("templates/all.yaml", &*template),
        ];
        let files = chart.map(|(path, text)| Blob {
            path: path.to_owned(),
            data: text.into(),
        });
        let packed = PackedChart::Files(files.into());
        let rendered = rendered("pond", packed, &[], &Node::Null, &Limits::default());
        let rendered = rendered.map_err(|error| orkestra_ground::chain(&error))?;
        Ok(rendered.documents[0].text.clone())
    }

    #[test]
    fn a_chart_that_is_a_source_draws_no_random_values() {
        for call in [
            "randAlphaNum 32",
            "randAlpha 8",
            "randNumeric 8",
            "randAscii 8",
            "randBytes 16 | b64enc",
            "uuidv4",
            "randInt 0 99",
            "shuffle `abcdef`",
            "genPrivateKey `ed25519`",
            "(genCA `ca` 1).Key",
            "(genSelfSignedCert `c` nil nil 1).Cert",
            "include `own.password` .",
            "tpl `{{ randAlphaNum 8 }}` .",
            "`x` | repeat 2 | print (uuidv4)",
        ] {
            let error = with_value(&format!("{{{{ {call} }}}}")).unwrap_err();
            assert!(
                error.contains("random values are not available"),
                "{call}: {error}"
            );
        }
        for call in [
            "derivePassword 1 `long` `a` `b` `c`",
            "bcrypt `a`",
            "htpasswd `a` `b`",
            "genCAWithKey `a` 1 `k`",
        ] {
            let error = with_value(&format!("{{{{ {call} }}}}")).unwrap_err();
            assert!(error.contains("is not supported"), "{call}: {error}");
        }
        assert!(
            with_value("{{ sha256sum `a` }}")
                .unwrap()
                .contains("ca978112")
        );
        assert!(with_value("{{ if false }}{{ randAlphaNum 8 }}{{ end }}x").is_ok());
    }

    #[test]
    fn documents_of_other_kinds_are_left_out_and_values_win_in_order() {
        let chart = [
            ("Chart.yaml", "apiVersion: v2\nname: pond\nversion: 1.0.0\n"),
            ("values.yaml", "depth: 1\nfish: carp\nbank: reed\n"),
            ("deep.yaml", "depth: 7\nfish: eel\n"),
            (
                "templates/all.yaml",
                "{{ range list 1 2 }}---\napiVersion: orkestra.orkspace.io/v1\nkind: Katalog\nmetadata:\n  name: k{{ . }}\nspec: {depth: {{ $.Values.depth }}, fish: {{ $.Values.fish }}, bank: {{ $.Values.bank }}}\n{{ end }}",
            ),
            ("templates/other.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
        ];
        let files = chart.map(|(path, text)| Blob {
            path: path.to_owned(),
            data: text.into(),
        });
        let values = Node::object([("fish", Node::from("pike"))]);
        let rendered = rendered(
            "pond",
            PackedChart::Files(files.into()),
            &[ValuesText::InChart("./deep.yaml".to_owned())],
            &values,
            &Limits::default(),
        )
        .unwrap();
        let names: Vec<&str> = rendered.documents.iter().map(|one| &*one.name).collect();
        assert_eq!(
            names,
            ["pond/templates/all.yaml", "pond/templates/all.2.yaml"]
        );
        let text = &rendered.documents[0].text;
        assert!(
            text.contains("{depth: 7, fish: pike, bank: reed}"),
            "{text}"
        );
        assert_eq!(rendered.version, "1.0.0");
    }
}
