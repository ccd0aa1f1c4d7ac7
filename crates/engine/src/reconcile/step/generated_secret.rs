//! Generated Secrets: created if missing, renewed when due, and otherwise left as they are.
//!
//! ```text
//!  no record ──────────────────────────────► Create, with new values; of a restored custom resource, see `restored`
//!  record ── generated-at + renewAfter ≤ now ► Apply, with new values, in place
//!         ── certificate for another subject ► Apply, the same
//!         └─ else ───────────────────────────► Keep; the pass runs again when it is due
//! ```

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::{Failure, Intent, pass::Pass};
use crate::reconcile::{
    child_metadata::set_in,
    owned::{OwnValues, PathElement},
    reason::Reason,
    record::ChildRecord,
    render::{RenderError, Renderer},
    sources::{Answer, CERTIFICATE_PARTS, Certificate, Read},
};
use orkestra_language::api::names::{self, ANNOTATION_GENERATED_AT, ANNOTATION_ISSUED_FOR};
use orkestra_object::value::{Key, Node, hash};
use orkestra_plan::{CertificatePlan, ChildKey, ChildPlan, Coerce, GeneratedSecretPlan, Leaf};

/// The maximum length of a common name. Source: RFC 5280, `ub-common-name`.
const LONGEST_COMMON_NAME: usize = 64;

impl Pass<'_, '_> {
    /// Decides on a generated Secret.
    pub(crate) fn generated_secret(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        key: ChildKey,
        index: usize,
        generated: &GeneratedSecretPlan,
    ) -> Result<(), Failure> {
        let declared = &self.plan.children[index];
        let record = self.observed.child(&key).cloned();
        let is_due = match &record {
            None => true,
            // Its deletion queues this key.
            Some(record) if record.deleting => false,
            Some(record) => match self.is_due(renderer, record, declared, generated) {
                Ok(is_due) => is_due,
                Err(error) => return self.keep_for(key, error.into()),
            },
        };
        if !is_due {
            self.keep_values(key, declared);
            return Ok(());
        }
        if record.is_none() {
            self.restored(&key)?;
        }
        if let Some(after) = generated.renew_after {
            // A value created now is due again then.
            self.frame.effects.at(later(self.now, after));
        }
        match self.render(renderer, &key, declared, index) {
            Ok(made) => {
                let made = Box::new(made);
                self.want(
                    key,
                    if record.is_some() {
                        Intent::Apply(made)
                    } else {
                        Intent::Create(made)
                    },
                );
                Ok(())
            }
            Err(error) => self.keep_for(key, error.into()),
        }
    }

    fn keep_for(&mut self, key: ChildKey, failure: Failure) -> Result<(), Failure> {
        self.keep(key);
        Err(failure)
    }

    /// True if the values are too old, or for another subject than the declared one.
    fn is_due(
        &self,
        renderer: &mut Renderer<'_, '_>,
        record: &ChildRecord,
        declared: &ChildPlan,
        generated: &GeneratedSecretPlan,
    ) -> Result<bool, RenderError> {
        if let Some(after) = generated.renew_after {
            // An annotation that was removed or is invalid is ignored.
            let generated = record
                .view
                .annotation(ANNOTATION_GENERATED_AT)
                .and_then(|text| text.parse().ok())
                .or_else(|| record.created());
            let due = generated.map_or(self.now, |generated| later(generated, after));
            if due <= self.now {
                return Ok(true);
            }
            self.frame.effects.at(due);
        }
        let Some(certificate) = generated.certificate.as_ref().filter(|_| !generated.once) else {
            return Ok(false);
        };
        let issued_for = record.view.annotation(ANNOTATION_ISSUED_FOR);
        let body = renderer.tree(&declared.body)?.unwrap_or_default();
        let names = names(renderer, certificate)?;
        let is_other = issued_for != Some(&*for_what(&body, &names, certificate));
        Ok(is_other || !self.is_untouched(record))
    }

    /// True if the parts of the certificate are those that this operator wrote, or that another manager applies on purpose.
    fn is_untouched(&self, record: &ChildRecord) -> bool {
        let own = OwnValues {
            name: &record.id.key.name,
            owner: record.owner(),
        };
        let ours = record.ownership.applied_by(&self.manager);
        let data = Key::new("data");
        CERTIFICATE_PARTS.iter().all(|part| {
            let part = Key::new(part);
            let trail = [PathElement::Field(&data), PathElement::Field(&part)];
            let is_ours = ours.is_some_and(|fields| fields.covers(&trail, own));
            let other = || {
                record
                    .ownership
                    .applied_by_other(&self.manager, &trail, own)
            };
            is_ours || other().is_some()
        })
    }

    /// Adds the generated values of a generated Secret and their time, including its certificate.
    pub(crate) fn generate(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        object: &mut Node,
        key: &ChildKey,
        generated: &GeneratedSecretPlan,
    ) -> Result<(), RenderError> {
        if let Some(certificate) = &generated.certificate {
            let names = names(renderer, certificate)?;
            let mark = for_what(object, &names, certificate);
            let parts = self.issue(key, certificate, names)?;
            set_in(object, &[], "data", parts);
            let annotations = ["metadata", "annotations"];
            set_in(object, &annotations, ANNOTATION_ISSUED_FOR, mark.into());
        }
        let now = seconds(self.now).to_string();
        let annotations = ["metadata", "annotations"];
        set_in(object, &annotations, ANNOTATION_GENERATED_AT, now.into());
        Ok(())
    }

    /// Returns the parts of a certificate, in the form of a Secret's data.
    fn issue(
        &mut self,
        key: &ChildKey,
        certificate: &CertificatePlan,
        names: Names,
    ) -> Result<Node, RenderError> {
        let place = place(certificate);
        let read = Read::Certificate(Certificate {
            holder: key.clone(),
            common_name: names.common_name,
            hosts: names.hosts,
            not_before: seconds(self.now),
            not_after: later(seconds(self.now), certificate.valid_for),
        });
        let parts = match self.answer(read) {
            None => return Err(missing_answer(place)),
            Some(Answer::Ready(parts)) => parts.clone(),
            Some(Answer::Absent) => {
                return Err(failed(
                    place,
                    Reason::Unavailable,
                    "no certificate was generated",
                ));
            }
            Some(Answer::Unavailable(why)) => {
                let message = format!("the certificate cannot be generated: {why}");
                return Err(failed(place, Reason::Unavailable, message));
            }
        };
        Ok(Node::object(CERTIFICATE_PARTS.map(|name| {
            let text = parts.get(name).cloned().unwrap_or_default();
            let encoded = Coerce::Base64.apply(text).ok().flatten();
            (name, encoded.unwrap_or_default())
        })))
    }
}

/// The subject of a certificate.
struct Names {
    common_name: Option<String>,
    hosts: Vec<String>,
}

/// Returns the path of one of the fields of a certificate, for messages.
fn place(certificate: &CertificatePlan) -> &str {
    let mut leaves = certificate.common_name.iter().chain(&certificate.hosts);
    leaves.next().map_or("", |leaf| &leaf.path)
}

/// Renders the current subject of a certificate.
fn names(
    renderer: &mut Renderer<'_, '_>,
    certificate: &CertificatePlan,
) -> Result<Names, RenderError> {
    let common_name = match &certificate.common_name {
        Some(leaf) => Some(renderer.text(leaf)?).filter(|text| !text.is_empty()),
        None => None,
    };
    if let (Some(name), Some(leaf)) = (&common_name, &certificate.common_name)
        && name.chars().count() > LONGEST_COMMON_NAME
    {
        let message = format!("a common name has at most {LONGEST_COMMON_NAME} characters");
        return Err(failed(&leaf.path, Reason::InvalidName, message));
    }
    let mut hosts = Vec::with_capacity(certificate.hosts.len());
    for leaf in &certificate.hosts {
        // A template may return all hosts.
        let all = match renderer.leaf(leaf)? {
            Some(Node::List(all)) => all.into_vec(),
            one => one.into_iter().collect(),
        };
        for host in all {
            let host = host.to_text().trim().to_owned();
            if !host.is_empty() && !hosts.contains(&host) {
                check_host(leaf, &host)?;
                hosts.push(host);
            }
        }
    }
    // Clients check only hosts. Source: RFC 6125, section 6.4.4.
    if hosts.is_empty() {
        hosts.extend(common_name.iter().filter(|name| is_host(name)).cloned());
    }
    let first = || {
        hosts
            .first()
            .filter(|host| host.len() <= LONGEST_COMMON_NAME)
    };
    let common_name = common_name.or_else(|| first().cloned());
    if common_name.is_none() && hosts.is_empty() {
        let message = "the certificate has neither a host nor a common name";
        return Err(failed(place(certificate), Reason::InvalidName, message));
    }
    Ok(Names { common_name, hosts })
}

/// Returns a hash that distinguishes certificates by subject, in a Secret with that body.
fn for_what(body: &Node, names: &Names, certificate: &CertificatePlan) -> String {
    let hosts: Vec<Node> = names.hosts.iter().map(|host| Node::from(&**host)).collect();
    let seconds = certificate.valid_for.as_secs();
    hash(&Node::object([
        ("body", body.clone()),
        (
            "commonName",
            names
                .common_name
                .as_deref()
                .map(Node::from)
                .unwrap_or_default(),
        ),
        ("hosts", Node::from(hosts)),
        (
            "validFor",
            Node::from(i64::try_from(seconds).unwrap_or(i64::MAX)),
        ),
    ]))
}

fn check_host(leaf: &Leaf, host: &str) -> Result<(), RenderError> {
    if is_host(host) {
        return Ok(());
    }
    // The rendered value is not reported: it may come from a Secret.
    let message = "the rendered value is not a valid host: expected a name such as `web.example.org` or `*.example.org`, or an address";
    Err(failed(&leaf.path, Reason::InvalidName, message))
}

/// True for a name, a wildcard or an address.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text).to_ascii_lowercase();
    text.parse::<IpAddr>().is_ok() || names::check_dns1123_subdomain(&name).is_ok()
}

fn failed(path: &str, reason: Reason, message: impl Into<String>) -> RenderError {
    RenderError {
        path: path.into(),
        message: message.into(),
        reason,
    }
}

/// A placeholder error for a requested answer; the pass is called again with it.
pub(crate) fn missing_answer(path: &str) -> RenderError {
    failed(path, Reason::Unavailable, "it is asked for")
}

/// Truncates to whole seconds, as in annotations.
fn seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// Adds a duration to a moment; the end of time on overflow.
fn later(moment: Timestamp, by: std::time::Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}
