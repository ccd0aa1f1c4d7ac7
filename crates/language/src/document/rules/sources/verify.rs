//! Rules for `verify`: there is a key or an identity, and a trusted root for the latter.

use super::Check;
use crate::api::sources::{Keyless, Verify};
use crate::diagnostics::{Code, FieldPath};

impl Check<'_> {
    pub(crate) fn verify(&mut self, path: &FieldPath, verify: Option<&Verify>) {
        let Some(Verify {
            keys,
            secret_ref,
            keyless,
        }) = verify
        else {
            return;
        };
        let path = path.field("verify");
        if keys.is_empty() && secret_ref.is_none() && keyless.is_none() {
            self.error(
                Code::Missing,
                &path,
                "there is no key and no identity",
                "write `keys`, `secretRef` or `keyless`",
            );
        }
        for (index, key) in keys.iter().enumerate() {
            if !key.contains("BEGIN PUBLIC KEY") {
                self.error(
                    Code::WrongShape,
                    &path.field("keys").index(index),
                    "this is not a public key in PEM",
                    "write the content of `cosign.pub`",
                );
            }
        }
        if let Some(secret) = secret_ref {
            self.name(&path.field("secretRef").field("name"), &secret.name);
        }
        if let Some(keyless) = keyless {
            self.keyless(&path.field("keyless"), keyless);
        }
    }

    fn keyless(&mut self, path: &FieldPath, keyless: &Keyless) {
        let Keyless {
            issuer,
            subject,
            trusted_root,
            secret_ref,
        } = keyless;
        for (name, value) in [("issuer", issuer), ("subject", subject)] {
            if value.is_empty() {
                let path = path.field(name);
                let why = "the value is empty";
                self.error(Code::Missing, &path, why, "write that of the certificates");
            }
        }
        match (trusted_root, secret_ref) {
            (Some(_), Some(_)) => self.error(
                Code::SetTwice,
                path,
                "`trustedRoot` and `secretRef` are mutually exclusive",
                "remove one of them",
            ),
            (None, None) => self.error(
                Code::Missing,
                path,
                "there is no trusted root",
                "write `trustedRoot`, or `secretRef` with the name of a Secret",
            ),
            (None, Some(secret)) => self.name(&path.field("secretRef").field("name"), &secret.name),
            (Some(root), None) => {
                if !root.trim_start().starts_with('{') && !root.contains("BEGIN CERTIFICATE") {
                    self.error(
                        Code::WrongShape,
                        &path.field("trustedRoot"),
                        "this is neither certificates in PEM nor the content of a `trusted_root.json`",
                        "write the content of the file",
                    );
                }
            }
        }
    }
}
