use super::*;
use crate::scope::Library;
use orkestra_language::{
    diagnostics::{Diagnostics, Severity},
    document::read_stream,
};
use orkestra_plan::{KatalogRef, Plan, definitions::Schemas};

/// Children that contain a Secret's value, one for each way to get there, and children that only refer to the Secret.
const KATALOG: &str = "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      imports: [{ motif: reeds, with: { given: '{{ .children.secret.data.password }}' } }]
      operatorBox:
        cross: [{ crd: token, selector: { name: shared } }]
        onReconcile:
          secrets:
            - { name: login, data: { password: '{{ .spec.password }}' } }
          configMaps:
            - { name: direct, data: { a: '{{ .children.secret.data.password }}' } }
            - name: patched
              patch: { metadata: { annotations: { a.example/b: '{{ .children.secret.data.password }}' } } }
          deployments:
            - name: transitive
              image: 'a:1'
              annotations: { a.example/b: '{{ .children.configMaps.direct.data.a }}' }
          custom:
            - apiVersion: a.example/v1
              kind: Mouse
              metadata: { name: crossed }
              spec: { a: '{{ get .cross.token \"metadata\" \"annotations\" \"note\" }}' }
            - apiVersion: a.example/v1
              kind: Mouse
              metadata: { name: named }
              spec: { a: '{{ .children.secret.metadata.name }}' }
            - apiVersion: a.example/v1
              kind: Mouse
              metadata: { name: tested }
              spec: { a: '{{ if .children.secret.data.password }}yes{{ end }}' }
        onDelete:
          custom:
            - apiVersion: batch/v1
              kind: Job
              metadata: { name: drain }
              spec: { template: { metadata: { annotations: { a.example/b: '{{ .children.secret.data.password }}' } } } }
    token:
      apiTypes: { kind: Secret }
      labelSelector: { a.example/token: 'yes' }
---
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: reeds }
inputs:
  - { name: given }
  - { name: other, default: '{{ .children.secret.data.password }}' }
  - { name: plain, default: x }
resources:
  serviceAccounts:
    - { name: by-input, annotations: { a.example/b: '{{ .inputs.given }}' } }
    - { name: by-default, annotations: { a.example/b: '{{ .inputs.other }}' } }
    - { name: plain, annotations: { a.example/b: '{{ .inputs.plain }}' } }
";

fn compiled(text: &str) -> Result<Plan, Diagnostics> {
    let (documents, _) = read_stream("katalog.yaml", text).unwrap();
    let spec = &documents.katalogs[0].spec;
    let mut library = Library::default();
    for reference in library.missing(spec) {
        let mut motifs = documents.motifs.iter();
        let motif = motifs.find(|motif| *motif.name == *reference.text);
        library.put_motif(reference, motif.unwrap());
    }
    let katalog = KatalogRef::new("shop".to_owned(), "waters".to_owned());
    let compiled = crate::compile::katalog(&katalog, spec, &Schemas::default(), &library);
    compiled.map(|(plan, _)| plan)
}

/// Returns the names of the children and of the `onDelete` entries that may contain a Secret's value.
fn marked(text: &str) -> BTreeSet<String> {
    let plan = compiled(text).unwrap();
    let pond = plan
        .operators
        .iter()
        .find(|one| one.name == "pond")
        .unwrap();
    let on_delete = pond.on_delete.as_deref().into_iter();
    let all = pond
        .children
        .iter()
        .chain(on_delete.flat_map(OnDeletePlan::entries));
    let marked = all.filter(|child| child.shows_secrets);
    marked
        .map(|child| child.name.template.source().to_owned())
        .collect()
}

#[test]
fn children_are_marked_by_whatever_way_a_secrets_value_reaches_them() {
    let expected = [
        "by-default",
        "by-input",
        "crossed",
        "direct",
        "drain",
        "patched",
        "transitive",
    ];
    assert_eq!(marked(KATALOG), expected.map(str::to_owned).into());
}

#[test]
fn without_secrets_no_child_is_marked() {
    let text = "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      operatorBox:
        onReconcile: { configMaps: [{ name: a, data: { b: '{{ .spec.password }}' } }] }
";
    assert_eq!(marked(text), BTreeSet::new());
}

#[test]
fn a_default_of_a_motif_brings_no_secrets_value_into_the_status() {
    let status = "status: { fields: [{ path: a, value: '{{ .inputs.VALUE }}' }] }\nresources:";
    let reported = |input: &str| {
        let text = KATALOG.replace("resources:", &status.replace("VALUE", input));
        let problems = compiled(&text).err().unwrap_or_default();
        let errors = problems.0.iter();
        let errors = errors.filter(|one| one.severity == Severity::Error);
        errors.map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(reported("plain"), []);
    assert_eq!(reported("other"), [Code::SecretShown]);
    assert_eq!(reported("given"), [Code::SecretShown]);
}
