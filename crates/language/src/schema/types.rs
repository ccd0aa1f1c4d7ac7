//! Static types: what is known of a value before evaluation.

use std::{collections::BTreeMap, fmt, rc::Rc};

use super::{Kinds, NestedSchema, Schema};
use orkestra_object::value::Node;

/// The most constants of one value that are kept; with more, none are.
const MOST_CONSTANTS: usize = 16;

/// A static type: the possible kinds of a value, and the types inside it.
#[derive(Clone, Debug)]
pub struct Type<'s> {
    /// The possible kinds; null is always possible.
    pub may: Kinds,
    /// Possible constants of the template.
    constants: Vec<Constant>,
    /// Whether values other than the constants are possible.
    others: bool,
    inside: Inside<'s>,
}

/// A constant of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The constant's value.
    pub node: Node,
    /// The position in the template's text, in bytes.
    pub at: u32,
}

/// The content of a value.
#[derive(Clone, Debug)]
enum Inside<'s> {
    /// Nothing is known.
    Unknown,
    /// The content according to a schema.
    Schema(Schema<'s>),
    /// All items or values have one type.
    Each(Rc<Type<'s>>),
    /// The types of known names; other names are unknown.
    Names(Rc<BTreeMap<String, Type<'s>>>),
    /// The content of a type, and additional names.
    Extended(Rc<(Type<'s>, BTreeMap<String, Type<'s>>)>),
}

/// A field that a value cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoField<'s> {
    /// The value's type, in words.
    pub within: String,
    /// The fields that exist.
    pub fields: Vec<&'s str>,
}

impl<'s> Type<'s> {
    /// The unknown type.
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

    /// A constant at a byte position of the template's text.
    pub fn constant(node: &Node, at: u32) -> Self {
        Self::of_constants(vec![Constant {
            node: node.clone(),
            at,
        }])
    }

    /// One of several constants.
    pub fn of_constants(constants: Vec<Constant>) -> Self {
        let kinds = |may, constant: &Constant| may | Kinds::of(&constant.node);
        Self {
            may: constants.iter().fold(Kinds::NONE, kinds),
            constants,
            others: false,
            inside: Inside::Unknown,
        }
    }

    /// Values of these kinds, including some constants.
    pub fn with_constants(may: Kinds, constants: Vec<Constant>) -> Self {
        Self {
            constants,
            ..Self::of(may)
        }
    }

    /// The type of a schema.
    pub fn of_schema(schema: Schema<'s>) -> Self {
        Self {
            inside: Inside::Schema(schema),
            ..Self::of(schema.kinds())
        }
    }

    /// The type of a position below a schema; a position that does not exist is unknown.
    pub fn of_below(below: NestedSchema<'s>) -> Self {
        match below {
            NestedSchema::Schema(schema) => Self::of_schema(schema),
            NestedSchema::Anything | NestedSchema::Nowhere => Self::any(),
        }
    }

    /// A map of values of one type.
    pub fn map_of(each: Self) -> Self {
        Self {
            inside: Inside::Each(Rc::new(each)),
            ..Self::of(Kinds::MAP)
        }
    }

    /// A map with some known names.
    pub fn of_names(names: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self {
            inside: Inside::Names(Rc::new(names.into_iter().collect())),
            ..Self::of(Kinds::MAP)
        }
    }

    /// Returns the same map with one more known name; a type without known names is unchanged.
    #[must_use]
    pub fn with_name(mut self, name: &str, given: Self) -> Self {
        if let Inside::Names(names) = &mut self.inside {
            Rc::make_mut(names).insert(name.to_owned(), given);
        }
        self
    }

    /// Returns the same map with a value at a path that it may lack; if the path exists, it is unchanged.
    #[must_use]
    pub fn with_path(self, path: &[String]) -> Self {
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

    /// Returns the position in a schema that describes the value, if there is exactly one.
    pub fn schema(&self) -> Option<Schema<'s>> {
        match &self.inside {
            Inside::Schema(schema) if self.constants.is_empty() => Some(*schema),
            _ => None,
        }
    }

    /// Returns possible constants of the template.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// True if only the constants are possible.
    pub fn is_constant(&self) -> bool {
        !self.others && !self.constants.is_empty()
    }

    /// Returns the union of the two types.
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

    /// Returns the same type without its constants.
    #[must_use]
    pub fn without_constants(mut self) -> Self {
        self.others |= !self.constants.is_empty();
        self.constants.clear();
        self
    }

    /// Returns the type of a field.
    ///
    /// # Errors
    /// The value cannot have the field.
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
                NestedSchema::Nowhere if self.may == Kinds::MAP => {
                    no_field(schema.fields().collect())
                }
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

    /// Returns the type under any key or of any item.
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
