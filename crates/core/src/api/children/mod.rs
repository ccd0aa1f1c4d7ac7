//! Children: the objects that an operator makes for a custom resource, one file a family.

mod common;
mod config;
mod custom;
mod deployment;
mod env;
mod pod;
mod service;

pub use common::{Common, Control, ForEach, Meta, OnFalse};
pub use config::{ConfigMap, Copies, Secret, SecretTls, ServiceAccount};
pub use custom::{Custom, CustomMeta};
pub use deployment::{Deployment, RollingUpdate};
pub use env::{
    Env, EnvFrom, EnvFromObject, EnvFromSource, EnvSource, EnvValue, EnvVar, KeyRef, NameRef,
};
pub use pod::{Capabilities, PodSecurity, Probe, Probes, Resources, SecurityContext};
pub use service::Service;
