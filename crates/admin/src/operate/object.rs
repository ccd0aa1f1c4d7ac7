//! Objects that a command names: `KIND/NAME`.

use std::str::FromStr;

use kube::discovery::{Discovery, Scope as KubeScope};
use orkestra_cluster::requests::Served;
use orkestra_language::diagnostics::did_you_mean;
use orkestra_plan::{GroupKind, ObjectKey};

use super::Error;

/// An object by its kind and name: `katalog/ponds`, `pond/north`, `ponds.water.example/north`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The kind, its plural or its singular, with or without `.GROUP`; in any case.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// Parses `KIND/NAME`.
impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self {
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err("expected KIND/NAME, such as katalog/ponds".to_owned()),
        }
    }
}

/// True if the text names the kind, with or without its group.
fn is_named(served: &Served, text: &str) -> bool {
    let Served {
        group,
        kind,
        plural,
        ..
    } = served;
    let (word, of) = match text.split_once('.') {
        Some((word, of)) => (word, Some(of)),
        None => (text, None),
    };
    let names = [kind.to_lowercase(), plural.to_lowercase()];
    names.contains(&word.to_lowercase()) && of.is_none_or(|of| of.eq_ignore_ascii_case(group))
}

/// Returns `PLURAL.GROUP`.
fn title(served: &Served) -> String {
    match &*served.group {
        "" => served.plural.to_string(),
        group => format!("{}.{group}", served.plural),
    }
}

/// Finds the object's kind among those that the API server serves. The namespace counts for namespaced kinds.
///
/// # Errors
/// [`Error::UnknownKind`] and [`Error::AmbiguousKind`]; [`Error::Discovery`] if the API server does not answer.
pub async fn find(
    client: kube::Client,
    object: &ObjectName,
    namespace: &str,
) -> Result<(Served, ObjectKey), Error> {
    let discovery = Discovery::new(client).run_aggregated().await?;
    let all = discovery.groups().flat_map(|group| {
        let resources = group.recommended_resources().into_iter();
        resources.map(|(resource, capabilities)| {
            let namespaced = capabilities.scope == KubeScope::Namespaced;
            let kind = GroupKind {
                group: resource.group.as_str().into(),
                kind: resource.kind.as_str().into(),
            };
            Served::of(&kind, &resource.version, &resource.plural, namespaced)
        })
    });
    let served = choose(all.collect(), &object.kind)?;
    let key = ObjectKey {
        namespace: served.namespaced.then(|| namespace.into()),
        name: object.name.as_str().into(),
    };
    Ok((served, key))
}

/// Returns the only kind that the text names.
fn choose(all: Vec<Served>, text: &str) -> Result<Served, Error> {
    let (mut named, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| is_named(one, text));
    match named.len() {
        1 => Ok(named.remove(0)),
        0 => {
            let near = did_you_mean(text, others.iter().map(|one| &*one.plural));
            Err(Error::UnknownKind {
                kind: text.to_owned(),
                near,
            })
        }
        _ => Err(Error::AmbiguousKind {
            kind: text.to_owned(),
            candidates: named.iter().map(title).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(group: &str, kind: &str, plural: &str) -> Served {
        let named = GroupKind {
            group: group.into(),
            kind: kind.into(),
        };
        Served::of(&named, "v1", plural, true)
    }

    #[test]
    fn a_kind_is_named_in_every_form_and_an_ambiguous_one_is_refused() {
        let all = || {
            vec![
                known("water.example", "Pond", "ponds"),
                known("garden.example", "Pond", "ponds"),
                known("", "ConfigMap", "configmaps"),
            ]
        };
        for text in [
            "ponds.water.example",
            "pond.water.example",
            "Pond.Water.Example",
        ] {
            let found = choose(all(), text).unwrap();
            assert_eq!(title(&found), "ponds.water.example", "{text}");
        }
        assert_eq!(title(&choose(all(), "configMap").unwrap()), "configmaps");
        let error = choose(all(), "pond").unwrap_err().to_string();
        assert!(
            error.contains("ponds.water.example") && error.contains("ponds.garden.example"),
            "{error}"
        );
        let error = choose(all(), "configmap.apps").unwrap_err().to_string();
        assert!(error.contains("configmap.apps"), "{error}");
    }

    #[test]
    fn an_object_is_a_kind_and_a_name() {
        let object: ObjectName = "pond/north".parse().unwrap();
        assert_eq!((&*object.kind, &*object.name), ("pond", "north"));
        for wrong in ["pond", "pond/", "/north", "a/b/c", ""] {
            assert!(wrong.parse::<ObjectName>().is_err(), "{wrong}");
        }
    }
}
