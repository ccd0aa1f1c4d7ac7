//! Registries that require authentication.

use std::fs;

use anyhow::Result;
use orkestra_registry_tests::{Access, Registry};

use crate::workspace;

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_stored_as_docker_does_and_forgotten_at_logout() -> Result<()> {
    let registry = Registry::start(Access::Password).await?;
    let (mut work, host) = (workspace()?, &registry.host);
    let untrusted = work
        .ork(&format!("push shop oci://{host}/k/shop"))?
        .fails(3)?;
    assert!(untrusted.contains("certificate"), "{untrusted}");
    work.set("ORK_REGISTRY_CA_FILE", &registry.authority());
    let anonymous = work
        .ork(&format!("push shop oci://{host}/k/shop"))?
        .fails(1)?;
    assert!(
        anonymous.contains(&format!("`ork login {host}` stores credentials")),
        "{anonymous}"
    );
    let wrong = work
        .ork_with(&format!("login {host} -u u --password-stdin"), "pass")?
        .fails(1)?;
    assert!(wrong.contains("does not permit"), "{wrong}");
    assert!(!work.path("docker/config.json").exists());
    work.ork_with(
        &format!("login {host} -u u --password-stdin"),
        "pass:word\n",
    )?
    .ok()?;
    work.ork(&format!("push shop oci://{host}/k/shop"))?.ok()?;
    // oras reads the credentials that ork wrote.
    let ca = registry.authority();
    work.tool(
        "oras",
        &format!("pull --ca-file {ca} {host}/k/shop:1.2.0 -o pulled"),
    )?
    .ok()?;
    assert_eq!(
        fs::read(work.path("pulled/katalog.yaml"))?,
        fs::read(work.path("shop/katalog.yaml"))?
    );
    work.ork(&format!("logout {host}"))?.ok()?;
    work.ork(&format!("pull oci://{host}/k/shop:1.2.0 again"))?
        .fails(1)?;
    // ork reads the credentials that oras wrote.
    work.shell(&format!("echo -n pass:word | oras login --ca-file {ca} -u u --password-stdin --registry-config docker/config.json {host}"))?.ok()?;
    work.ork(&format!("pull oci://{host}/k/shop:1.2.0 again"))?
        .ok()?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_helper_is_asked_and_given_what_to_keep() -> Result<()> {
    let registry = Registry::start(Access::Password).await?;
    let (mut work, host) = (workspace()?, &registry.host);
    work.set("ORK_REGISTRY_CA_FILE", &registry.authority());
    // A helper that stores one credential in a file.
    let helper = "#!/bin/sh\nstore=\"$HOME/stored\"\ncase $1 in\n  store) cat > \"$store\" ;;\n  get) cat \"$store\" 2>/dev/null || { echo 'credentials not found in native keychain'; exit 1; } ;;\n  erase) rm -f \"$store\" ;;\nesac\n";
    let path = work.write("bin/docker-credential-test", helper)?;
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    work.write("docker/config.json", r#"{"credsStore":"test"}"#)?;
    let bin = format!("{}:{}", work.path("bin").display(), std::env::var("PATH")?);
    work.set("PATH", &bin);
    work.ork(&format!("push shop oci://{host}/k/shop"))?
        .fails(1)?;
    work.ork_with(&format!("login {host} -u u --password-stdin"), "pass:word")?
        .ok()?;
    assert!(fs::read_to_string(work.path("stored"))?.contains("pass:word"));
    assert_eq!(
        fs::read_to_string(work.path("docker/config.json"))?,
        r#"{"credsStore":"test"}"#
    );
    work.ork(&format!("push shop oci://{host}/k/shop"))?.ok()?;
    work.ork(&format!("logout {host}"))?.ok()?;
    assert!(!work.path("stored").exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_asked_for_by_scope_and_used_again() -> Result<()> {
    let registry = Registry::start(Access::Token).await?;
    let (work, host) = (workspace()?, &registry.host);
    let anonymous = work
        .ork(&format!("push shop oci://{host}/k/shop"))?
        .fails(1)?;
    assert!(anonymous.contains("does not permit"), "{anonymous}");
    let wrong = work
        .ork_with(&format!("login {host} -u u --password-stdin"), "wrong")?
        .fails(1)?;
    assert!(wrong.contains("wrong password"), "{wrong}");
    work.ork_with(&format!("login {host} -u u --password-stdin"), "pass:word")?
        .ok()?;
    let before = registry.tokens();
    work.ork(&format!("push shop oci://{host}/k/shop --no-index"))?
        .ok()?;
    let used = registry.tokens() - before;
    assert!(used <= 2, "one token to read and one to write, not {used}");
    work.ork(&format!("logout {host}"))?.ok()?;
    work.ork(&format!("pull oci://{host}/k/shop:1.2.0 pulled"))?
        .ok()?;
    Ok(())
}
