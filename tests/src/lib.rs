//! End-to-end tests of the real binary; see `tests/`.
