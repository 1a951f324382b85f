//! YAML as the Go tools read and write it.
