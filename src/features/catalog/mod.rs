//! The catalog of features and levels.
