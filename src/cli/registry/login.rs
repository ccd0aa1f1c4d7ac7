//! `ork login` and `ork logout`

use std::io::{self, IsTerminal as _};

use anyhow::anyhow;
use orkestra_registry::{Credential, CredentialStore, Keychain};

use super::{Registry, keys};
use crate::cli::{Failure, output};

/// Store credentials for a registry, where docker stores them
///
/// The credentials are checked with the registry first. The credential helper of docker's configuration (credHelpers,
/// credsStore) stores them, otherwise config.json in $`DOCKER_CONFIG` or ~/.docker, which only its owner can read.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Host of the registry, with its port
    #[arg(value_name = "HOST")]
    host: String,
    /// User
    #[arg(short, long, value_name = "NAME")]
    username: String,
    /// Read the password from standard input, which must not be a terminal: it would show the password
    #[arg(long, required = true)]
    password_stdin: bool,
    #[command(flatten)]
    registry: Registry,
}

/// Remove the credentials for a registry
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LogoutArgs {
    /// Host of the registry, with its port
    #[arg(value_name = "HOST")]
    host: String,
}

pub(crate) async fn execute(args: Args) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::Input(anyhow!(
            "standard input is a terminal, which would show the password: pipe it, as in `pass show registry | ork login …`"
        )));
    }
    let host = host(&args.host)?;
    let password = keys::password()?;
    let credential = Credential::Basic {
        user: args.username.clone(),
        password: password.clone(),
    };
    let client = args.registry.client_with(Keychain::given(credential))?;
    client.ping(host).await?;
    let mut keychain = Keychain::of_user()?;
    match keychain.store(host, &args.username, &password).await? {
        CredentialStore::Helper(helper) => {
            output::note(&format!("stored by docker-credential-{helper}"));
        }
        CredentialStore::File(file) => {
            output::note(&format!("stored in {}, not encrypted", file.display()));
        }
    }
    Ok(())
}

pub(crate) async fn logout(args: LogoutArgs) -> Result<(), Failure> {
    let host = host(&args.host)?;
    let mut keychain = Keychain::of_user()?;
    if keychain.erase(host).await? {
        output::note(&format!("removed the credentials for {host}"));
    } else {
        output::note(&format!("there are no credentials for {host}"));
    }
    Ok(())
}

/// The host of an argument, which people write with a scheme, too.
fn host(text: &str) -> anyhow::Result<&str> {
    let host = text
        .split_once("://")
        .map_or(text, |(_, rest)| rest)
        .trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '@', ' ']) {
        return Err(anyhow!(
            "`{text}` is not a host: write it as ghcr.io or localhost:5000"
        ));
    }
    Ok(host)
}
