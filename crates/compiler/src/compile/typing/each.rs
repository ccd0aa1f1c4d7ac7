//! Types of the elements of a list or map.

use super::{Typing, problem};
use orkestra_language::{
    diagnostics::{Code, Severity},
    schema::{Kinds, Type, with_article},
};
use orkestra_plan::{
    ForEachPlan,
    for_each::{INDEX, ITEM, VALUE},
};

impl<'s> Typing<'_, 's> {
    /// Returns the template root of an entry that is expanded for each element.
    pub(crate) fn element(&self, each: &ForEachPlan) -> Type<'s> {
        let field = each.path.field("field");
        let list = self.path(&each.field).unwrap_or_else(|found| {
            self.record(field, Severity::Error, found);
            Type::any()
        });
        let (item, value) = if list.may == Kinds::LIST {
            (list.each(), None)
        } else if list.may == Kinds::MAP && each.pairs {
            let entry = [("key", Type::of(Kinds::TEXT)), ("value", list.each())];
            let pair = Type::of_names(entry.map(|(name, given)| (name.to_owned(), given)));
            (pair, Some(list.each()))
        } else if list.may == Kinds::MAP {
            (Type::of(Kinds::TEXT), Some(list.each()))
        } else {
            if list.may != Kinds::NONE && !list.may.meets(Kinds::LIST | Kinds::MAP) {
                let found = with_article(&list.to_string());
                let message = format!("`{}` is {found}, neither a list nor a map", each.field);
                let found = problem(Code::WrongValue, 0, message);
                self.record(field, Severity::Error, found);
            }
            (Type::any(), Some(Type::any()))
        };
        let root = self.root().clone().with_name(ITEM, item.clone());
        let root = root.with_name(INDEX, Type::of(Kinds::INT));
        let root = match value {
            Some(value) => root.with_name(VALUE, value),
            None => root,
        };
        root.with_name(&each.name, item)
    }
}
