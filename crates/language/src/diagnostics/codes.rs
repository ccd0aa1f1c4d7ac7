//! The kinds of problems, each with a stable code.
//!
//! A code is never reused for another kind of problem, also after it is removed, because people search for codes and scripts
//! compare them.
//!
//! Each code has a file of its name in `samples/`: the cause in prose, a document with the problem and one without. A code
//! without that file does not compile, and a test runs the documents.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal, $title:literal;)*) => {
        /// A kind of problem. Displays as `ORK0012`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $code = $number,)*
        }

        impl Code {
            /// All codes, by number.
            pub const ALL: &[Code] = &[$(Code::$code,)*];

            /// Returns the problem in a few words.
            pub fn title(self) -> &'static str {
                match self {
                    $(Code::$code => $title,)*
                }
            }

            /// Returns the file with its cause and samples.
            pub(crate) fn file(self) -> &'static str {
                match self {
                    $(Code::$code => include_str!(concat!("samples/", stringify!($code), ".md")),)*
                }
            }
        }
    };
}

codes! {
    // Documents.
    /// The text is not valid YAML.
    Syntax = 1, "the YAML cannot be read";
    /// The document exceeds a limit that protects the reader.
    TooLarge = 2, "the document is too large";
    /// A file without any document.
    NoDocument = 3, "there is no document";
    /// `apiVersion` is missing, old or not Orkestra's.
    ApiVersion = 4, "the `apiVersion` is not supported";
    /// `kind` is missing, unknown or not implemented yet.
    DocumentKind = 5, "the `kind` is not supported";
    /// Fields have too little indentation.
    LostIndentation = 6, "the indentation is lost";
    /// A file that a document names is missing or not text.
    Unreadable = 7, "the file cannot be read";
    /// Two documents with the same name.
    SameNameTwice = 8, "two documents have the same name";
    /// A field that the language does not have.
    UnknownField = 10, "unknown field";
    /// A field or a word of the language that is not implemented yet.
    NotSupportedYet = 11, "this is not supported yet";
    /// A declaration without effect.
    NoEffect = 12, "this has no effect";
    /// A value of the wrong shape, such as a list in place of a map.
    WrongShape = 13, "the value has the wrong shape";
    /// A required field.
    Missing = 14, "a field is missing";
    /// A number outside its range.
    OutOfRange = 15, "the number is out of range";
    /// A word that is not one of the possible values.
    UnknownWord = 16, "unknown value";
    /// Text that is not a duration.
    BadDuration = 17, "invalid duration";
    /// An earlier or alternative spelling.
    OtherSpelling = 18, "this is an earlier spelling";
    /// The same setting in two spellings.
    TwoSpellings = 19, "the field is set under two names";
    /// A name that Kubernetes rejects.
    BadName = 20, "invalid name";
    /// A key of data or an environment variable that Kubernetes rejects.
    BadKey = 21, "invalid key";
    /// An empty value where one is required.
    Empty = 22, "the value is empty";
    /// The same setting in two places.
    SetTwice = 23, "this is set twice";
    /// Fields that are mutually exclusive, or of which one is required.
    Exclusive = 24, "the fields are mutually exclusive";
    /// A document that its author has deprecated.
    Deprecated = 25, "the document is deprecated";

    // Templates.
    /// A template that cannot be parsed.
    TemplateSyntax = 100, "the template cannot be read";
    /// A function that does not exist.
    UnknownNote = 101, "unknown function";
    /// Too few or too many arguments.
    ArgumentCount = 102, "wrong number of arguments";
    /// An argument of a wrong type.
    ArgumentType = 103, "wrong type of argument";
    /// A variable before its declaration.
    UnknownVariable = 104, "the variable is not declared";
    /// A path without its leading dot.
    MissingDot = 105, "the path lacks its leading dot";
    /// Data that templates cannot read in this position.
    UnknownData = 106, "unknown data";
    /// A template in a field that does not accept one.
    NotATemplate = 107, "a template is not permitted here";
    /// A template whose result is not valid for the field.
    WrongValue = 108, "the value does not fit the field";
    /// A function of another engine that templates here cannot call.
    RefusedNote = 109, "the function is refused";
    /// A random note whose value is not stored.
    RandomValue = 110, "a random value is not kept here";
    /// A user's note that no template can call.
    NoteName = 111, "invalid function name";
    /// A user's note with the name of a built-in one.
    HiddenNote = 112, "a built-in function is hidden";
    /// User's notes that depend on their own results.
    NoteCircle = 113, "functions call each other in a cycle";
    /// A `default` with its value before its fallback.
    FallbackFirst = 114, "the fallback comes first";
    /// Two Motifs with a note of the same name.
    NoteTwice = 115, "two Motifs declare the same function";
    /// A child that the operatorBox does not declare.
    UnknownChild = 116, "unknown child";
    /// An entry of `cross` that the operatorBox does not declare.
    UnknownCross = 117, "unknown entry of `cross`";
    /// Arguments in the order of another template language.
    ArgumentOrder = 118, "the arguments are in the wrong order";
    /// An expression of another template language, which is treated as text.
    OtherLanguage = 119, "this is an expression of another language";

    // Operators.
    /// Neither `apiTypes` nor a CRD.
    NoApiTypes = 200, "the operator has no API types";
    /// The declaration differs from the CRD.
    KindMismatch = 201, "the declaration differs from the definition";
    /// A kind that must not be operated or created.
    ReservedKind = 202, "the kind cannot be used for this";
    /// Two operators for the same kind and version.
    SameKindTwice = 203, "two operators have the same kind";
    /// `default: false`.
    CustomReconciler = 205, "the reconciler is declared twice, or not at all";
    /// Finalizers other than Orkestra's.
    Finalizers = 206, "the finalizers are not valid";
    /// A `crdFile` that is not a CRD.
    CrdFile = 207, "the definition cannot be used";
    /// `dependsOn` names an operator that the Katalog does not have.
    UnknownOperator = 208, "unknown operator";
    /// Operators that wait for each other.
    DependencyCircle = 209, "operators depend on each other in a cycle";
    /// A condition of an autoscaler on a metric that no operator has.
    UnknownMetric = 210, "unknown metric";
    /// A share of the queue's depth, without a declared depth.
    NoDepth = 211, "the queue has no maximum depth";
    /// A CRD that the API server would refuse, or a part of one that is probably a mistake.
    RefusedDefinition = 214, "the API server would refuse the definition";
    /// A CRD without the status subresource, for a Katalog that writes status.
    NoStatusSubresource = 215, "the definition has no status subresource";
    /// A `schema` of an entry that cannot be read, or that the API server would refuse.
    BadSchema = 216, "the schema cannot be used";

    // Children.
    /// Text that is not an API version.
    BadApiVersion = 300, "invalid API version";
    /// A kind that Kubernetes does not have.
    UnknownKind = 301, "Kubernetes has no such kind";
    /// A kind that is not known, so that its plural is a guess.
    GuessedPlural = 302, "the kind is not known here";
    /// Two children of the same kind and name.
    SameChildTwice = 303, "two children are the same object";
    /// A custom resource that creates another of its own kind.
    EndlessChildren = 304, "children would create children endlessly";
    /// A child that is never removed.
    LeftBehind = 305, "the child outlives its custom resource";
    /// A label or annotation under Orkestra's prefix.
    ReservedLabel = 306, "the key is Orkestra's own";
    /// A Service, or another object that selects Pods, without a workload, or with several.
    ServiceSelector = 307, "no workload to select";
    /// A Service or a probe without a port.
    NoPort = 308, "no port";
    /// Text that is not a capability.
    Capability = 309, "invalid capability";
    /// A text in place of a list of words.
    Words = 310, "a list of words is needed";
    /// A copy of an object in another namespace that the custom resource names, or a custom resource that is read there.
    OpenSource = 311, "anything could be read from another namespace";
    /// A binding whose role the custom resource chooses.
    UnknownRole = 312, "the permission to bind the role cannot be derived";
    /// A child in a namespace that a custom resource chooses.
    OpenTarget = 313, "the custom resource chooses the namespace of a child";

    /// A patch of fields that identify an object, or that are not stored.
    PatchRefused = 320, "the patch changes a protected field";
    /// Text that is not a cron expression.
    BadSchedule = 321, "invalid schedule";
    /// `onImmutable: recreate` on an object that holds data.
    LosesData = 322, "data would be lost";
    /// A reference to a child that the operator does not declare, with a similar name to one that it does.
    NotDeclared = 323, "no child has this name";
    /// A reference to a key that a declared Secret or `ConfigMap` does not have.
    NoSuchKey = 324, "the child has no such key";
    /// A mount of a volume that the Pod does not have.
    NoVolume = 325, "the pod has no such volume";
    /// A port that no container of the workload listens on.
    PortMismatch = 326, "no container listens on this port";
    /// A selector that matches no workload's Pods.
    SelectsNothing = 327, "the selector matches no pods";
    /// A namespaced child of a cluster-scoped custom resource, without a namespace.
    NoNamespace = 328, "the child has no namespace";
    /// Text that is not an image reference.
    BadImage = 329, "the image reference is not valid";
    /// A valid amount of an unusual order of magnitude.
    OddAmount = 330, "the quantity is unlikely";

    // Conditions and status.
    /// A condition without a field.
    ConditionWithoutField = 400, "the condition has no field";
    /// Text that is not a path.
    BadPath = 401, "invalid path";
    /// `operator` without `value`.
    OperatorWithoutValue = 402, "the operator needs a value";
    /// `value` without `operator`.
    ValueWithoutOperator = 403, "the value needs an operator";
    /// A condition without a test.
    AsksNothing = 404, "the condition has no test";
    /// Text that is not a regular expression.
    BadRegex = 405, "invalid regular expression";
    /// Bounds that are not two numbers in ascending order.
    BadBounds = 406, "invalid bounds";
    /// An invalid time, day or schedule, or one that never occurs.
    TimeCondition = 407, "invalid time condition";
    /// `unique` on something other than a path of the custom resource.
    UniqueOperand = 408, "`unique` takes a path of the custom resource";
    /// Two status fields, one of which is below the other.
    StatusOverlap = 410, "one status field is nested in another";
    /// A status field that Orkestra writes.
    StatusReserved = 411, "Orkestra writes this itself";
    /// A status field that the CRD lacks.
    StatusUnknown = 412, "the definition has no such status field";
    /// `status.` at the start of a status path.
    StatusPrefix = 413, "status paths are relative";

    /// A condition waits for a value that no status field writes.
    NeverWritten = 414, "no status field writes this";
    /// A key that `enrich` could add to children, but that is not listed there.
    NotAdded = 415, "nothing adds this to children";
    /// A value of a Secret in a place that more people can read.
    SecretShown = 416, "the value of a Secret would be shown";
    // Rules.
    /// A field of the spec that the CRD lacks.
    SpecUnknown = 420, "the definition has no such field of the spec";
    /// A field that no rule can set.
    NotSettable = 421, "rules cannot set this";
    /// A field that no path of a conversion carries, or a required one that none sets.
    ConversionLoses = 422, "the conversion loses a field";

    // Schemas and types.
    /// A path that cannot exist in the schema.
    NoSuchField = 500, "the schema has no such field";
    /// A comparison of types that are never equal.
    ComparedTypes = 501, "values of two types are compared";
    /// A word that is not in the schema's enum.
    NotInEnum = 502, "the schema does not list the value";
    /// Text that may be invalid for the field.
    MayNotFit = 503, "the text may not fit the field";

    // Imports and includes.
    /// A Motif or an included file that does not exist.
    NotFound = 600, "the reference does not exist";
    /// Motifs that import each other.
    ImportCycle = 601, "the imports form a cycle";
    /// A required input of an import.
    MissingInput = 602, "a required input is missing";
    /// An input that the Motif does not have.
    UnknownInput = 603, "the Motif has no such input";
    /// An input of the wrong type.
    InputType = 604, "the input takes another type";
    /// `.inputs` outside of Motifs.
    InputsOutside = 605, "inputs can only be read inside of Motifs";
    /// A profile that is not declared.
    UnknownProfile = 606, "unknown profile";
    /// A profile that two documents declare.
    ProfileTwice = 607, "two profiles have the same name";
    /// A profile that hides a built-in one.
    ProfileShadows = 608, "a built-in profile is hidden";
    /// A child that replaces one of a Motif.
    Override = 609, "a child replaces that of a Motif";
    /// Parts of Motifs that are not used.
    UnusedParts = 610, "the import takes only a part of the Motif";
    /// A source that is a path, in an object of the cluster.
    PathInCluster = 611, "the source is a path, and a cluster has no files";

    // Rendered custom resources.
    /// A custom resource of a kind or version that no Katalog operates.
    NotOperated = 900, "no Katalog operates the custom resource";
    /// A template that fails for a custom resource, or whose result is not valid for the field.
    CannotRender = 901, "the custom resource cannot be rendered";
    /// A custom resource that the API server would refuse.
    RefusedResource = 902, "the API server would refuse the custom resource";
    /// A rule of a definition that cannot be evaluated without the API server.
    RuleNotChecked = 903, "a rule of the definition is not checked";
    /// A custom resource that a rule of the Katalog refuses.
    RuleViolated = 904, "a rule of the Katalog refuses the custom resource";
}

impl Code {
    /// Parses a code, in any case: `ORK0012`.
    pub fn parse(text: &str) -> Option<Code> {
        let is_it = |code: &&Code| code.to_string().eq_ignore_ascii_case(text);
        Code::ALL.iter().find(is_it).copied()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ORK{:04}", *self as u16)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_found_by_their_text() {
        assert!(Code::ALL.is_sorted_by(|a, b| a < b));
        for code in Code::ALL {
            assert_eq!(Code::parse(&code.to_string().to_lowercase()), Some(*code));
        }
        assert_eq!(Code::NoEffect.to_string(), "ORK0012");
        assert_eq!(Code::parse("ORK9999"), None);
    }
}
