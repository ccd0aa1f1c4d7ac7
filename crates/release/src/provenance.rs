//! The provenance of an artifact.
//!
//! Source: in-toto Statement v1; SLSA provenance v1.

use orkestra_registry::Digest;
use serde_json::{Value, json};

use crate::Moment;

/// The media type of a statement.
pub const MEDIA_TYPE: &str = "application/vnd.in-toto+json";
/// The type of the predicate.
pub const PREDICATE: &str = "https://slsa.dev/provenance/v1";
/// The type of a build: how `make release` builds, as `docs/operate/install.md` describes it.
const BUILD_TYPE: &str = "urn:orkestra:make-release";

/// What a build used.
#[derive(Clone, Debug)]
pub struct Build {
    /// The commit.
    pub commit: String,
    /// The compiler, as `rustc --version` prints it.
    pub compiler: String,
    /// The target.
    pub target: String,
    /// The address of the repository, if it has one.
    pub source: Option<String>,
    /// The identity of the machine or service that built, as a URI.
    pub builder: String,
    /// The text of `Cargo.lock`.
    pub lock: Vec<u8>,
    /// CA roots of the image.
    pub roots: Vec<u8>,
    /// The time in the artifacts.
    pub moment: Moment,
}

/// Returns the statement about artifacts, by name and digest.
pub fn statement(subjects: &[(String, Digest)], build: &Build) -> Value {
    let mut source = json!({ "name": "source", "digest": { "gitCommit": build.commit } });
    if let Some(repository) = &build.source {
        source["uri"] = format!("git+{repository}@{}", build.commit).into();
    }
    let subjects: Vec<Value> = subjects
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": digest.hex() } }))
        .collect();
    let file = |name: &str, content: &[u8]| json!({ "name": name, "digest": { "sha256": Digest::of(content).hex() } });
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "target": build.target, "sourceDateEpoch": build.moment.0 },
                "internalParameters": { "compiler": build.compiler },
                "resolvedDependencies": [
                    source,
                    file("Cargo.lock", &build.lock),
                    file("ca-certificates.crt", &build.roots),
                ],
            },
            "runDetails": { "builder": { "id": build.builder } },
        },
    })
}
