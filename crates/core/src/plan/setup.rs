//! Checks `setup`, which `ork run` applies before an operator starts.

use super::kinds;
use crate::{
    api::{Setup, SetupWait},
    diagnostics::Code,
    resources::scope::At,
};

/// Checks the block at `at`: without an API version, only built-in kinds are known.
pub(super) fn check(at: &At<'_>, setup: &Setup) {
    let files = match setup {
        Setup::Files(_) => at.clone(),
        Setup::Steps(_) => at.field("apply"),
    };
    let of_files = setup.files().iter().enumerate();
    let of_files = of_files.map(|(index, file)| (files.index(index).field("wait"), file.wait()));
    for (at, wait) in of_files.chain([(at.field("wait"), setup.wait())]) {
        for (index, object) in wait.iter().enumerate() {
            one(&at.index(index), object);
        }
    }
}

fn one(at: &At<'_>, object: &SetupWait) {
    let SetupWait {
        api_version,
        kind,
        name,
        namespace: _,
        ready: _,
        timeout: _,
    } = object;
    for (field, text) in [("kind", kind), ("name", name)] {
        if text.trim().is_empty() {
            at.field(field).error(Code::Empty, "this is empty");
        }
    }
    if api_version.is_none() && !kind.trim().is_empty() && kinds::named(kind).is_none() {
        at.field("kind").error_hint(
            Code::Missing,
            format!("{kind} is not a kind of Kubernetes itself: its `apiVersion` is missing"),
            "add `apiVersion: GROUP/VERSION`",
        );
    }
}
