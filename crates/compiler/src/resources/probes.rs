//! Startup, liveness and readiness probes.

use super::is_given;
use crate::scope::{At, Fields, resolve_profile};
use orkestra_language::{
    api::{
        children::{Probe, Probes},
        scalar::Scalar,
    },
    diagnostics::Code,
};
use orkestra_plan::{Coerce, ObjectTree, Whole};

/// The container's port, the default of its probes.
#[derive(Clone, Copy)]
pub(crate) struct ContainerPort<'a> {
    /// True if one is declared, valid or not.
    pub(crate) is_given: bool,
    /// The port, if it is valid.
    pub(crate) port: Option<&'a ObjectTree>,
}

/// Adds the probes to a container.
pub(crate) fn put(container: &mut Fields, at: &At<'_>, probes: &Probes, asked: ContainerPort<'_>) {
    let Probes {
        startup,
        liveness,
        readiness,
    } = probes;
    let all = [
        ("startup", "startupProbe", startup),
        ("liveness", "livenessProbe", liveness),
        ("readiness", "readinessProbe", readiness),
    ];
    for (name, field, declared) in all {
        if let Some(declared) = declared {
            let probe = at.field(name).whole(declared, Whole::Map, |at, declared| {
                probe(at, declared, asked)
            });
            container.put(field, probe);
        }
    }
}

/// Compiles one probe. It is left out if its port is: a template may render to an empty port.
fn probe(at: &At<'_>, probe: &Probe, asked: ContainerPort<'_>) -> Option<ObjectTree> {
    let port = match &probe.port {
        Some(port) => at.field("port").scalar(port, Coerce::Port),
        None => asked.port.cloned(),
    };
    // An invalid port is already reported.
    if port.is_none() && !asked.is_given && !is_given(probe.port.as_ref()) {
        at.error_hint(
            Code::NoPort,
            "the probe has no port",
            "declare `port` here or on the workload",
        );
    }
    let mut target = Fields::default();
    target.put("port", port);
    let mut fields = Fields::default();
    if is_http(at, probe)? {
        match &probe.path {
            Some(path) => target.put("path", at.text_field("path", Some(path))),
            None => target.put_text("path", "/"),
        }
        fields.put("httpGet", target.into_part());
    } else {
        fields.put("tcpSocket", target.into_part());
    }
    let set = numbers(probe).map(|(name, number)| (name, number.is_some()));
    let profile = resolve_profile(at, probe.profile.as_deref(), &set, probe, |profiles| {
        &profiles.probes
    });
    if let Some(profile) = profile {
        fields.extend(profile.fields(times));
    }
    Some(fields.into_part())
}

/// Returns times and thresholds, by name.
fn numbers(probe: &Probe) -> [(&'static str, &Option<Scalar>); 5] {
    [
        ("initialDelaySeconds", &probe.initial_delay_seconds),
        ("periodSeconds", &probe.period_seconds),
        ("failureThreshold", &probe.failure_threshold),
        ("successThreshold", &probe.success_threshold),
        ("timeoutSeconds", &probe.timeout_seconds),
    ]
}

/// Returns the times and thresholds of a probe, which a profile may contain.
pub(crate) fn times(at: &At<'_>, probe: &Probe) -> Fields {
    let mut fields = Fields::default();
    for (name, number) in numbers(probe) {
        fields.put(name, at.scalar_field(name, number.as_ref(), Coerce::Int));
    }
    fields
}

/// Returns whether the probe is an HTTP request; `None` after an error, which is reported.
fn is_http(at: &At<'_>, probe: &Probe) -> Option<bool> {
    match probe.type_.as_deref().map(str::trim) {
        None | Some("") => Some(probe.path.is_some()),
        Some("http") => Some(true),
        Some("tcp") if probe.path.is_some() => {
            at.field("path")
                .error(Code::Exclusive, "a tcp probe has no path");
            None
        }
        Some("tcp") => Some(false),
        Some(other) => {
            at.field("type")
                .error(Code::UnknownWord, format!("`{other}` is none of http, tcp"));
            None
        }
    }
}
