//! Roots of other template languages, and their replacements.

/// Root names elsewhere, and their replacement here.
const ROOTS: &[(&[&str], &str)] = &[
    // Helm.
    (
        &["Values"],
        "values come from the custom resource: read `.spec`, with `default` for what may be missing",
    ),
    (
        &["Release"],
        "an instance is a custom resource: read `.metadata.name` and `.metadata.namespace`",
    ),
    (
        &["Chart", "Template", "Subcharts"],
        "there is no chart: write the text out",
    ),
    (
        &["Capabilities"],
        "templates cannot read the version of the cluster: put values that depend on it into the custom resource's `.spec`",
    ),
    (
        &["Files"],
        "templates cannot read files: write the text under `data` of an entry in `configMaps`",
    ),
    // kro.
    (
        &["schema"],
        "the custom resource itself is read as `.metadata`, `.spec` and `.status`",
    ),
    // Metacontroller, Crossplane's functions.
    (
        &["parent", "object", "observed", "composite", "xr", "context"],
        "the custom resource itself is read as `.metadata`, `.spec` and `.status`, its children as `.children`",
    ),
    (
        &["desired", "resources"],
        "children are read as they are in the cluster: `.children`",
    ),
];

/// Returns the replacement for the root `name` of another template language.
pub(crate) fn instead(name: &str) -> Option<&'static str> {
    let found = ROOTS.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, instead)| *instead)
}
