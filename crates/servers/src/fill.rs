//! Contents (placeholder).
