//! `ork` and `oras` pull exactly the content that was pushed.

use std::fs;

use anyhow::{Context as _, Result};
use orkestra_registry_tests::{Access, Registry};

use crate::{KATALOG, workspace};

#[tokio::test(flavor = "multi_thread")]
async fn what_ork_pushes_oras_and_ork_pull_byte_for_byte() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    let pushed = work
        .ork(&format!("push shop oci://{host}/katalogs/shop -o json"))?
        .json()?;
    assert_eq!(
        pushed["reference"],
        format!("oci://{host}/katalogs/shop:1.2.0")
    );
    assert_eq!(pushed["listed"], true);
    let again = work
        .ork(&format!("push shop oci://{host}/katalogs/shop -o json"))?
        .json()?;
    assert_eq!(
        again["digest"], pushed["digest"],
        "equal folders give equal digests"
    );
    let digest = pushed["digest"].as_str().context("no digest")?;
    let resolved = work
        .tool(
            "oras",
            &format!("resolve --plain-http {host}/katalogs/shop:1.2.0"),
        )?
        .ok()?;
    assert_eq!(resolved.trim(), digest);
    work.tool(
        "oras",
        &format!("pull --plain-http {host}/katalogs/shop@{digest} -o by-oras"),
    )?
    .ok()?;
    work.ork(&format!("pull oci://{host}/katalogs/shop@{digest} by-ork"))?
        .ok()?;
    for file in ["katalog.yaml", "README.md", "manifests/extra.txt"] {
        let own = fs::read(work.path("shop").join(file))?;
        for folder in ["by-oras", "by-ork"] {
            assert_eq!(
                fs::read(work.path(folder).join(file))?,
                own,
                "{folder}/{file}"
            );
        }
    }
    let occupied = work
        .ork(&format!("pull oci://{host}/katalogs/shop:1.2.0 by-ork"))?
        .fails(1)?;
    assert!(occupied.contains("not an empty folder"), "{occupied}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_oras_pushes_ork_reads() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    let push = format!(
        "push --plain-http {host}/k/shop:v1 --artifact-type application/vnd.orkestra.pattern.v1+tar+gzip"
    );
    let files = "katalog.yaml:application/vnd.orkestra.katalog.v1+yaml README.md:text/markdown";
    let tool = orkestra_registry_tests::tools()?.join("oras");
    work.shell(&format!("cd shop && {} {push} {files}", tool.display()))?
        .ok()?;
    work.ork(&format!("pull {host}/k/shop@v1 pulled"))?.ok()?;
    assert_eq!(
        fs::read_to_string(work.path("pulled/katalog.yaml"))?,
        KATALOG
    );
    let shown = work.ork(&format!("inspect oci://{host}/k/shop:v1"))?.ok()?;
    assert!(
        shown.contains("does not record its kinds and permissions"),
        "{shown}"
    );
    // An artifact of another tool is rejected, even though it can be fetched.
    work.shell(&format!(
        "cd shop && {} push --plain-http {host}/k/other:v1 README.md",
        tool.display()
    ))?
    .ok()?;
    let refused = work
        .ork(&format!("pull oci://{host}/k/other:v1 other"))?
        .fails(1)?;
    assert!(refused.contains("its type is"), "{refused}");
    // A packed folder is rejected with the fix.
    work.shell(&format!(
        "cd shop && {} {push} katalog.yaml manifests",
        tool.display()
    ))?
    .ok()?;
    let refused = work
        .ork(&format!("pull oci://{host}/k/shop:v1 packed"))?
        .fails(1)?;
    assert!(refused.contains("push its files one by one"), "{refused}");
    assert!(!work.path("packed").exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn inspect_shows_what_is_declared_without_the_layers() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    let ending = "  deprecation:\n    message: replaced\n    migratedTo: ghcr.io/a/b:2\n    timeline: { from: 2000-01-01, to: 2001-01-01 }\nspec:";
    work.write("shop/katalog.yaml", &KATALOG.replacen("spec:", ending, 1))?;
    let pushed = work.ork(&format!("push shop oci://{host}/k/shop"))?;
    assert!(
        pushed
            .err
            .contains("end of life (2001-01-01): replaced; use ghcr.io/a/b:2 instead"),
        "{}",
        pushed.err
    );
    pushed.ok()?;
    work.ork(&format!("tag oci://{host}/k/shop:1.2.0 stable edge"))?
        .ok()?;
    let shown = work
        .ork(&format!(
            "inspect oci://{host}/k/shop:stable --versions -o json"
        ))?
        .json()?;
    assert_eq!(shown["declares"]["declares"][0]["kind"], "Shop");
    let permissions = shown["declares"]["permissions"].to_string();
    assert!(
        permissions.contains("configmaps") && permissions.contains("shops"),
        "{permissions}"
    );
    assert_eq!(shown["lifecycle"]["stage"], "end of life");
    assert_eq!(shown["signatures"]["bundle"], 0);
    assert_eq!(shown["tags"].as_array().map(Vec::len), Some(3));
    let text = work
        .ork(&format!("inspect oci://{host}/k/shop:edge"))?
        .ok()?;
    assert!(
        text.contains("Signatures   none") && text.contains("shop: Shop (example.org/v1)"),
        "{text}"
    );
    let pulled = work.ork(&format!("pull oci://{host}/k/shop:edge pulled"))?;
    assert!(
        pulled.err.contains("warning: end of life")
            && !pulled.err.contains("differ from the metadata"),
        "{}",
        pulled.err
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_not_pushed_and_a_version_is_not_overwritten() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    work.ork(&format!("push shop oci://{host}/k/shop"))?.ok()?;
    work.write("shop/README.md", "# Other\n")?;
    let refused = work
        .ork(&format!("push shop oci://{host}/k/shop"))?
        .fails(1)?;
    assert!(refused.contains("exists with other content"), "{refused}");
    work.ork(&format!("push shop oci://{host}/k/shop --force"))?
        .ok()?;
    let refused = work
        .ork(&format!("push shop oci://{host}/k/shop:1.3.0"))?
        .fails(1)?;
    assert!(
        refused.contains("`metadata.version` is `1.2.0`"),
        "{refused}"
    );
    work.write(
        "shop/katalog.yaml",
        &KATALOG.replace("configMaps", "configMapz"),
    )?;
    let refused = work
        .ork(&format!("push shop oci://{host}/k/shop:edge"))?
        .fails(1)?;
    assert!(refused.contains("configMapz"), "{refused}");
    let missing = work
        .ork(&format!("inspect oci://{host}/k/shop:edge"))?
        .fails(1)?;
    assert!(missing.contains("was not found"), "{missing}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_away_gives_exit_code_3() -> Result<()> {
    let work = workspace()?;
    let port = testbed::free_port()?;
    let said = work
        .ork(&format!("pull oci://127.0.0.1:{port}/a/b:c x"))?
        .fails(3)?;
    assert!(said.contains("cannot reach https://127.0.0.1"), "{said}");
    Ok(())
}

/// The blob is larger than one chunk of an upload.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_blob_goes_in_pieces_and_comes_back_whole() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let client = crate::lists::client();
    let repository = orkestra_registry::Repository::parse(&format!("{}/a/large", registry.host))?;
    let content: Vec<u8> = (0..20_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let content = bytes::Bytes::from(content);
    let mut sent = Vec::new();
    assert!(
        client
            .push_blob(&repository, &content, |bytes| sent.push(bytes))
            .await?
    );
    assert_eq!(sent, [8 << 20, 16 << 20, 20_000_000]);
    assert!(
        !client.push_blob(&repository, &content, |_| ()).await?,
        "an existing blob was sent again"
    );
    let blob = orkestra_registry::Descriptor::of("a", &content);
    assert_eq!(
        client.fetch_blob(&repository, &blob, 20_000_000).await?,
        content
    );
    Ok(())
}
