//! What Katalogs declare and the API server does not enforce: written by the gateway, reported by the Katalogs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use orkestra_plan::KatalogRef;
use tokio::sync::watch;

/// Something that is declared and not in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEnforced {
    /// The Katalogs that declare it; none if it does not belong to a Katalog.
    pub of: BTreeSet<KatalogRef>,
    /// The object, such as `ValidatingAdmissionPolicy ponds.water.example.deny`.
    pub object: String,
    /// Why it is not in place.
    pub why: String,
}

impl fmt::Display for NotEnforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.why)
    }
}

/// What is not in place, by Katalog and object.
type ByKatalog = BTreeMap<KatalogRef, BTreeMap<String, String>>;

/// What is known of enforcement.
#[derive(Debug)]
struct Known {
    lacking: Arc<ByKatalog>,
    /// Whether the API server has policies, as far as is known.
    policies: bool,
}

/// What is not in place at the moment.
#[derive(Debug)]
pub struct Enforcement(watch::Sender<Known>);

impl Default for Enforcement {
    fn default() -> Self {
        Self(watch::Sender::new(Known {
            lacking: Arc::default(),
            policies: true,
        }))
    }
}

impl Enforcement {
    /// Sets what is not in place. While an object is not, its first message stays: one with a port or a time would differ at each
    /// attempt.
    pub fn set(&self, problems: &[NotEnforced]) {
        self.0.send_if_modified(|known| {
            let mut now = ByKatalog::new();
            for problem in problems {
                for katalog in &problem.of {
                    let before = known
                        .lacking
                        .get(katalog)
                        .and_then(|of| of.get(&problem.object));
                    let why = before.unwrap_or(&problem.why).clone();
                    let of = now.entry(katalog.clone()).or_default();
                    of.insert(problem.object.clone(), why);
                }
            }
            let differs = *known.lacking != now;
            if differs {
                known.lacking = Arc::new(now);
            }
            differs
        });
    }

    /// Sets whether the API server has policies.
    pub fn serve_policies(&self, are_served: bool) {
        self.0.send_if_modified(|known| {
            let differs = known.policies != are_served;
            known.policies = are_served;
            differs
        });
    }

    /// True if the API server has policies, as far as is known.
    pub fn has_policies(&self) -> bool {
        self.0.borrow().policies
    }

    /// Returns what a Katalog declares and is not in place, one line for each object.
    pub fn of(&self, katalog: &KatalogRef) -> Vec<String> {
        let known = self.0.borrow();
        let objects = known.lacking.get(katalog).into_iter().flatten();
        objects
            .map(|(object, why)| format!("{object} is not in place: {why}"))
            .collect()
    }

    /// A receiver that changes whenever something is in place, or no longer is.
    pub fn changed(&self) -> EnforcementChanges {
        EnforcementChanges(self.0.subscribe())
    }
}

/// Awaits changes of [`Enforcement`].
#[derive(Debug)]
pub struct EnforcementChanges(watch::Receiver<Known>);

impl EnforcementChanges {
    /// Waits for the next change; never returns if there will be none.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_katalog_reports_only_its_own_problems_and_each_with_its_first_message() {
        let katalog = |name: &str| KatalogRef::new("shop".to_owned(), name.to_owned());
        let problem = |of: &[&str], why: &str| NotEnforced {
            of: of.iter().map(|name| katalog(name)).collect(),
            object: "ValidatingAdmissionPolicy a".to_owned(),
            why: why.to_owned(),
        };
        let enforcement = Enforcement::default();
        enforcement.set(&[problem(&["one"], "forbidden")]);
        let line = "ValidatingAdmissionPolicy a is not in place: forbidden";
        assert_eq!(enforcement.of(&katalog("one")), [line]);
        assert!(enforcement.of(&katalog("two")).is_empty());
        enforcement.set(&[problem(&["one"], "forbidden, at 12:00")]);
        assert_eq!(enforcement.of(&katalog("one")), [line]);
        enforcement.set(&[problem(&[], "forbidden")]);
        assert!(enforcement.of(&katalog("one")).is_empty());
    }
}
