//! What to do next.
