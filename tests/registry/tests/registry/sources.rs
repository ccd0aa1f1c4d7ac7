//! Komposers whose sources are in real registries.

use std::fs;

use anyhow::Result;
use orkestra_registry_tests::{Access, Registry, Workspace};

use crate::{KATALOG, workspace};

fn komposer(work: &Workspace, sources: &str) -> Result<()> {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1\nkind: Komposer\nmetadata: {{name: mall}}\nsources:\n  registry:\n{sources}"
    );
    work.write("mall/komposer.yaml", &text)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_komposer_is_validated_rendered_locked_and_compared() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    work.ork(&format!("push shop oci://{host}/k/shop:1.2.0"))?
        .ok()?;
    work.ork(&format!("tag oci://{host}/k/shop:1.2.0 stable"))?
        .ok()?;
    komposer(
        &work,
        &format!("  - {{url: {host}/k/shop@stable, oci: true}}\n"),
    )?;
    work.ork("validate mall/komposer.yaml")?.ok()?;
    let rbac = work.ork("generate rbac mall/komposer.yaml")?.ok()?;
    assert!(rbac.contains("shops"), "{rbac}");
    work.ork("lock mall/komposer.yaml")?.ok()?;
    let locked = fs::read_to_string(work.path("mall/komposer.lock"))?;
    assert!(locked.contains("sha256:"), "{locked}");
    work.ork("lock --check mall/komposer.yaml")?.ok()?;
    // The tag moves to a version with another operator.
    let next = KATALOG.replace("version: 1.2.0", "version: 1.3.0");
    let next = next.replace("data: { a: b }", "data: { a: c }");
    work.write("shop/katalog.yaml", &next)?;
    work.ork(&format!("push shop oci://{host}/k/shop:1.3.0"))?
        .ok()?;
    work.ork(&format!("tag oci://{host}/k/shop:1.3.0 stable"))?
        .ok()?;
    let moved = work.ork("lock --check mall/komposer.yaml")?;
    assert_eq!(moved.code, 1, "{}", moved.err);
    assert!(moved.out.starts_with("~ oci://"), "{}", moved.out);
    work.ork("validate mall/komposer.yaml --locked")?.ok()?;
    let changed = work.ork(&format!("diff {host}/k/shop:1.2.0 {host}/k/shop:1.3.0"))?;
    assert_eq!(changed.code, 1, "{}", changed.err);
    assert!(changed.out.contains("\"b\" → \"c\""), "{}", changed.out);
    work.ork(&format!("diff {host}/k/shop:1.2.0 {host}/k/shop:1.2.0"))?
        .ok()?;
    // An artifact that another tool pushed.
    let oras =
        "oras push --plain-http --artifact-type application/vnd.orkestra.pattern.v1+tar+gzip";
    work.shell(&format!(
        "cd shop && {oras} {host}/k/other:v1 katalog.yaml:application/vnd.orkestra.katalog.v1+yaml"
    ))?
    .ok()?;
    komposer(&work, &format!("  - {{url: 'oci://{host}/k/other:v1'}}\n"))?;
    work.ork("validate mall/komposer.yaml")?.ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_with_passwords_and_tokens_are_read_with_credentials_alone() -> Result<()> {
    let registry = Registry::start(Access::Password).await?;
    let (mut work, host) = (workspace()?, &registry.host);
    work.set("ORK_REGISTRY_CA_FILE", &registry.authority());
    work.ork_with(
        &format!("login {host} -u u --password-stdin"),
        "pass:word\n",
    )?
    .ok()?;
    work.ork(&format!("push shop oci://{host}/k/shop:1.2.0"))?
        .ok()?;
    komposer(
        &work,
        &format!("  - {{url: 'oci://{host}/k/shop:1.2.0'}}\n"),
    )?;
    let untrusted = work.ork("validate mall/komposer.yaml")?;
    assert!(untrusted.err.contains("certificate"), "{}", untrusted.err);
    work.set("ORK_SOURCE_CA_FILE", &registry.authority());
    work.ork("validate mall/komposer.yaml")?.ok()?;
    work.ork(&format!("logout {host}"))?.ok()?;
    let refused = work.ork("validate mall/komposer.yaml")?;
    assert_eq!(refused.code, 1);
    komposer(
        &work,
        &format!(
            "  - {{url: 'oci://{host}/k/shop:1.2.0', auth: {{fromEnv: LOGIN, type: basic}}}}\n"
        ),
    )?;
    work.set("LOGIN", "u:pass:word");
    let unnamed = work.ork("validate mall/komposer.yaml")?;
    assert!(
        unnamed.err.contains("--source-env LOGIN"),
        "{}",
        unnamed.err
    );
    work.ork("validate mall/komposer.yaml --source-env LOGIN")?
        .ok()?;
    let tokens = Registry::start(Access::Token).await?;
    let host = &tokens.host;
    work.ork_with(
        &format!("login {host} -u u --password-stdin"),
        "pass:word\n",
    )?
    .ok()?;
    work.ork(&format!("push shop oci://{host}/k/shop:1.2.0"))?
        .ok()?;
    work.ork(&format!("logout {host}"))?.ok()?;
    komposer(
        &work,
        &format!("  - {{url: 'oci://{host}/k/shop:1.2.0'}}\n"),
    )?;
    work.ork("validate mall/komposer.yaml")?.ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cosign_signed_is_accepted_and_another_key_is_not() -> Result<()> {
    let registry = Registry::start(Access::Anonymous).await?;
    let (work, host) = (workspace()?, &registry.host);
    work.tool("cosign", "generate-key-pair")?.ok()?;
    work.ork(&format!("push shop oci://{host}/k/shop:1.2.0"))?
        .ok()?;
    let key = fs::read_to_string(work.path("cosign.pub"))?.replace('\n', "\n        ");
    let verified = format!(
        "  - url: 'oci://{host}/k/shop:1.2.0'\n    verify:\n      keys:\n      - |\n        {key}\n"
    );
    komposer(&work, &verified)?;
    let unsigned = work.ork("validate mall/komposer.yaml")?;
    assert!(
        unsigned.err.contains("has no signature"),
        "{}",
        unsigned.err
    );
    let sign = "sign --key cosign.key --yes --use-signing-config=false --tlog-upload=false";
    work.tool("cosign", &format!("{sign} {host}/k/shop:1.2.0"))?
        .ok()?;
    work.ork("validate mall/komposer.yaml")?.ok()?;
    work.shell("mkdir other && cd other && cosign generate-key-pair")?
        .ok()?;
    let other = fs::read_to_string(work.path("other/cosign.pub"))?.replace('\n', "\n    ");
    let policy = format!("rules:\n- match: '{host}/k'\n  keys:\n  - |\n    {other}\n");
    work.write("policy.yaml", &policy)?;
    let refused = work.ork("validate mall/komposer.yaml --source-policy policy.yaml")?;
    assert!(
        refused.err.contains("not signed with the given key"),
        "{}",
        refused.err
    );
    Ok(())
}
