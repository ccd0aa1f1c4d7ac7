//! Rules that complete and check custom resources.

use super::{CelRule, Gate, ImportPlan, Leaf, Moments, inputs};
use orkestra_object::value::{Key, Path, PathStep};

/// Rules that change and check a custom resource before anything else is decided.
#[derive(Debug, Default)]
pub struct RulesPlan {
    /// Normalized values of the spec, sorted by path; no path is below another. All read the custom resource as observed.
    pub normalize: Box<[Normalized]>,
    /// True if they are written to the custom resource itself (`persist`).
    pub persist: bool,
    /// True if templates read their changes (`audit`).
    pub audit: bool,
    /// Mutation rules, in order; each sees the changes of those before.
    pub mutation: Box<[Completion]>,
    /// True if mutation depends on responses to calls, so that it runs after the gates.
    pub late: bool,
    /// Validation rules, in order.
    pub validation: Box<[ValidationRulePlan]>,
}

/// A normalized value of the spec.
#[derive(Debug)]
pub struct Normalized {
    /// The path from the custom resource's root, without list items.
    pub path: Path,
    /// The value.
    pub value: Leaf,
    /// True if the definition has the field; others are never written.
    pub is_known: bool,
    /// The moments at which it applies.
    pub moments: Moments,
}

/// A mutation rule.
#[derive(Debug)]
pub struct Completion {
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// The field to set.
    pub target: CompletionTarget,
    /// The value.
    pub value: Leaf,
    /// True if it is always set (`override`); otherwise only if the field is absent.
    pub always: bool,
    /// The gate of the rule.
    pub gate: Gate,
    /// The moments at which it applies.
    pub moments: Moments,
    /// The rule as a JSON patch of CEL: an expression whose value is a list of `JSONPatch`; or why it cannot be one.
    pub cel: Result<Box<str>, Box<str>>,
}

/// The field that a [`Completion`] sets.
#[derive(Debug)]
pub enum CompletionTarget {
    /// The path from the custom resource's root.
    Path(Path),
    /// A template for the path.
    Rendered(Leaf),
}

/// A validation rule.
#[derive(Debug)]
pub struct ValidationRulePlan {
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// Its label in messages: its name, or its field.
    pub label: Box<str>,
    /// The condition to meet.
    pub test: Gate,
    /// If closed, the rule passes: the field is absent (`optional`).
    pub present: Gate,
    /// The message if it fails.
    pub message: Leaf,
    /// True if a failure is a warning; otherwise the custom resource is refused.
    pub warns: bool,
    /// The gate of the rule.
    pub gate: Gate,
    /// The moments at which it applies.
    pub moments: Moments,
    /// The rule as CEL says it, or why it cannot.
    pub cel: Result<CelRule, Box<str>>,
}

impl RulesPlan {
    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.normalize.is_empty() && self.mutation.is_empty() && self.validation.is_empty()
    }

    /// Returns the paths of the custom resource that rules compare or set, whether templates read them or not.
    pub fn touched(&self) -> impl Iterator<Item = Path> {
        let normalized = self.normalize.iter().map(|one| one.path.clone());
        let completed = self.mutation.iter().flat_map(|one| match &one.target {
            CompletionTarget::Path(path) => vec![up_to_list(path)],
            CompletionTarget::Rendered(_) => ROOTS.iter().copied().map(root).collect(),
        });
        normalized.chain(completed)
    }

    /// Returns the paths of the custom resource that rules set.
    pub fn made(&self) -> impl Iterator<Item = &Path> {
        let normalized = self.normalize.iter().map(|one| &one.path);
        let completed = self.mutation.iter().filter_map(|one| match &one.target {
            CompletionTarget::Path(path) => Some(path),
            CompletionTarget::Rendered(_) => None,
        });
        normalized.chain(completed)
    }

    /// Returns the fields of the custom resource that depend on the state of the cluster, such as those made from its
    /// status or its children.
    pub fn live(&self, imports: &[ImportPlan]) -> Vec<Path> {
        let mut live: Vec<Path> = Vec::new();
        for one in &self.normalize {
            let mut reads = one.value.template.reads().iter();
            if !reads.all(|path| inputs::is_intent(path, None)) {
                live.push(one.path.clone());
            }
        }
        for one in &self.mutation {
            let import = one.import.and_then(|import| imports.get(import));
            let mut is_intent = true;
            let mut look = |path: &Path| {
                let mut known = live.iter();
                is_intent &=
                    inputs::is_intent(path, import) && !known.any(|known| known.overlaps(path));
            };
            one.value.template.reads().iter().for_each(&mut look);
            for condition in one.gate.iter() {
                condition.visit_reads(&mut look);
            }
            let target = match &one.target {
                CompletionTarget::Path(path) => path.clone(),
                CompletionTarget::Rendered(leaf) => {
                    leaf.template.reads().iter().for_each(&mut look);
                    Path::root()
                }
            };
            if !is_intent {
                live.push(target);
            }
        }
        live
    }
}

/// Returns the path up to the first list item: a list is read whole, since its length matters.
fn up_to_list(path: &Path) -> Path {
    let is_item = |step: &PathStep| match step {
        PathStep::Index(_) => true,
        PathStep::Field(key) => key.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let steps = path.steps().iter().take_while(|step| !is_item(step));
    steps.cloned().collect()
}

/// The roots that rules may change.
pub const ROOTS: [&[&str]; 3] = [
    &["spec"],
    &["metadata", "labels"],
    &["metadata", "annotations"],
];

/// Returns the path of one of [`ROOTS`].
pub fn root(names: &[&str]) -> Path {
    let step = |name: &&str| PathStep::Field(Key::from(*name));
    names.iter().map(step).collect()
}

/// Checks that rules may set the field at `path`: a field of the spec, a label or an annotation.
///
/// # Errors
/// The reason, and the fix if there is one.
pub fn target_of(path: &Path) -> Result<(), (String, Option<String>)> {
    let is_spec = path.starts_with(&root(ROOTS[0]));
    let is_meta = ROOTS[1..]
        .iter()
        .any(|names| path.starts_with(&root(names)));
    let steps = path.steps().len();
    if (is_spec && steps > 1) || (is_meta && steps == 3) {
        return Ok(());
    }
    if is_meta && steps > 3 {
        let [PathStep::Field(_), PathStep::Field(map), rest @ ..] = path.steps() else {
            return Ok(());
        };
        let key = rest.iter().cloned().collect::<Path>();
        let message = format!("`{path}` lies below a value");
        let hint = format!("a key with dots is quoted: `metadata.{map}[\"{key}\"]`");
        return Err((message, Some(hint)));
    }
    let message =
        format!("rules cannot set `{path}`: they set fields of `spec`, labels and annotations");
    let is_root = matches!(
        path.steps().first(),
        Some(PathStep::Field(root)) if ["apiVersion", "kind", "metadata", "spec", "status"].contains(&&**root)
    );
    let hint = (steps > 0 && !is_root).then(|| format!("did you mean `spec.{path}`?"));
    Err((message, hint))
}
