//! Tests `ork` with real registries, and its interoperability with other tools.

#[path = "registry/access.rs"]
mod access;
#[path = "registry/docs.rs"]
mod docs;
#[path = "registry/helm.rs"]
mod helm;
#[path = "registry/image.rs"]
mod image;
#[path = "registry/keyless.rs"]
mod keyless;
#[path = "registry/lists.rs"]
mod lists;
#[path = "registry/signatures.rs"]
mod signatures;
#[path = "registry/sources.rs"]
mod sources;
#[path = "registry/transfer.rs"]
mod transfer;

use anyhow::Result;
use orkestra_registry_tests::Workspace;

/// Creates a workspace with a Katalog and its files in the folder `shop`.
fn workspace() -> Result<Workspace> {
    let workspace = Workspace::new()?;
    workspace.write("shop/katalog.yaml", KATALOG)?;
    workspace.write("shop/README.md", "# Shops\n")?;
    workspace.write("shop/manifests/extra.txt", "extra\n")?;
    Ok(workspace)
}

const KATALOG: &str = r#"apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata:
  name: shop
  version: 1.2.0
  description: Shops for everybody
  author: a team
  tags: [web]
spec:
  crds:
    shop:
      apiTypes: { group: example.org, version: v1, kind: Shop, plural: shops }
      operatorBox:
        onReconcile:
          configMaps:
            - name: "{{ .metadata.name }}"
              data: { a: b }
"#;
