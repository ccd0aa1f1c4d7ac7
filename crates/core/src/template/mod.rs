//! Go templates (under construction).
