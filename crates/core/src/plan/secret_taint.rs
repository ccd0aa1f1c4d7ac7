//! Finds expressions that read Secrets, whose results must not be disclosed.
//!
//! There are two checks. [`OperatorPlan::reads_secrets`]: a message of the API server about an object may quote a Secret;
//! such a message is withheld. [`check`]: a template puts the value of a Secret where more people can read it than may read
//! Secrets; that is an error. The second follows values to the result of a template: the name of a Secret, and whether it
//! has a key, may be disclosed.

use super::{ChildPlan, GroupKind, Leaf, OperatorPlan};
use crate::{
    template::Template,
    value::{Path, PathStep},
};

impl OperatorPlan {
    /// True if the rendered child may contain values of Secrets.
    pub fn shows_secrets(&self, child: &ChildPlan) -> bool {
        let mut shows = false;
        let mut look = |leaf: &Leaf| shows |= self.reads_secrets(child.import, &leaf.template);
        look(&child.name);
        child.namespace.iter().for_each(&mut look);
        child.body.visit(&mut look);
        child.upkeep().for_each(look);
        shows
    }

    /// True if the written status may contain values of Secrets.
    pub fn status_shows_secrets(&self) -> bool {
        let mut fields = self.status.fields.iter();
        fields.any(|field| self.reads_secrets(field.import, &field.value.template))
    }

    /// True if a template of `import` reads Secrets among the children, directly or by an input.
    pub fn reads_secrets(&self, import: Option<usize>, template: &Template) -> bool {
        let mut paths = template.reads().iter();
        paths.any(|path| self.is_secret(import, path))
    }

    fn is_secret(&self, import: Option<usize>, path: &Path) -> bool {
        let field = |at: usize| match path.steps().get(at) {
            Some(PathStep::Field(name)) => Some(&**name),
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
            // All children, or the root of all data.
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
