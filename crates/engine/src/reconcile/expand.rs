//! `forEach`: the elements for which a declaration creates one child each.

use super::{
    gate,
    reason::Reason,
    render::{RenderError, Renderer},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    ForEachPlan,
    for_each::{INDEX, ITEM, VALUE},
};
use orkestra_template::Data;

/// The maximum number of elements: one custom resource must not fill the cluster.
pub(crate) const MOST_ELEMENTS: usize = 1000;

/// The elements of one declaration, in the order of the list or of the map's keys.
pub(crate) struct Elements<'p> {
    each: &'p ForEachPlan,
    elements: Vec<Element>,
}

/// The additional data for the templates of an element.
struct Element {
    item: Node,
    index: Node,
    /// For an entry of a map.
    value: Option<Node>,
}

impl<'p> Elements<'p> {
    /// Returns the elements as the pass sees them; none if the field is missing.
    ///
    /// # Errors
    /// The field cannot be read, is neither list nor map, or has too many elements.
    pub(crate) fn of(
        each: &'p ForEachPlan,
        renderer: &Renderer<'_, '_>,
    ) -> Result<Self, RenderError> {
        let error = |reason, message| RenderError {
            path: each.path.clone().into(),
            message,
            reason,
        };
        if let Some(message) = renderer.frame.sources.why_not([&each.field]) {
            return Err(error(Reason::Unavailable, message));
        }
        let items: Vec<(Node, Option<Node>)> = match gate::at(renderer.data, &each.field) {
            None => Vec::new(),
            Some(Node::List(items)) => items.iter().map(|item| (item.clone(), None)).collect(),
            Some(Node::Map(entries)) => entries
                .iter()
                .map(|(key, value)| entry(each, key, value))
                .collect(),
            Some(blank) if blank.is_empty_value() => Vec::new(),
            Some(_) => {
                let message = format!("`{}` is neither a list nor a map", each.field);
                return Err(error(Reason::WrongType, message));
            }
        };
        if items.len() > MOST_ELEMENTS {
            let message = format!(
                "`{}` has {} elements; at most {MOST_ELEMENTS} can create children",
                each.field,
                items.len()
            );
            return Err(error(Reason::BudgetExhausted, message));
        }
        let places = (0i64..).map(Node::from);
        let elements = items.into_iter().zip(places);
        let elements = elements.map(|((item, value), index)| Element { item, index, value });
        Ok(Self {
            each,
            elements: elements.collect(),
        })
    }

    /// Returns the template data for each element, based on `data`; with its position, for messages.
    pub(crate) fn data<'d>(&'d self, data: &Data<'d>) -> impl Iterator<Item = (String, Data<'d>)> {
        let data = data.clone();
        self.elements.iter().map(move |element| {
            let Element { item, index, value } = element;
            let mut around = data.clone().with(ITEM, item).with(INDEX, index);
            if let Some(value) = value {
                around = around.with(VALUE, value);
            }
            let place = self.each.place_of(&index.to_text());
            (place, around.with(&self.each.name, item))
        })
    }
}

/// Returns `.item` and `.value` for an entry of a map.
fn entry(each: &ForEachPlan, key: &str, value: &Node) -> (Node, Option<Node>) {
    let item = if each.pairs {
        Node::object([("key", Node::from(key)), ("value", value.clone())])
    } else {
        Node::from(key)
    };
    (item, Some(value.clone()))
}
