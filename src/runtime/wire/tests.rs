//! Requests as they arrive, and errors as they are sorted.
