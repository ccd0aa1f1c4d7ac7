//! The schemas of Kubernetes' own kinds, shipped with the program.
//!
//! The file is one line of JSON and then, one behind the other, deflated texts:
//!
//! ```text
//!  {"kubernetes": "v1.34.4",
//!   "kinds": [[group, version, kind, plural, namespaced, definition], …],
//!   "packages": [[package, bytes], …]}
//!  package: lines of `Word {schema}`, sorted by word; `$ref` is `package.Word`
//! ```
//!
//! A package is inflated when a definition of it is asked for, and a definition is parsed when it is; all of it goes with
//! the [`BuiltIn`].

use std::{cell::OnceCell, io::Read as _};

use flate2::read::DeflateDecoder;
use serde::Deserialize;

use super::Schema;
use crate::value::Node;

/// Written by `make kube-schemas`.
static FILE: &[u8] = include_bytes!("kubernetes.bin");

/// The most bytes of one package: far above any there is.
const MOST_BYTES: u64 = 16 << 20;

/// The schemas of Kubernetes' own kinds, as one version of the API server has them.
#[derive(Default)]
pub struct BuiltIn {
    header: Header,
    packages: Vec<Package>,
}

/// A kind that the API server stores, in one version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BuiltInKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// REST plural.
    pub plural: String,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    definition: String,
}

#[derive(Default, Deserialize)]
struct Header {
    kubernetes: String,
    kinds: Vec<BuiltInKind>,
    packages: Vec<(String, usize)>,
}

struct Package {
    name: String,
    bytes: &'static [u8],
    definitions: OnceCell<Vec<Definition>>,
}

struct Definition {
    word: String,
    json: String,
    schema: OnceCell<Node>,
}

impl BuiltIn {
    /// The shipped ones. A file that cannot be read, which a test excludes, is one that knows nothing.
    pub fn new() -> Self {
        Self::read(FILE).unwrap_or_default()
    }

    fn read(file: &'static [u8]) -> Option<Self> {
        let end = file.iter().position(|byte| *byte == b'\n')?;
        let header: Header = serde_json::from_slice(&file[..end]).ok()?;
        let mut rest = &file[end + 1..];
        let mut packages = Vec::new();
        for (name, length) in &header.packages {
            let (bytes, behind) = rest.split_at_checked(*length)?;
            rest = behind;
            packages.push(Package {
                name: name.clone(),
                bytes,
                definitions: OnceCell::new(),
            });
        }
        Some(Self { header, packages })
    }

    /// The version of Kubernetes that they are of, such as `v1.34.4`.
    pub fn kubernetes(&self) -> &str {
        &self.header.kubernetes
    }

    /// The kinds that are known, in each of their versions.
    pub fn kinds(&self) -> &[BuiltInKind] {
        &self.header.kinds
    }

    /// The schema of whole objects of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Schema<'_>> {
        let is = |known: &&BuiltInKind| {
            known.group == group && known.version == version && known.kind == kind
        };
        let known = self.kinds().iter().find(is)?;
        Some(Schema::new(self.definition(&known.definition)?, self))
    }

    /// What every object has under `metadata`.
    pub(crate) fn object_meta(&self) -> Option<Schema<'_>> {
        let meta = self.definition("apimachinery.pkg.apis.meta.v1.ObjectMeta")?;
        Some(Schema::new(meta, self))
    }

    /// The definition of that name.
    pub(super) fn definition(&self, name: &str) -> Option<&Node> {
        let (package, word) = name.rsplit_once('.')?;
        let package = self.packages.iter().find(|known| known.name == package)?;
        let definitions = package.definitions.get_or_init(|| package.inflate());
        let at = definitions
            .binary_search_by(|known| known.word.as_str().cmp(word))
            .ok()?;
        let definition = &definitions[at];
        // One that cannot be read says nothing.
        let parse = || serde_json::from_str(&definition.json).unwrap_or_default();
        Some(definition.schema.get_or_init(parse))
    }
}

impl Package {
    fn inflate(&self) -> Vec<Definition> {
        let mut text = String::new();
        let mut inflated = DeflateDecoder::new(self.bytes).take(MOST_BYTES);
        if inflated.read_to_string(&mut text).is_err() {
            return Vec::new();
        }
        let definition = |line: &str| {
            let (word, json) = line.split_once(' ')?;
            Some(Definition {
                word: word.to_owned(),
                json: json.to_owned(),
                schema: OnceCell::new(),
            })
        };
        text.lines().filter_map(definition).collect()
    }
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BuiltIn").field(&self.kubernetes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Below;

    #[test]
    fn the_shipped_file_is_of_the_kubernetes_that_the_tests_run_on() {
        let built = include_str!("../../../../hack/control-plane/kubernetes/go.mod");
        let version = BuiltIn::new().kubernetes().to_owned();
        assert_eq!(version, "v1.34.4");
        let line = format!("k8s.io/kubernetes {version}");
        assert!(built.contains(&line), "stale: run `make kube-schemas`");
        assert!(FILE.len() < 150 * 1024, "{} bytes", FILE.len());
    }

    #[test]
    fn every_definition_can_be_read_and_every_reference_leads_somewhere() {
        fn follow(schema: &Node, built_in: &BuiltIn, visit: &mut dyn FnMut(&str)) {
            if let Some(name) = schema.get("$ref").and_then(Node::as_str) {
                assert!(built_in.definition(name).is_some(), "{name}");
                visit(name);
            }
            for below in ["items", "additionalProperties"] {
                if let Some(below) = schema.get(below) {
                    follow(below, built_in, visit);
                }
            }
            let properties = schema.get("properties").and_then(Node::as_map);
            for (_, below) in properties.into_iter().flat_map(crate::value::Map::iter) {
                follow(below, built_in, visit);
            }
        }
        let built_in = BuiltIn::new();
        assert!(built_in.kinds().len() > 50);
        let mut references = 0;
        for kind in built_in.kinds() {
            let schema = built_in
                .kind(&kind.group, &kind.version, &kind.kind)
                .unwrap();
            assert!(
                matches!(schema.field("metadata"), Below::Schema(_)),
                "{kind:?}"
            );
        }
        for package in &built_in.packages {
            let definitions = package.definitions.get_or_init(|| package.inflate());
            assert!(definitions.is_sorted_by(|a, b| a.word < b.word));
            assert!(!definitions.is_empty(), "{}", package.name);
            for definition in definitions {
                let name = format!("{}.{}", package.name, definition.word);
                let schema = built_in.definition(&name).unwrap();
                assert_ne!(*schema, Node::Null, "{name}");
                follow(schema, &built_in, &mut |_| references += 1);
            }
        }
        assert!(references > 500, "{references}");
    }

    #[test]
    fn a_damaged_file_knows_nothing() {
        for file in [
            &b""[..],
            b"{}\n",
            b"{\"kubernetes\":\"v1\",\"kinds\":[],\"packages\":[[\"a\",9]]}\nxx",
        ] {
            assert!(BuiltIn::read(file).is_none());
        }
        let packed = b"{\"kubernetes\":\"v1\",\"kinds\":[],\"packages\":[[\"a\",2]]}\n\xff\xff";
        assert!(BuiltIn::read(packed).unwrap().definition("a.B").is_none());
    }
}
