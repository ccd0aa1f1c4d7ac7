//! Which expressions read Secrets: what is made of them must not be told.
//!
//! Two questions are asked. [`OperatorPlan::reads_secrets`]: may a message of the API server about an object quote a Secret?
//! Then the message is withheld. [`check`]: does a template put the value of a Secret where more people read it than may
//! read Secrets? That is an error. The second follows values to the result of a template: the name of a Secret, and whether
//! it has a key, may be told.

mod told;

use super::{ChildPlan, GroupKind, Leaf, OperatorPlan};
use crate::{
    template::Template,
    value::{Path, Step},
};

pub(super) use told::check;

impl OperatorPlan {
    /// Whether the values of Secrets may be in what the child is rendered to.
    pub fn shows_secrets(&self, child: &ChildPlan) -> bool {
        let mut shows = false;
        let mut look = |leaf: &Leaf| shows |= self.reads_secrets(child.import, &leaf.template);
        look(&child.name);
        child.namespace.iter().for_each(&mut look);
        child.body.visit(&mut look);
        child.upkeep().for_each(look);
        shows
    }

    /// Whether the values of Secrets may be in what is written to the status.
    pub fn status_shows_secrets(&self) -> bool {
        let mut fields = self.status.fields.iter();
        fields.any(|field| self.reads_secrets(field.import, &field.value.template))
    }

    /// Whether a template of `import` reads Secrets among the children, itself or by an input.
    pub fn reads_secrets(&self, import: Option<usize>, template: &Template) -> bool {
        let mut paths = template.reads().iter();
        paths.any(|path| self.is_secret(import, path))
    }

    fn is_secret(&self, import: Option<usize>, path: &Path) -> bool {
        let field = |at: usize| match path.steps().get(at) {
            Some(Step::Field(name)) => Some(&**name),
            _ => None,
        };
        // The data of the Secret that is operated.
        let is_operated = self.resource.group_kind() == GroupKind::parse("Secret");
        match (field(0), field(1)) {
            (Some("data" | "stringData") | None, _) if is_operated => true,
            (Some("children"), Some(name)) => {
                let mut names = self.children_names.iter();
                names.any(|alias| &*alias.name == name && alias.kind == GroupKind::parse("Secret"))
            }
            // All children, or the whole of what templates read.
            (Some("children"), None) | (None, _) => self.has_secrets(),
            (Some("inputs"), name) => {
                let inputs = import.and_then(|import| self.imports.get(import));
                inputs.is_some_and(|plan| {
                    let mut shows = false;
                    plan.visit_given(name, &mut |leaf| {
                        shows |= self.reads_secrets(plan.outer, &leaf.template);
                    });
                    shows
                })
            }
            _ => false,
        }
    }

    fn has_secrets(&self) -> bool {
        let secret = GroupKind::parse("Secret");
        self.children
            .iter()
            .any(|child| child.kind.group_kind() == secret)
    }
}
