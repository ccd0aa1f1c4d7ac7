//! Rules for `sources` that a schema cannot express.

use crate::api::sources::{
    AnySource, ConfigMapSource, FileSource, GitSource, HelmSource, KatalogSource, RegistrySource,
    SourceCredentials, Sources, UrlSource,
};
use crate::api::{names, oci};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

mod verify;

/// The maximum number of sources of one document.
pub(crate) const MOST_SOURCES: usize = 1000;

/// Checks the sources at `path`.
pub(crate) fn check_sources(sources: Option<&Sources>, path: &FieldPath, found: &mut Diagnostics) {
    let Some(sources) = sources else { return };
    if sources.len() > MOST_SOURCES {
        let message = format!(
            "{} sources are too many; at most {MOST_SOURCES} are possible",
            sources.len()
        );
        found.push(Diagnostic::error(Code::TooLarge, path.clone(), message));
        return;
    }
    let mut check = Check { found };
    for (list, index, source) in sources.each() {
        let at = path.field(list).index(index);
        match source {
            AnySource::Registry(source) => check.registry(&at, source),
            AnySource::File(source) => check.file(&at, source),
            AnySource::Helm(source) => check.helm(&at, source),
            AnySource::Git(source) => check.git(&at, source),
            AnySource::ConfigMap(ConfigMapSource { name, key: _ }) => {
                check.name(&at.field("name"), name);
            }
            AnySource::Katalogs(source) => check.katalog(&at, source),
        }
    }
}

struct Check<'a> {
    found: &'a mut Diagnostics,
}

impl Check<'_> {
    fn error(&mut self, code: Code, path: &FieldPath, message: impl Into<String>, hint: &str) {
        self.found
            .push(Diagnostic::error(code, path.clone(), message).hint(hint));
    }

    fn registry(&mut self, path: &FieldPath, source: &RegistrySource) {
        let RegistrySource {
            url,
            oci,
            use_komposer,
            katalog,
            auth,
            interval: _,
            verify,
        } = source;
        self.url(&path.field("url"), url);
        self.auth(path, auth.as_ref());
        self.verify(path, verify.as_ref());
        let is_git = *oci == Some(false) || !katalog.is_empty();
        if *oci == Some(false) && katalog.is_empty() {
            self.error(
                Code::Missing,
                &path.field("oci"),
                "`katalog` is missing: without `oci`, it names the Katalogs of a Git repository",
                "set `oci: true`, or name the Katalogs under `katalog`",
            );
        } else if *oci == Some(true) && !katalog.is_empty() {
            self.error(
                Code::NoEffect,
                &path.field("katalog"),
                "`katalog` names Katalogs of a Git repository, and this is an OCI registry",
                "remove `oci` or `katalog`",
            );
        } else if is_git && *use_komposer == Some(true) {
            self.error(
                Code::NoEffect,
                &path.field("useKomposer"),
                "`useKomposer` is only possible for OCI registries",
                "use `sources.git` with the path of the Komposer",
            );
        } else if is_git && verify.is_some() {
            self.error(
                Code::NoEffect,
                &path.field("verify"),
                "signatures are only possible for OCI registries",
                "remove `verify`",
            );
        }
        if !is_git
            && !url.contains('$')
            && let Err(why) = oci::OciReference::parse(url)
        {
            self.error(
                Code::WrongShape,
                &path.field("url"),
                why.to_string(),
                "write `host/path:version`",
            );
        }
    }

    fn file(&mut self, path: &FieldPath, source: &FileSource) {
        match source {
            FileSource::Path(url) => self.url(path, url),
            FileSource::Url(UrlSource {
                url,
                auth,
                interval: _,
            }) => {
                self.url(&path.field("url"), url);
                self.auth(path, auth.as_ref());
                if auth.is_some() && !url.contains("://") && !url.starts_with('$') {
                    self.error(
                        Code::NoEffect,
                        &path.field("auth"),
                        "a file on disk needs no credentials",
                        "remove `auth`",
                    );
                }
            }
        }
    }

    fn helm(&mut self, path: &FieldPath, source: &HelmSource) {
        let HelmSource {
            repo,
            chart,
            version: _,
            path: folder,
            value_files,
            values: _,
            auth,
            interval: _,
            verify,
        } = source;
        self.url(&path.field("repo"), repo);
        if chart.trim().is_empty() {
            self.error(
                Code::Empty,
                &path.field("chart"),
                "the value is empty",
                "write the chart's name",
            );
        }
        self.inside(&path.field("path"), folder.as_deref());
        for (index, file) in value_files.iter().enumerate() {
            self.url(&path.field("valueFiles").index(index), file);
        }
        self.auth(path, auth.as_ref());
        self.verify(path, verify.as_ref());
        if verify.is_some() && !repo.starts_with("oci://") {
            self.error(
                Code::NoEffect,
                &path.field("verify"),
                "signatures are only possible for OCI registries",
                "remove `verify`, or use a chart from `oci://`",
            );
        }
    }

    fn git(&mut self, path: &FieldPath, source: &GitSource) {
        let GitSource {
            url,
            ref_: _,
            path: inside,
            auth,
            interval: _,
        } = source;
        self.url(&path.field("url"), url);
        self.inside(&path.field("path"), inside.as_deref());
        self.auth(path, auth.as_ref());
    }

    fn katalog(&mut self, path: &FieldPath, source: &KatalogSource) {
        let KatalogSource {
            name,
            label_selector,
        } = source;
        match (name, label_selector) {
            (Some(name), None) => self.name(&path.field("name"), name),
            (None, Some(selector)) if selector.is_empty() => self.error(
                Code::Empty,
                &path.field("labelSelector"),
                "an empty selector would match every Katalog",
                "write the labels under `matchLabels`",
            ),
            (None, Some(_)) => {}
            (Some(_), Some(_)) => self.error(
                Code::SetTwice,
                path,
                "`name` and `labelSelector` are mutually exclusive",
                "remove one of them",
            ),
            (None, None) => self.error(
                Code::Missing,
                path,
                "`name` is missing",
                "write the name of a Katalog, or a `labelSelector`",
            ),
        }
    }

    fn url(&mut self, path: &FieldPath, url: &str) {
        if url.trim().is_empty() {
            self.error(
                Code::Empty,
                path,
                "the value is empty",
                "write a path or a URL",
            );
        } else if url.contains("{{") {
            self.error(
                Code::NotATemplate,
                path,
                "this cannot be a template",
                "sources are read before any custom resource exists: write the value out",
            );
        } else if has_credentials(url) {
            self.error(
                Code::WrongShape,
                path,
                "a URL with a user or password is refused",
                "remove them, and name a Secret or an environment variable under `auth`",
            );
        } else if url.starts_with("http://") {
            self.error(
                Code::WrongShape,
                path,
                "`http://` is refused",
                "use `https://`",
            );
        } else if url.starts_with("ssh://") || url.starts_with("git@") {
            self.error(
                Code::WrongShape,
                path,
                "SSH is not supported",
                "use the HTTPS URL, with a token under `auth`",
            );
        }
    }

    /// A path inside of a repository or chart.
    fn inside(&mut self, path: &FieldPath, text: Option<&str>) {
        let Some(text) = text else { return };
        let leaves = text.starts_with('/') || text.split(['/', '\\']).any(|step| step == "..");
        if leaves || text.trim().is_empty() {
            self.error(
                Code::WrongShape,
                path,
                format!("`{text}` is not a path inside of the source"),
                "write a relative path without `..`",
            );
        }
    }

    fn auth(&mut self, path: &FieldPath, auth: Option<&SourceCredentials>) {
        let Some(SourceCredentials {
            type_: _,
            from_env,
            secret_ref,
        }) = auth
        else {
            return;
        };
        let path = path.field("auth");
        match (from_env, secret_ref) {
            (Some(_), Some(_)) => self.error(
                Code::SetTwice,
                &path,
                "`fromEnv` and `secretRef` are mutually exclusive",
                "remove one of them",
            ),
            (None, None) => self.error(
                Code::Missing,
                &path,
                "there are no credentials",
                "write `secretRef` with the name of a Secret, or `fromEnv`",
            ),
            (None, Some(secret)) => self.name(&path.field("secretRef").field("name"), &secret.name),
            (Some(_), None) => {}
        }
    }

    fn name(&mut self, path: &FieldPath, name: &str) {
        if let Err(why) = names::check_dns1123_subdomain(name) {
            let mut error = Diagnostic::error(Code::BadName, path.clone(), why);
            error.hint = names::instead(name, names::check_dns1123_subdomain);
            self.found.push(error);
        }
    }
}

/// True for a URL with a user before its host.
fn has_credentials(url: &str) -> bool {
    let host = url
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    host.is_some_and(|host| {
        host.split_once('@')
            // `host/path@tag` has its `@` in the path; `host@sha256:…` has no user.
            .is_some_and(|(user, _)| user.contains(':') || !url.starts_with("oci://"))
    })
}
