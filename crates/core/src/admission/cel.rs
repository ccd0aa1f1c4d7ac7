//! Rules as expressions of CEL.
