//! Answers, packs and trees that the tests build from bytes.

mod pack;
mod protocol;
mod walk;
