//! `wasm`: the WebAssembly module of a hook.

use crate::scope::{At, Library};
use orkestra_language::{
    api::{HookWasm, names},
    diagnostics::Code,
};
use orkestra_plan::HookModule;

/// The length of a digest: `sha256:` and 64 digits.
const DIGEST_LENGTH: usize = 71;

/// Compiles the module of a hook at `at`, which is in `library` by now.
pub(crate) fn compile(at: &At<'_>, declared: &HookWasm, library: &Library) -> Option<HookModule> {
    let HookWasm {
        file,
        config_map,
        digest,
        finalize,
    } = declared;
    if file.is_none() && config_map.is_none() {
        at.error_hint(
            Code::Missing,
            "`file` or `configMap` is missing: the place of the module",
            "write `configMap: {name: …}` for a cluster, `file: hook.wasm` for commands such as `ork render`, or both",
        );
        return None;
    }
    for (name, value) in [("file", file), ("digest", digest)] {
        if value.as_ref().is_some_and(|text| text.contains("{{")) {
            let message = "this cannot be a template";
            let hint = "the module is read before any resource exists: write it out";
            at.field(name).error_hint(Code::NotATemplate, message, hint);
            return None;
        }
    }
    if let Some(config_map) = config_map {
        let at = at.field("configMap").field("name");
        if let Err(why) = names::check_dns1123_subdomain(&config_map.name) {
            at.error(Code::BadName, why);
            return None;
        }
    }
    if let Some(digest) = digest {
        let is_digest = digest.starts_with("sha256:")
            && digest.len() == DIGEST_LENGTH
            && digest[7..].bytes().all(|one| one.is_ascii_hexdigit());
        if !is_digest {
            at.field("digest").error_hint(
                Code::WrongShape,
                format!("`{digest}` is not a digest"),
                "write `sha256:` and 64 hexadecimal digits, as of `sha256sum hook.wasm`",
            );
            return None;
        }
    }
    match library.module(at, declared) {
        Ok(found) => Some(HookModule {
            place: found.place,
            module: found.module,
            finalizes: finalize.unwrap_or_default(),
        }),
        Err(why) => {
            at.error(Code::Unreadable, &*why);
            None
        }
    }
}
