//! What is known of a value before there is one.

use std::{collections::BTreeMap, fmt, rc::Rc};

use super::{Below, Kinds, Schema};
use crate::value::Node;

/// More constants of one value are not kept: of them nothing is said.
const MOST_CONSTANTS: usize = 16;

/// What is known of a value: which kinds may come, and what lies inside.
#[derive(Clone, Debug)]
pub struct Type<'s> {
    /// The kinds that may come; null may always.
    pub may: Kinds,
    /// Constants of the template that may come.
    constants: Vec<Constant>,
    /// Whether other values than the constants may come.
    others: bool,
    inside: Inside<'s>,
}

/// A constant of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its value.
    pub node: Node,
    /// Where it stands in the template's text, in bytes.
    pub at: u32,
}

/// What lies in a value.
#[derive(Clone, Debug)]
enum Inside<'s> {
    /// Nothing is known.
    Unknown,
    /// What the schema says.
    Schema(Schema<'s>),
    /// One type in all items or values.
    Each(Rc<Type<'s>>),
    /// These names, of which the others are unknown.
    Names(Rc<BTreeMap<String, Type<'s>>>),
    /// What a type has, and these names beside it.
    Extended(Rc<(Type<'s>, BTreeMap<String, Type<'s>>)>),
}

/// A field that a value cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoField<'s> {
    /// What the value is, in words.
    pub within: String,
    /// The fields that it has.
    pub fields: Vec<&'s str>,
}

impl<'s> Type<'s> {
    /// Nothing is known.
    pub fn any() -> Self {
        Self::of(Kinds::ANY)
    }

    /// Values of these kinds.
    pub fn of(may: Kinds) -> Self {
        Self {
            may,
            constants: Vec::new(),
            others: may != Kinds::NONE,
            inside: Inside::Unknown,
        }
    }

    /// A constant at a byte of the template's text.
    pub fn constant(node: &Node, at: u32) -> Self {
        Self::of_constants(vec![Constant {
            node: node.clone(),
            at,
        }])
    }

    /// One of some constants.
    pub(crate) fn of_constants(constants: Vec<Constant>) -> Self {
        let kinds = |may, constant: &Constant| may | Kinds::of(&constant.node);
        Self {
            may: constants.iter().fold(Kinds::NONE, kinds),
            constants,
            others: false,
            inside: Inside::Unknown,
        }
    }

    /// Values of these kinds, and among them some constants.
    pub(crate) fn with_constants(may: Kinds, constants: Vec<Constant>) -> Self {
        Self {
            constants,
            ..Self::of(may)
        }
    }

    /// What a schema describes.
    pub(crate) fn of_schema(schema: Schema<'s>) -> Self {
        Self {
            inside: Inside::Schema(schema),
            ..Self::of(schema.kinds())
        }
    }

    /// What lies below a place of a schema; nowhere is nothing known.
    pub(crate) fn of_below(below: Below<'s>) -> Self {
        match below {
            Below::Schema(schema) => Self::of_schema(schema),
            Below::Anything | Below::Nowhere => Self::any(),
        }
    }

    /// A map of values of one type.
    pub(crate) fn map_of(each: Self) -> Self {
        Self {
            inside: Inside::Each(Rc::new(each)),
            ..Self::of(Kinds::MAP)
        }
    }

    /// A map of which some names are known.
    pub(crate) fn of_names(names: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self {
            inside: Inside::Names(Rc::new(names.into_iter().collect())),
            ..Self::of(Kinds::MAP)
        }
    }

    /// The same map, with one name more that is known; what has no known names stays as it is.
    #[must_use]
    pub(crate) fn with_name(mut self, name: &str, given: Self) -> Self {
        if let Inside::Names(names) = &mut self.inside {
            Rc::make_mut(names).insert(name.to_owned(), given);
        }
        self
    }

    /// The same map with something at a path that it may not have: what has it stays as it is.
    #[must_use]
    pub(crate) fn with_path(self, path: &[String]) -> Self {
        let Some((first, rest)) = path.split_first() else {
            return self;
        };
        let known = self.field(first);
        let inner = match (known, rest) {
            (Ok(_), []) => return self,
            (Ok(inner), rest) => inner.with_path(rest),
            (Err(_), []) => Self::any(),
            (Err(_), rest) => Self::of_names([]).with_path(rest),
        };
        match self.inside {
            Inside::Names(_) => self.with_name(first, inner),
            Inside::Extended(ref known) => {
                let mut known = (**known).clone();
                known.1.insert(first.clone(), inner);
                let inside = Inside::Extended(Rc::new(known));
                Self { inside, ..self }
            }
            _ => Self {
                inside: Inside::Extended(Rc::new((
                    self.clone(),
                    BTreeMap::from([(first.clone(), inner)]),
                ))),
                ..self
            },
        }
    }

    /// The place in a schema that describes it, if exactly one does.
    pub fn schema(&self) -> Option<Schema<'s>> {
        match &self.inside {
            Inside::Schema(schema) if self.constants.is_empty() => Some(*schema),
            _ => None,
        }
    }

    /// Constants of the template that may come.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Whether nothing but its constants may come.
    pub(crate) fn is_constant(&self) -> bool {
        !self.others && !self.constants.is_empty()
    }

    /// Either of the two.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        let composite = Kinds::LIST | Kinds::MAP;
        self.inside = match (self.may.meets(composite), other.may.meets(composite)) {
            _ if self.may == Kinds::NONE => other.inside,
            _ if other.may == Kinds::NONE => self.inside,
            (true, false) => self.inside,
            (false, true) => other.inside,
            _ => Inside::Unknown,
        };
        self.may = self.may | other.may;
        self.others |= other.others;
        self.constants.extend(other.constants);
        if self.constants.len() > MOST_CONSTANTS {
            self = self.without_constants();
        }
        self
    }

    /// The same without its constants.
    #[must_use]
    pub(crate) fn without_constants(mut self) -> Self {
        self.others |= !self.constants.is_empty();
        self.constants.clear();
        self
    }

    /// What lies under a field.
    ///
    /// # Errors
    /// The value cannot have it.
    pub fn field(&self, key: &str) -> Result<Self, NoField<'s>> {
        let no_field = |fields| {
            Err(NoField {
                within: self.to_string(),
                fields,
            })
        };
        if !self.may.meets(Kinds::MAP) && self.may != Kinds::NONE {
            return no_field(Vec::new());
        }
        match &self.inside {
            Inside::Schema(schema) => match schema.field(key) {
                Below::Nowhere if self.may == Kinds::MAP => no_field(schema.fields().collect()),
                below => Ok(Self::of_below(below)),
            },
            Inside::Each(each) if self.may == Kinds::MAP => Ok((**each).clone()),
            Inside::Names(names) => Ok(names.get(key).cloned().unwrap_or_else(Self::any)),
            Inside::Extended(known) => match known.1.get(key) {
                Some(added) => Ok(added.clone()),
                None => known.0.field(key),
            },
            Inside::Each(_) | Inside::Unknown => Ok(Self::any()),
        }
    }

    /// What lies under any key or in any item.
    #[must_use]
    pub fn each(&self) -> Self {
        match &self.inside {
            Inside::Schema(schema) => Self::of_below(schema.any_value()),
            Inside::Each(each) => (**each).clone(),
            Inside::Unknown | Inside::Names(_) | Inside::Extended(_) => Self::any(),
        }
    }
}

/// In words: `integer`, `list of text`, `one of dev, prod`, `anything`.
impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inside {
            Inside::Schema(schema) if self.may == schema.kinds() => f.write_str(&schema.describe()),
            Inside::Each(each) if self.may == Kinds::MAP => write!(f, "map of {each}"),
            Inside::Each(each) if self.may == Kinds::LIST => write!(f, "list of {each}"),
            _ => self.may.fmt(f),
        }
    }
}
