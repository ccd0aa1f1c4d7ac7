//! Functions of Helm that fail here, each with the reason.

use orkestra_template::go::EvalFailure;

use super::{Function, variadic};

/// A function that fails when it is called. A chart renders if it does not reach the call.
macro_rules! refused {
    ($($name:literal: $reason:literal,)*) => {
        pub(crate) static TABLE: &[Function] = &[
            $(variadic($name, 0, |_, _| {
                Err(EvalFailure::refused(concat!("`", $name, "` is not supported: ", $reason)))
            }),)*
        ];
    };
}

refused! {
    "bcrypt": "store the hash in the values",
    "htpasswd": "store the entry in the values",
    "derivePassword": "store the password in a Secret",
    "encryptAES": "store the text in a Secret",
    "decryptAES": "store the text in a Secret",
    "buildCustomCert": "reference a Secret that holds the certificate",
    "genCAWithKey": "use `genCA`, which makes its own key",
    "genSelfSignedCertWithKey": "use `genSelfSignedCert`, which makes its own key",
    "genSignedCertWithKey": "use `genSignedCert`, which makes its own key",
    "fromToml": "store the data as YAML or JSON",
}

/// Returns the failure of a function that draws random bytes where none are available.
pub(crate) fn no_randomness() -> EvalFailure {
    EvalFailure::refused(
        "random values are not available here: everyone who renders the chart would get the same ones; set the value in `values`, or declare a Secret whose values the operator generates",
    )
}
